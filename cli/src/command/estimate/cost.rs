//! From work to hours, energy and money; from a plan to the size of its ledger.

use nqueens_kernel::job::Job;
use nqueens_kernel::plan::Plan;
use nqueens_model::operator::Interval;

/// What the counting takes on a fleet.
pub(super) struct Cost {
    pub(super) core_hours: Interval,
    pub(super) threads: u32,
    pub(super) watts: Option<f64>,
    /// Price of one thread for an hour.
    pub(super) price: Option<f64>,
}

impl Cost {
    /// Hours from begin to end, if all threads always have work.
    pub(super) fn wall_hours(&self) -> Interval {
        self.core_hours.map(|hours| hours / f64::from(self.threads))
    }

    /// Kilowatt-hours, given the power.
    pub(super) fn energy_kwh(&self) -> Option<Interval> {
        self.watts.map(|watts| self.core_hours.map(|hours| hours * watts / 1_000.0))
    }

    /// In the unit of the price, given that.
    pub(super) fn total_price(&self) -> Option<Interval> {
        self.price.map(|price| self.core_hours.map(|hours| hours * price))
    }
}

pub(super) struct LedgerSize {
    pub(super) jobs: u64,
    /// Size of the database when all is counted.
    pub(super) bytes: u64,
}

impl LedgerSize {
    /// A database without a job.
    const EMPTY_BYTES: u64 = 45_000;
    /// What a job and its result take, less the job's own encoding: 133 to 141 bytes in databases of 12,000 to 54,000
    /// jobs of the plans `rows`, `border` and one with the encoding of `colours`.
    const JOB_BYTES: u64 = 140;
    /// The counts of a part of a large job, as text.
    const PART_BYTES: u64 = 20;

    /// Of a plan; makes its jobs, some seconds' work for the largest boards.
    pub(super) fn of(plan: &Plan) -> Self {
        let empty = Self { jobs: 0, bytes: Self::EMPTY_BYTES };
        let wanted = Job::parts_wanted(plan.states_per_job());
        plan.jobs().fold(empty, |Self { jobs, bytes }, job| {
            let parts = job.row_sets().map_or(wanted, |range| wanted.min(range.end - range.start));
            let parts_bytes = if parts > 1 { parts * Self::PART_BYTES } else { 0 };
            Self { jobs: jobs + 1, bytes: bytes + Self::JOB_BYTES + job.encode().len() as u64 + parts_bytes }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_shares_of_core_hours() {
        let core_hours = Interval { value: 100.0, low: 90.0, high: 120.0 };
        let cost = Cost { core_hours, threads: 10, watts: Some(5.0), price: None };
        assert_eq!(cost.wall_hours(), Interval { value: 10.0, low: 9.0, high: 12.0 });
        assert_eq!(cost.energy_kwh(), Some(Interval { value: 0.5, low: 0.45, high: 0.6 }));
        assert_eq!(cost.total_price(), None);
    }
}
