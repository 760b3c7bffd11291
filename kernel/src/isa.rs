//! Instruction sets: the one place that asks the processor.

use strum::{Display, EnumString};

/// An instruction set that multiplications have a version for, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Isa {
    /// Plain code for every machine.
    Portable,
    /// x86-64 with AVX2, BMI and POPCNT (2013).
    Avx2,
    /// x86-64 with AVX-512 as of Ice Lake (2019) and Zen 4: F, BW, VL, BITALG, VBMI, VBMI2, VPOPCNTDQ, GFNI.
    Avx512,
}

impl Isa {
    /// All versions, slowest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// Whether this machine has all of it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Avx2 => cpu_has("avx2,bmi1,bmi2,lzcnt,popcnt"),
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && cpu_has(
                        "avx512f,avx512bw,avx512vl,avx512bitalg,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni",
                    )
            }
        }
    }

    /// The fastest version that this machine can run.
    pub fn best() -> Self {
        *Self::ALL.iter().rev().find(|isa| isa.is_available()).expect("portable code runs everywhere")
    }
}

/// Whether the processor has all of these features, separated by commas: any that some version needs.
#[cfg(target_arch = "x86_64")]
pub(crate) fn cpu_has(features: &str) -> bool {
    features.split(',').all(|feature| match feature {
        "avx2" => is_x86_feature_detected!("avx2"),
        "avx512bitalg" => is_x86_feature_detected!("avx512bitalg"),
        "avx512bw" => is_x86_feature_detected!("avx512bw"),
        "avx512f" => is_x86_feature_detected!("avx512f"),
        "avx512vbmi" => is_x86_feature_detected!("avx512vbmi"),
        "avx512vbmi2" => is_x86_feature_detected!("avx512vbmi2"),
        "avx512vl" => is_x86_feature_detected!("avx512vl"),
        "avx512vpopcntdq" => is_x86_feature_detected!("avx512vpopcntdq"),
        "bmi1" => is_x86_feature_detected!("bmi1"),
        "bmi2" => is_x86_feature_detected!("bmi2"),
        "gfni" => is_x86_feature_detected!("gfni"),
        "lzcnt" => is_x86_feature_detected!("lzcnt"),
        "popcnt" => is_x86_feature_detected!("popcnt"),
        _ => unreachable!("nothing needs {feature}"),
    })
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn cpu_has(_features: &str) -> bool {
    false
}
