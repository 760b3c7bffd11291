//! What this program was built from, and for which machines.

/// The version and the source revision.
pub(crate) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NQUEENS_REVISION"), ")");

/// The compiler's name of the platform.
pub(crate) const TARGET: &str = env!("NQUEENS_TARGET");
