//! What a sample of recounted jobs proves about all of them.

/// Of what is said to be met.
const CONFIDENCE: f64 = 0.95;

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
        // For many more jobs than recounts it tends to 1 - (1 - share)^recounts.
        for recounted in [1, 10, 59, 299, 2_994] {
            let found = finds(10_000_000, recounted, 100_000);
            let bound = 1.0 - 0.99_f64.powf(f64::from(u32::try_from(recounted).unwrap()));
            assert!((found - bound).abs() < 2e-4, "{recounted}: {found} {bound}");
        }
    }
}
