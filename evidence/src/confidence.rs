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
    let enough = met_none(jobs, recounted).position(|probability| probability <= 1.0 - CONFIDENCE);
    enough.map_or(jobs + 1, |wrong| wrong as u64)
}

/// The probability, from 0 to 1, with which `recounted` of `jobs`, drawn at random, meet at least one of `wrong` wrong ones.
pub fn finds(jobs: u64, recounted: u64, wrong: u64) -> f64 {
    assert!(wrong <= jobs, "only a job can be wrong");
    let mut probabilities =
        met_none(jobs, recounted).skip(usize::try_from(wrong).expect("jobs are numbered by 32 bits"));
    1.0 - probabilities.next().expect("one for each number of wrong jobs")
}

/// The probability with which `recounted` of `jobs`, drawn at random, meet none of the wrong ones: if there are 0, 1, 2, ...,
/// `jobs` of these.
fn met_none(jobs: u64, recounted: u64) -> impl Iterator<Item = f64> {
    assert!(recounted <= jobs, "a job is recounted once");
    let with_one_more = move |met_none: &mut f64, among: u64| {
        #[expect(clippy::cast_precision_loss, reason = "a probability; jobs are far fewer than 2^53")]
        let factor = among.saturating_sub(recounted) as f64 / among as f64;
        *met_none *= factor;
        Some(*met_none)
    };
    std::iter::once(1.0).chain((1..=jobs).rev().scan(1.0, with_one_more))
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
    fn chances_are_those_of_the_hypergeometric_distribution() {
        let is = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        is(finds(20, 19, 1), 0.95);
        is(finds(20, 20, 1), 1.0);
        is(finds(20, 0, 20), 0.0);
        is(finds(20, 5, 0), 0.0);
        // 8 of 10 jobs are right: a sample of 3 meets none of the others with a probability of 8 7 6 / (10 9 8).
        is(finds(10, 3, 2), 1.0 - 336.0 / 720.0);
        is(finds(10, 9, 2), 1.0);
        for (jobs, recounted) in [(100, 20), (1_000, 299)] {
            let wrong = fewer_than(jobs, recounted);
            assert!(finds(jobs, recounted, wrong) >= CONFIDENCE);
            assert!(finds(jobs, recounted, wrong - 1) < CONFIDENCE);
        }
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
