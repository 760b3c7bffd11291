//! What must hold of the answer to a sync: its verdicts, its leases, and that there was nothing better to do.

use std::collections::BTreeSet;

use nqueens_model::id::JobId;
use nqueens_model::message::{ResultAck, SyncRequest, Verdict};
use nqueens_model::operator::RunState;
use nqueens_scheduler::request::{Granted, Synced};
use nqueens_scheduler::{Dispatch, JobState};

use super::{Before, Invariants};
use crate::ask::secret;
use crate::ledger::{JobRow, Ledger};

/// Of the syncs that get nothing, one in so many is looked at closely.
const CLOSELY_EVERY: u64 = 16;

impl Invariants {
    pub(super) fn judged(&mut self, dispatch: &Dispatch, sync: &SyncRequest, acks: &[ResultAck]) {
        let tokens = sync.results.iter().map(|result| result.token);
        assert!(tokens.eq(acks.iter().map(|ack| ack.token)), "one answer to each result, in their order");
        let machine = &dispatch.worker(sync.session.worker).expect("it has registered").machine;
        for ack in acks.iter().filter(|ack| ack.verdict != Verdict::Unknown) {
            let issued = self.issued.get(&ack.token);
            assert!(
                issued.is_some_and(|issued| issued.credential == machine.credential),
                "a ticket of job {} that was not given to {machine} is not refused",
                ack.token.job
            );
        }
        for ack in acks.iter().filter(|ack| ack.verdict == Verdict::Accepted) {
            self.accepted.insert(ack.token.job, machine.clone());
        }
    }

    /// Leases go to trusted machines, for open jobs of active runs, or for jobs that another machine has counted. The
    /// worker knows of all that it has.
    pub(super) fn leased(
        &mut self,
        ledger: &Ledger,
        dispatch: &Dispatch,
        sync: &SyncRequest,
        before: &Before,
        synced: &Synced,
    ) {
        let worker = dispatch.worker(sync.session.worker).expect("it has registered");
        let is_trusted = dispatch.distrusts(&worker.machine).is_none();
        assert!(is_trusted || worker.leases() == 0, "{} is distrusted and has leases", worker.machine);
        // Leases that got lost are given again in any case.
        assert!(
            !self.is_short || synced.granted.is_empty() || before.own > 0,
            "leases go out, and there is no room"
        );
        let mut known: BTreeSet<_> = sync.held.iter().map(|held| held.token).collect();
        synced.revoked.iter().for_each(|token| assert!(known.remove(token), "it held what is revoked"));
        for Granted { token, mirrored, .. } in &synced.granted {
            let job = token.job;
            assert!(known.insert(*token), "a lease of job {job} goes to a worker that has it");
            let own = dispatch.leases(job).filter(|(holder, _)| *holder == sync.session.worker);
            assert!(own.map(|(_, token)| token).eq([*token]), "job {job} is leased to its worker once");
            let run = dispatch.run(job.run).expect("of a run");
            // Leases that got lost are given again in a paused run, too.
            let state = run.state();
            assert!(state == RunState::Active || (state == RunState::Paused && before.own > 0), "job {job}");
            assert!(!mirrored || ledger.run(job.run).is_none_or(|run| run.settings.replicate_ppm > 0));
            let slot = run.slot(job.number);
            assert!(token.epoch.get() <= slot.epoch, "job {job}");
            if slot.state == JobState::Leased {
                continue;
            }
            let counted = ledger.job(job).and_then(JobRow::accepted);
            let counted = counted.map(|(_, row)| ledger.machine(row.worker));
            let counted = self.accepted.get(&job).or(counted);
            let is_checked = counted.is_some_and(|counted| *counted != worker.machine);
            assert!(is_checked, "job {job} is {:?} and leased", slot.state);
            self.second_counts.insert(*token);
        }
        assert_eq!(worker.leases(), known.len(), "worker {} knows all its leases", sync.session.worker);
    }

    /// A worker's word ends its own leases alone, and none but by their token; none comes back from an earlier life.
    pub(super) fn conserved(
        &mut self,
        dispatch: &Dispatch,
        sync: &SyncRequest,
        before: Before,
        synced: &Synced,
    ) {
        for (job, before) in before.leases {
            let after: Vec<_> = dispatch.leases(job).collect();
            let settled = |ack: &ResultAck| {
                let ends = matches!(ack.verdict, Verdict::Accepted | Verdict::Duplicate | Verdict::Conflict);
                ack.token.job == job && ends
            };
            let is_settled = synced.acks.iter().any(settled);
            for (holder, token) in &before {
                if after.contains(&(*holder, *token)) || is_settled {
                    continue;
                }
                let machine = &dispatch.worker(*holder).expect("it has registered").machine;
                let named = sync.returned.iter().map(|returned| returned.token);
                let mut named = named.chain(sync.results.iter().map(|result| result.token));
                let mut renumbered = synced.granted.iter().filter(|granted| granted.token.job == job);
                assert!(
                    dispatch.distrusts(machine).is_some()
                        || *holder == sync.session.worker
                            && (named.any(|named| named == *token) || renumbered.next().is_some()),
                    "a lease of job {job} ended, and its token was not named"
                );
            }
            for (holder, token) in after {
                let is_new = synced.granted.iter().any(|granted| granted.token == token);
                if before.contains(&(holder, token)) || is_new {
                    continue;
                }
                let issued = self.issued.get_mut(&token).filter(|_| holder == sync.session.worker);
                let Some(issued) = issued else { panic!("a lease of job {job} came back to another") };
                // After a backup was restored, tokens are given once more.
                let is_own = secret(issued.process) == sync.session.secret;
                assert!(is_own || self.restored_in > 0, "a lease of job {job} came back to another process");
                (issued.at, issued.life) = (self.now, self.life);
            }
        }
    }

    /// A worker that asked for work and got none can't help with a job whose holder is silent.
    pub(super) fn idle(&mut self, dispatch: &Dispatch, sync: &SyncRequest) {
        let worker = dispatch.worker(sync.session.worker).expect("it has registered");
        let is_trusted = dispatch.distrusts(&worker.machine).is_none();
        let asks = sync.wanted.jobs > 0
            && sync.wanted.states > 0
            && sync.wanted.job_states_max == u64::MAX
            && worker.leases() == 0
            && is_trusted
            // It may have left, and this call comes late.
            && dispatch.is_present(self.now, worker);
        self.fruitless += u64::from(asks);
        if !asks || !self.fruitless.is_multiple_of(CLOSELY_EVERY) {
            return;
        }
        for run in dispatch.runs().filter(|run| run.state() == RunState::Active && run.sums().leased > 0) {
            for number in (0..run.jobs()).filter(|number| run.slot(*number).state == JobState::Leased) {
                let leases: Vec<_> = dispatch.leases(JobId { run: run.id(), number }).collect();
                let [(holder, token)] = leases[..] else { continue };
                let holder = dispatch.worker(holder).expect("it has registered");
                // After a restart one may be there that was not heard of yet.
                let is_there = dispatch.is_present(self.now, holder) || holder.seen.is_none();
                if is_there || holder.machine.credential == worker.machine.credential {
                    continue;
                }
                let issued = self.issued.get(&token).filter(|issued| issued.life == self.life);
                let since = issued.map(|issued| issued.at.max(self.reread));
                assert!(
                    since.is_none_or(|since| self.now.saturating_sub(since) < self.policy.second_lease_ms),
                    "an idle worker does not help with job {}",
                    token.job
                );
            }
        }
    }
}
