//! What the coordinator has counted itself, and what it could not.

use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken};
use nqueens_model::message::{JobResult, Registration, Session};
use tracing::error;

use super::Request;
use super::worker::OWN_INSTANCE;
use crate::change::{Change, Recounted};
use crate::dispatch::Accepted;
use crate::refusal::Refusal;
use crate::transaction::{Needs, Transaction};

/// The coordinator's own count of a job. It is final: a result that differs is void.
#[derive(Clone, Debug)]
pub struct Compare {
    /// The coordinator's program.
    pub build: String,
    /// Random: nobody learns it, so that no call is made in the coordinator's name.
    pub secret: [u8; 16],
    /// What came out.
    pub result: JobResult,
}

impl Request for Compare {
    type Answer = ();

    fn needs(&self, needs: &mut Needs) {
        needs.reported.push(self.result.token.job);
    }

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        let own = Registration {
            instance: OWN_INSTANCE,
            name: Credential::OWN.to_owned(),
            build: self.build,
            kernels: vec![self.result.kernel],
            capability: None,
            threads: 1,
        };
        let Session { worker, .. } = transaction.enroll(&own, &Credential::own(), self.secret);
        transaction.report(worker, &[self.result]);
        Ok(())
    }
}

/// The coordinator could not count a job that has failed elsewhere.
#[derive(Clone, Debug)]
pub struct GiveUp {
    /// The job.
    pub job: JobId,
    /// Why it could not.
    pub reason: String,
}

impl Request for GiveUp {
    type Answer = ();

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        let Self { job, reason } = self;
        error!(%job, reason, "a job that failed on workers failed here too");
        transaction.scheduler.dispatch.give_up(job);
        Ok(())
    }
}

impl Request for Recounted {
    type Answer = ();

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        transaction.change(Change::Recounted(self));
        Ok(())
    }
}

/// The coordinator has counted a part of a job otherwise than the accepted result says: that is void, and the job is counted
/// again. Nothing happens if the result of this lease stands no longer.
#[derive(Clone, Debug)]
pub struct Refute {
    /// The lease of the result.
    pub token: LeaseToken,
    /// What differs.
    pub reason: String,
}

impl Request for Refute {
    type Answer = ();

    fn needs(&self, needs: &mut Needs) {
        needs.reported.push(self.token.job);
    }

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        let Self { token, reason } = self;
        if let Some(accepted) = standing(transaction, token) {
            error!(job = %token.job, worker = %accepted.worker, reason, "a part of a result is wrong");
            transaction.scheduler.dispatch.refute(token.job, &accepted, &reason);
            transaction.void(vec![token.job]);
        }
        Ok(())
    }
}

/// Has a job counted by another machine whose accepted result does not tell what each part of the job has, so that no part
/// can be checked. Nothing happens if the result of this lease stands no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckWhole(pub LeaseToken);

impl Request for CheckWhole {
    type Answer = ();

    fn needs(&self, needs: &mut Needs) {
        needs.reported.push(self.0.job);
    }

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        if let Some(accepted) = standing(transaction, self.0) {
            transaction.scheduler.dispatch.check_again(self.0.job, &accepted);
        }
        Ok(())
    }
}

/// The accepted result of a job, if it is the one of this lease.
fn standing(
    transaction: &Transaction<'_>,
    LeaseToken { job, epoch, incarnation }: LeaseToken,
) -> Option<Accepted> {
    let accepted = transaction.loaded.get(&job)?.accepted?;
    ((accepted.epoch, accepted.incarnation) == (epoch, incarnation)).then_some(accepted)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::counts::Counts;
    use nqueens_kernel::engine::Kernel;
    use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};
    use nqueens_model::credential::Credential;
    use nqueens_model::id::{Incarnation, RunId};
    use nqueens_model::kernel::KernelName;
    use nqueens_model::message::{JobResult, Registration, SyncRequest, Wanted};

    use super::*;
    use crate::dispatch::{Dispatch, Policy, RunSettings};
    use crate::request::{ActivateRun, Register, Sync};
    use crate::transaction::{Loaded, Scheduler, StoredJob};

    /// What is said of a result that was replaced meanwhile is not said of the one that stands.
    #[test]
    fn only_the_result_that_was_looked_at_is_refuted_or_checked() {
        let dispatch = Dispatch::new(Policy::default(), Incarnation::from_random(1), [0; 32]);
        let mut scheduler = Scheduler::new(dispatch, [], None);
        let plan = Plan::new(BoardSize::new(8).unwrap(), PlanKind::Rows);
        let settings =
            RunSettings { id: RunId::from_random(7), plan, seed: 1, priority: 0, replicate_ppm: 0 };
        let activate = ActivateRun { settings, fingerprint: Fingerprint([0; 32]), estimates: vec![10; 2] };
        let kernel = KernelName::from(Kernel::Reference);
        let worker = Registration {
            instance: [1; 16],
            name: "west".to_owned(),
            build: "test".to_owned(),
            kernels: vec![kernel],
            capability: None,
            threads: 1,
        };
        let mut transaction = scheduler.begin(0, Loaded::new());
        transaction.apply(activate).expect("a run");
        let session = transaction
            .apply(Register { worker, credential: Credential::shared(), secret: [2; 16] })
            .unwrap();
        let sync = |wanted_jobs, results| {
            let (held, returned) = (Vec::new(), Vec::new());
            let wanted = Wanted::new(u64::MAX, wanted_jobs);
            let faults = Vec::new();
            let sync = SyncRequest { session, results, held, returned, wanted, leaving: false, faults };
            Sync { sync, credential: Credential::shared() }
        };
        let granted = transaction.apply(sync(2, vec![])).unwrap().expect("it has registered").granted;
        let tokens = [granted[0].token, granted[1].token];
        transaction.settle();

        let stored =
            |token: LeaseToken| (token.job, StoredJob { counts_max: Counts::only8(5), accepted: None });
        let mut transaction = scheduler.begin(1, tokens.into_iter().map(stored).collect());
        let result = |token, count8| {
            let (counts, parts) = (Counts::only8(count8), Vec::new());
            JobResult { token, counts, parts, kernel, states: 1, elapsed_us: 1, cpu_us: None }
        };
        transaction.apply(sync(0, tokens.map(|token| result(token, 3)).to_vec())).unwrap();
        let earlier = |token: LeaseToken| LeaseToken { epoch: NonZeroU32::MAX, ..token };
        let refute = |token| Refute { token, reason: "made for this test".to_owned() };
        let state = |transaction: &Transaction<'_>| {
            let sums = transaction.dispatch().run(settings.id).unwrap().sums();
            (sums.done, sums.quarantined, sums.checks.open)
        };
        transaction.apply(refute(earlier(tokens[0]))).unwrap();
        transaction.apply(CheckWhole(earlier(tokens[1]))).unwrap();
        assert_eq!(state(&transaction), (2, 0, 0));
        transaction.apply(CheckWhole(tokens[1])).unwrap();
        assert_eq!(state(&transaction), (2, 0, 1));
        transaction.apply(refute(tokens[0])).unwrap();
        assert_eq!(state(&transaction), (1, 0, 1));
    }
}
