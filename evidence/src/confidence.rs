//! What a sample of recounted jobs proves about all of them.

/// With at least this probability a sample would have met a wrong job, were there as many as
/// [`fewer_than`] says.
pub const CONFIDENCE: f64 = 0.95;

/// How many wrong jobs there would have to be among `jobs`, so that `recounted` of them, drawn at random, meet none of the
/// wrong ones with a probability of 5 % at most: with 95 % confidence there are fewer, if none was met.
///
/// `recounted` jobs out of `jobs` that have w wrong ones among them meet none with the probability
/// C(jobs - w, recounted) / C(jobs, recounted). For many more jobs than recounts the share of this among all tends to
/// 1 - 0.05^(1 / recounted). Without a recount every job may be wrong: `jobs` + 1.
pub fn fewer_than(jobs: u64, recounted: u64) -> u64 {
    assert!(recounted <= jobs, "a job is recounted once");
    let mut met_none = 1.0;
    for wrong in 1..=jobs {
        let (among, others) = (jobs - wrong + 1, (jobs - wrong + 1).saturating_sub(recounted));
        #[expect(clippy::cast_precision_loss, reason = "a probability; jobs are far fewer than 2^53")]
        let factor = others as f64 / among as f64;
        met_none *= factor;
        if met_none <= 1.0 - CONFIDENCE {
            return wrong;
        }
    }
    jobs + 1
}

/// The least share of wrong parts that some recounted ones, drawn at random, would have met with 95 % confidence: they miss a
/// share f with the probability (1 - f)^`recounted`. 1 without a recount.
pub fn share_met(recounted: u32) -> f64 {
    1.0 - (1.0 - CONFIDENCE).powf(1.0 / f64::from(recounted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_hypergeometric_distribution() {
        assert_eq!(fewer_than(61, 61), 1, "every job was recounted");
        assert_eq!(fewer_than(61, 0), 62, "none was");
        assert_eq!(fewer_than(0, 0), 1);
        // 1 of 20 jobs is missed by 19 recounts with a probability of exactly 1/20, by 18 with 2/20.
        assert_eq!((fewer_than(20, 19), fewer_than(20, 18)), (1, 2));
        // One of two, two of three, ...: a sample of one job proves little.
        assert_eq!(fewer_than(100, 1), 95);
    }

    #[test]
    fn the_share_that_is_met_is_missed_once_in_twenty() {
        assert!((share_met(0) - 1.0).abs() < 1e-12, "without a recount nothing is met");
        for recounted in [1, 10, 299] {
            let missed = (1.0 - share_met(recounted)).powi(recounted.cast_signed());
            assert!((missed - 0.05).abs() < 1e-9, "{recounted}: {missed}");
        }
        assert!(share_met(299) < 0.01 && share_met(298) > 0.01);
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53")]
    fn among_many_jobs_the_share_is_the_known_formula() {
        for recounted in [1_u32, 10, 59, 299, 2_994] {
            let bound = 1.0 - 0.05_f64.powf(1.0 / f64::from(recounted));
            let share = fewer_than(10_000_000, recounted.into()) as f64 / 1e7;
            assert!((share - bound).abs() < 2e-4 * bound + 1e-7, "{recounted}: {share} {bound}");
        }
        assert!(fewer_than(10_000_000, 299) <= 100_000, "299 recounts: below 1 %");
    }
}
