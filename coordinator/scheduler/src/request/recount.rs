//! What the coordinator has counted itself, and what it could not.

use std::num::NonZeroU32;

use nqueens_kernel::counts::Counts;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, WorkerId};
use nqueens_model::kernel::KernelName;
use nqueens_model::message::{JobResult, Registration, Session, Verdict};
use tracing::error;

use super::Request;
use super::worker::OWN_INSTANCE;
use crate::change::{Change, Recount};
use crate::dispatch::{Accepted, Finding, JobState, Why};
use crate::refusal::Refusal;
use crate::transaction::{Needs, Transaction};

/// The coordinator's own count of a job, or of a part. It is final.
#[derive(Clone, Debug)]
pub struct Recounted {
    pub build: String,
    /// Random: nobody learns it, so that no call is made in the coordinator's name.
    pub secret: [u8; 16],
    pub job: JobId,
    /// Worker and lease of the accepted result that was looked at; `None` if there was none.
    pub of: Option<(WorkerId, NonZeroU32)>,
    /// Number of the part; `None` if all of the job was counted.
    pub part: Option<u8>,
    pub drawn: bool,
    pub counts: Counts,
    /// What the accepted result says of the same.
    pub said: Counts,
    /// And the second counts of that result.
    pub seconds: Vec<(WorkerId, Counts)>,
    pub kernel: KernelName,
    pub states: u64,
    /// Processor time, in microseconds.
    pub elapsed_us: u64,
}

impl Request for Recounted {
    type Answer = ();

    fn needs(&self, needs: &mut Needs) {
        needs.reported.push(self.job);
    }

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        let Self { job, of, part, counts, said, kernel, elapsed_us, .. } = self;
        // A job that failed elsewhere takes no time from those that are drawn.
        if of.is_some() {
            if let Some(run) = transaction.scheduler.dispatch.run_mut(job.run) {
                run.sums.recounts_us += u128::from(elapsed_us);
            }
            transaction.change(Change::RecountTime(job.run, elapsed_us));
        }
        let dispatch = &mut transaction.scheduler.dispatch;
        let Some(run) = dispatch.run(job.run).filter(|run| run.state().is_open()) else { return Ok(()) };
        let is_done = run.slot(job.number).state == JobState::Done;
        let accepted = transaction.loaded.get(&job).and_then(|stored| stored.accepted);
        // Another result, or none, may have taken the place of the one that was looked at.
        if accepted.map(|accepted| (accepted.worker, accepted.epoch)) != of {
            return Ok(());
        }
        match accepted {
            None if is_done || part.is_some() => {}
            // One part decides nothing about another.
            Some(_) if part.is_some() && dispatch.has_new_dispute(job, &self.seconds) => {}
            None => {
                let (worker, own) = self.own(transaction);
                transaction.scheduler.dispatch.accept_own(job, &Accepted::new(worker, &own));
                transaction.store(worker, own, Verdict::Accepted);
            }
            Some(accepted) => {
                let (whole, drawn, seconds) = (part.is_none(), self.drawn, &self.seconds);
                let finding = Finding { whole, drawn, counts, said, seconds };
                let is_wrong = dispatch.decide(job, &accepted, &finding);
                let recount = Recount { job, part, kernel, agrees: !is_wrong, elapsed_us };
                transaction.change(Change::Recounted(recount));
                if is_wrong && whole {
                    error!(%job, worker = %accepted.worker, "a result is wrong: the coordinator's own stands in its place");
                    transaction.void(vec![job]);
                    let (worker, own) = self.own(transaction);
                    transaction.scheduler.dispatch.replace(job, &Accepted::new(worker, &own));
                    transaction.store(worker, own, Verdict::Accepted);
                } else if is_wrong {
                    error!(%job, worker = %accepted.worker, "a part of a result is wrong: the job is counted again");
                    transaction.scheduler.dispatch.take_back(&[(job, accepted)]);
                    transaction.void(vec![job]);
                }
            }
        }
        Ok(())
    }
}

impl Recounted {
    /// The coordinator as a worker, and its result.
    fn own(&self, transaction: &mut Transaction<'_>) -> (WorkerId, JobResult) {
        let Self { job, counts, kernel, states, elapsed_us, .. } = *self;
        let registration = Registration {
            instance: OWN_INSTANCE,
            name: Credential::OWN.to_owned(),
            build: self.build.clone(),
            kernels: vec![kernel],
            capability: None,
            threads: 1,
        };
        let Session { worker, .. } = transaction.enroll(&registration, &Credential::own(), self.secret);
        let slot = transaction.dispatch().run(job.run).expect("looked up before").slot(job.number);
        let epoch = NonZeroU32::new(slot.epoch).unwrap_or(NonZeroU32::MIN);
        let token = LeaseToken { job, epoch, ticket: 0 };
        let parts = Vec::new();
        (worker, JobResult { token, counts, parts, kernel, states, elapsed_us, cpu_us: Some(elapsed_us) })
    }
}

/// The coordinator could not count a job.
pub fn give_up(job: JobId, why: Why, reason: String) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        error!(%job, reason, "a job can't be counted here");
        transaction.scheduler.dispatch.give_up(job, why);
        Ok(())
    }
}
