//! Spools that nobody honest has made: random bytes, and real ones with damage. A fuzzer makes the same checks (`fuzz/`).

#[path = "../../../fuzz/src/damage.rs"]
mod damage;
#[path = "../../../fuzz/src/spool.rs"]
mod spool;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn whatever_comes_is_judged(bytes in damage::bytes("spool")) {
        spool::check(&bytes);
    }
}
