//! Counting engines as other programs know them: by name, and by what their own programs say of them.

use std::fmt;
use std::str::FromStr;

use arrayvec::ArrayString;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::PlanKind;

/// Bytes of a name, at most.
const LENGTH_MAX: usize = 32;

/// Name of an engine, in the words of whoever wrote it: 1 to 32 lower-case ASCII letters, digits and hyphens. A name that
/// means nothing here is kept as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelName(ArrayString<LENGTH_MAX>);

/// Name of a search. Engines of one family share it, and its errors.
pub type Family = KernelName;

/// What a worker's program says of the engine in use, once it has tried it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its family where it counts boards.
    pub family: Family,
    /// What it runs on: an instruction set, or a device; a [name](crate::name::check).
    pub device: String,
    /// States that all the worker's threads visit in a second; at least 1.
    pub states_per_s: u64,
}

impl KernelName {
    /// Our own engine for devices.
    pub const DEVICE: &str = "opencl";

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The family of what it counts in runs of a plan. One of our own engines has that of [`Kernel::family`], and so has
    /// one that is `said` to be of the same family as one of ours. Any other is of the family that it is said to be, or one
    /// by itself.
    #[must_use]
    pub fn family(self, said: Option<Family>, plan: PlanKind) -> Family {
        if self.as_str() == Self::DEVICE && plan == PlanKind::Colours {
            // It compares lists that the code for processors has made.
            return Self::ours(Kernel::Portable.family(plan));
        }
        let is_like = |kernel: &Kernel| {
            let boards = kernel.family(PlanKind::Border);
            kernel.name() == self.as_str() || said.is_some_and(|said| said.as_str() == boards)
        };
        let like = Kernel::ALL.into_iter().find(is_like);
        like.map_or(said.unwrap_or(self), |kernel| Self::ours(kernel.family(plan)))
    }

    fn ours(name: &str) -> Self {
        name.parse().expect("our own names are names")
    }
}

impl From<Kernel> for KernelName {
    fn from(kernel: Kernel) -> Self {
        Self::ours(kernel.name())
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for KernelName {
    type Err = InvalidKernelName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let clean = !text.is_empty() && text.bytes().all(is_plain);
        let name = if clean { ArrayString::from(text).ok() } else { None };
        name.map(Self).ok_or(InvalidKernelName)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an engine's name has 1 to {LENGTH_MAX} lower-case letters, digits and hyphens")]
pub struct InvalidKernelName;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for text in ["avx512", "cuda-sm90", "2", &"x".repeat(32)] {
            assert_eq!(text.parse::<KernelName>().map(|name| name.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "AVX2", "a b", "a,b", "caf\u{e9}", "a\n", &"x".repeat(33)] {
            assert_eq!(text.parse::<KernelName>(), Err(InvalidKernelName), "{text:?}");
        }
    }

    #[test]
    fn all_instruction_sets_are_one_family() {
        for plan in PlanKind::ALL.into_iter().chain([PlanKind::Cells]) {
            let family = |kernel| KernelName::from(kernel).family(None, plan);
            let blocks = [Kernel::Portable, Kernel::Avx2, Kernel::Avx512].map(family);
            assert!(blocks.iter().all(|block| *block == blocks[0]));
            assert!([Kernel::Reference, Kernel::Scalar].into_iter().all(|plain| family(plain) != blocks[0]));
        }
    }

    #[test]
    fn a_device_shares_the_lists_of_colours_with_processors_and_nothing_else() {
        let device: KernelName = KernelName::DEVICE.parse().expect("a name");
        for plan in PlanKind::ALL {
            let ours = KernelName::from(Kernel::Portable).family(None, plan);
            for said in [None, Some(device)] {
                assert_eq!(device.family(said, plan) == ours, plan == PlanKind::Colours, "{plan}");
            }
        }
    }

    #[test]
    fn a_foreign_engine_is_of_the_family_that_it_says() {
        let name = |text: &str| text.parse::<KernelName>().expect("a name");
        let cuda = name("cuda");
        for plan in PlanKind::ALL {
            assert_eq!(cuda.family(None, plan), cuda);
            assert_eq!(cuda.family(Some(name("dancing-links")), plan), name("dancing-links"));
            let ours = KernelName::from(Kernel::Avx2);
            assert_eq!(cuda.family(Some(name("block-search")), plan), ours.family(None, plan));
            assert_eq!(
                ours.family(Some(name("dancing-links")), plan),
                ours.family(None, plan),
                "we know better"
            );
        }
    }
}
