//! Calls to the coordinator: what they say, and what follows from their answers.

use nqueens_model::id::LeaseToken;
use nqueens_model::message::{
    BATCH_MAX, HeldLease, Lease, Registration, ReturnedLease, Session, SyncRequest, SyncResponse, Verdict,
    Wanted,
};
use tracing::{debug, info};

use super::{Conversation, LifePhase, PoolJob};
use crate::outage::Outage;
use crate::{Action, CallError, EndReason, Moment};

/// Most jobs and unacknowledged results that a worker asks to have.
const HELD_MAX: usize = 5 * BATCH_MAX;

/// A call without an answer so far.
pub(super) struct PendingCall {
    pub(super) began: Moment,
    /// Whether the coordinator has forgotten the worker since the first try.
    again: bool,
    /// What a sync has in it; `None` for a registration.
    sent: Option<SyncRequest>,
}

impl Conversation {
    /// Syncs; registers before if the coordinator does not know the worker.
    pub(super) fn call(&mut self, now: Moment, again: bool) {
        let Some(session) = self.session else {
            self.call = Some(PendingCall { began: now, again, sent: None });
            self.actions.push(Action::Register(self.registration.clone()));
            return;
        };
        let report = self.report(now, session);
        self.in_doubt |= report.wanted.jobs > 0;
        self.call = Some(PendingCall { began: now, again, sent: Some(report.clone()) });
        self.actions.push(Action::Sync(report));
    }

    /// Everything that there is to say.
    fn report(&self, now: Moment, session: Session) -> SyncRequest {
        let results = self.outbox.batch();
        let returned: Vec<_> = self.returned.iter().take(BATCH_MAX).cloned().collect();
        let holds = self.leases.len() + self.outbox.len();
        let wanted_jobs = HELD_MAX.saturating_sub(holds).min(BATCH_MAX);
        let left = self.states_left();
        let job_states_max = self.time_left(now).map_or(u64::MAX, |time| self.pace.job_in(time, left));
        let states = if job_states_max > 0 { self.wanted().saturating_sub(left) } else { 0 };
        // What waits for a later report is still held.
        let later = self.outbox.after(results.len()).map(|result| result.token);
        let later = later.chain(self.returned.iter().skip(BATCH_MAX).map(|returned| returned.token));
        let later = later.map(|token| HeldLease { token, states: 0 });
        let held = self.leases.iter().map(|(token, job)| HeldLease { token: *token, states: job.states });
        // Beyond that it can only be another's: a spool may hold any number.
        let held: Vec<_> = held.chain(later).take(2 * HELD_MAX).collect();
        let jobs = if states > 0 { wanted_jobs } else { 0 };
        let wanted = Wanted { states, jobs, job_states_max };
        let leaving = !matches!(self.phase, LifePhase::Working) && held.is_empty();
        SyncRequest { session, held, results, returned, wanted, leaving, faults: self.faults.clone() }
    }

    pub(super) fn registered(&mut self, now: Moment, session: Session) {
        let Some(PendingCall { again, sent: None, .. }) = self.call else { return };
        let Registration { name, threads, .. } = &self.registration;
        info!(worker = %session.worker, name, threads, "registered");
        self.session = Some(session);
        self.call(now, again);
    }

    pub(super) fn failed(&mut self, now: Moment, error: CallError, jitter: f64) {
        let Some(call) = self.call.take() else { return };
        if error == CallError::Unregistered && call.sent.is_some() {
            (self.session, self.in_doubt) = (None, false);
            // A coordinator that has forgotten this worker gets to know it again, once.
            if !call.again && (!matches!(self.phase, LifePhase::Farewell(..)) || self.has_to_say()) {
                return self.call(now, true);
            }
        }
        self.cope(now, error, jitter);
    }

    /// A call has failed for now, or for good.
    fn cope(&mut self, now: Moment, error: CallError, jitter: f64) {
        let is_over = self.outage.as_ref().is_some_and(|outage| !self.is_of_farewell(outage));
        if matches!(self.phase, LifePhase::Farewell(..)) && (is_over || !error.is_passing()) {
            self.end(&error.to_string());
        } else if error.is_passing() {
            let outage = self.outage.get_or_insert_with(|| Outage::begin(now));
            outage.prolong(now, &error, jitter, &self.coordinator);
        } else {
            self.part(now, Some(error));
        }
    }

    /// Does what the coordinator says.
    pub(super) fn answered(&mut self, now: Moment, answer: SyncResponse) {
        let Some(PendingCall { began, sent: Some(sent), .. }) = self.call.take() else { return };
        self.in_doubt = false;
        self.tell(now);
        if let Some(outage) = self.outage.take() {
            outage.end(now);
            self.idle_since = None;
        }
        debug!(acks = answer.acks.len(), leases = answer.leases.len(), held = self.leases.len(), "synced");
        if let Err(error) = self.outbox.acknowledge(sent.results.len(), &answer.acks) {
            return self.cope(now, error, 0.0);
        }
        for ack in &answer.acks {
            match ack.verdict {
                Verdict::Accepted => self.summary.accepted += 1,
                verdict => {
                    self.summary.refused += 1;
                    debug!(job = %ack.token.job, ?verdict, reason = ack.reason, "result not accepted");
                }
            }
        }
        self.returned.drain(..sent.returned.len());
        self.faults_told = sent.faults.len();
        let is_silent = sent.results.is_empty() && sent.held.is_empty() && sent.returned.is_empty();
        self.pace.answered(now, began, &answer, sent.wanted.states == 0, is_silent);
        self.revoke(answer.revoked);
        if matches!(self.phase, LifePhase::Working) {
            self.take(answer.leases);
            if answer.drain {
                info!("an operator drains this worker");
                self.leave(now, EndReason::Dismissed);
            }
        } else {
            // Granted before it was told to go; the answer had got lost.
            let back = answer.leases.into_iter();
            self.returned.extend(back.map(|lease| ReturnedLease { token: lease.token, failure: None }));
        }
        self.pace.stock(self.states_left());
        if sent.leaving && !self.has_to_say() {
            // That was the last word.
            self.session = None;
        }
    }

    fn revoke(&mut self, tokens: Vec<LeaseToken>) {
        if !tokens.is_empty() {
            debug!(jobs = tokens.len(), "leases revoked");
            self.leases.retain(|token, _| !tokens.contains(token));
            self.actions.push(Action::Revoke(tokens));
        }
    }

    fn take(&mut self, leases: Vec<Lease>) {
        if !leases.is_empty() {
            let job = |states| PoolJob { estimate: states, states: 0, left: states };
            self.leases.extend(leases.iter().map(|lease| (lease.token, job(lease.states))));
            self.actions.push(Action::Count(leases));
        }
    }
}
