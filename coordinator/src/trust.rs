//! What the writer does about machines that are believed no longer, and results that are taken back.

use nqueens_model::id::{JobId, RunId};
use nqueens_model::operator::{Blamed, RunState};
use tracing::{error, info, warn};

use crate::dispatch::{self, Machine};
use crate::error::Error;
use crate::events::News;
use crate::store;
use crate::writer::{Group, Response};

impl Group<'_> {
    /// Why a machine's calls are refused, if they are.
    pub(crate) fn refusal(&self, machine: &str) -> Option<Error> {
        let reason = self.dispatch.distrusts(machine)?.to_owned();
        Some(Error::Distrusted { machine: machine.to_owned(), reason })
    }

    /// Tells what happened to checks and machines, and has the past results of those that were wrong counted again.
    pub(crate) async fn follow_up(&mut self) -> Result<(), Error> {
        for news in self.dispatch.take_news() {
            match news {
                dispatch::News::Waived { run, jobs } => {
                    warn!(%run, jobs, "checks waived: no other machine is there to count these jobs a second time");
                }
                dispatch::News::Distrusted { machine, reason } => {
                    let jobs = self.suspect(&machine, false).await?;
                    self.news.push(News::distrusted(&machine, &reason, jobs));
                    error!(%machine, reason, suspects = jobs, "machine is distrusted: it gets no more jobs, and past results \
                                                              of it are counted again");
                }
                dispatch::News::WrongAgain { machine } => {
                    let jobs = self.suspect(&machine, true).await?;
                    error!(%machine, suspects = jobs, "machine was wrong again: all results of it are counted again");
                }
            }
        }
        Ok(())
    }

    async fn suspect(&mut self, machine: &str, all: bool) -> Result<usize, Error> {
        let results = store::unconfirmed(self.db, machine).await?;
        Ok(self.dispatch.suspect(machine, results, all))
    }

    /// The accepted results of these jobs stand no longer, those of this transaction included.
    pub(crate) async fn void(&mut self, jobs: &[JobId]) -> Result<(), Error> {
        self.store_results().await?;
        for job in jobs {
            self.accepted.remove(job);
        }
        store::void_results(self.db, jobs).await
    }

    /// An operator's word on results: they stand no longer, and their jobs are counted anew.
    pub(crate) async fn requeue(&mut self, id: RunId, of: Blamed) -> Result<Response, Error> {
        let Some(run) = self.dispatch.run(id) else { return Ok(Response::Refused(Error::NoRun(id))) };
        let from = run.state();
        if matches!(from, RunState::Cancelled) {
            return Ok(Response::Refused(Error::RunIsOver { run: id, state: from.name() }));
        }
        self.store_results().await?;
        let (job, worker) = match of {
            Blamed::Job(number) => (Some(number), None),
            Blamed::Worker(worker) => (None, Some(worker)),
        };
        let results = store::accepted_results(self.db, id, job, worker).await?;
        let jobs = self.dispatch.take_back(&results);
        self.void(&jobs).await?;
        if !jobs.is_empty() && matches!(from, RunState::Done | RunState::Failed) {
            store::update_run_state(self.db, id, RunState::Active, None).await?;
            self.dispatch.set_run_state(id, RunState::Active);
        }
        info!(run = %id, ?of, jobs = jobs.len(), "accepted results are taken back: their jobs are counted anew");
        Ok(Response::Jobs(jobs.len()))
    }

    /// An operator's word on a machine.
    pub(crate) fn set_trust(&mut self, machine: &Machine, trusted: bool) -> Response {
        let known = self.dispatch.workers().any(|(_, worker)| worker.machine == *machine);
        if trusted && !self.dispatch.readmit(machine) || !known {
            return Response::Refused(Error::NoMachine { machine: machine.to_string(), trusted });
        }
        if trusted {
            info!(%machine, "machine is trusted again");
        } else if self.dispatch.distrusts(machine).is_none() {
            self.dispatch.distrust(machine, "an operator said so".to_owned());
        }
        Response::Done
    }
}
