//! Headings of options in the help. What is common stands above them, under "Options".

pub(crate) const CONNECTION: &str = "Connection";
pub(crate) const CHECKS: &str = "Checks";
pub(crate) const COSTS: &str = "Costs";
/// Limits and periods that are seldom changed.
pub(crate) const LIMITS: &str = "Limits and periods";
