//! The source revision and the target of this program.

pub(crate) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BUILD_REVISION"), ")");

pub(crate) const TARGET: &str = env!("BUILD_TARGET");
