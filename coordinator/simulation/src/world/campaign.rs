//! A count of weeks on an ordinary cluster, in a minute: N = 28 as docs/q28.md plans it. What goes wrong goes wrong by the calendar.

use std::fmt;
use std::time::Duration;

use nqueens_kernel::engine::Kernel;
use nqueens_model::operator::RunState;
use nqueens_scheduler::{CheckOutcome, Millis, Policy};

use super::{Event, World};
use crate::invariants::Invariants;
use crate::job::truth;
use crate::scenario::Scenario;
use crate::worker::{Engine, Worker};

const MINUTE: Millis = 60_000;

/// How finely time is counted.
const BEAT: Millis = 5_000;

/// The average time of a job of N = 28 on a thread.
const JOB_MS: u64 = 62_000;

/// Nodes die every so often, and are back after ten minutes; allocations end after so long. The coordinator is killed daily.
const DEATH_EVERY: Millis = 120 * MINUTE;
const DEAD: Millis = 10 * MINUTE;
const TIME_LIMIT: Duration = Duration::from_hours(4);
const CRASH_EVERY: Millis = 24 * 60 * MINUTE;

/// The cluster: nodes of four owners. An eighth of them are the last owner's, and lie about one job in ten; two others miscount
/// one in a hundred.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// 230,868 for N = 28.
    pub jobs: u32,
    /// Nodes, each with one worker; at least 8.
    pub nodes: usize,
    /// Threads of each.
    pub threads: u32,
}

/// How far it is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Time of threads that were there and trusted, in milliseconds.
    trusted: u64,
    deaths: u64,
    crashes: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Conclusion {
    campaign: Campaign,
    /// Until the run was done.
    took: Millis,
    deaths: u64,
    crashes: u64,
    /// Machines that are out.
    distrusted: usize,
    /// Results beyond one a job: second counts that were asked for, and all others.
    second_counts: usize,
    duplicates: usize,
    recounts: u32,
    differing: u32,
    /// Lies that were told, and those that stand.
    lies: usize,
    standing: usize,
    /// Time of the results that stand, in that of all trusted threads; and with the second counts that agree.
    efficiency: f64,
    with_seconds: f64,
}

impl World {
    fn campaign(campaign: Campaign) -> Self {
        let Campaign { jobs, nodes, threads } = campaign;
        let scenario = Scenario {
            seed: 28,
            workers: nodes,
            runs: 0,
            jobs,
            replicate_ppm: 20_000,
            seconds: 0,
            faults: Vec::new(),
        };
        let mut world = Self::new(&scenario);
        let policy = Policy { arbiter: true, ..Policy::default() };
        (world.policy, world.has_canaries) = (policy, true);
        (world.estimate, world.commit_ms, world.look_every) = (JOB_MS, 10, u64::from(jobs) / 2 + 1);
        for (place, worker) in world.workers.iter_mut().enumerate() {
            let owner = if place >= nodes - nodes / 8 { 3 } else { place % 3 };
            let lies_in = if owner == 3 { Some(10) } else { [1, 5].contains(&place).then_some(100) };
            let kernel = Kernel::Avx512;
            let (machine, owner) = (place, Some(owner));
            worker.engine = Engine { rate: 1, threads, kernel, machine, owner, conspires: false, lies_in };
            worker.time_limit = Some(TIME_LIMIT);
        }
        let lying = world.workers.iter().map(|worker| &worker.engine);
        let lying = lying.filter(|engine| engine.lies_in.is_some()).map(Engine::machine).collect();
        world.invariants = Invariants::new(lying, false, policy);
        world.campaign = Some(Progress::default());
        world.submit();
        world.schedule(BEAT, Event::Beat);
        world
    }

    /// What the calendar says.
    pub(super) fn beat(&mut self) {
        self.schedule(BEAT, Event::Beat);
        let Some(coordinator) = &self.coordinator else { return };
        let dispatch = coordinator.scheduler.dispatch();
        let is_there = |worker: &&Worker| {
            worker.process.is_some() && dispatch.distrusts(&worker.engine.machine()).is_none()
        };
        let threads: u64 = self.workers.iter().filter(is_there).map(|it| u64::from(it.engine.threads)).sum();
        let progress = self.campaign.as_mut().expect("beats are those of a campaign");
        progress.trusted += threads * BEAT;
        if self.now.is_multiple_of(DEATH_EVERY) {
            let alive: Vec<_> =
                (0..self.workers.len()).filter(|it| self.workers[*it].process.is_some()).collect();
            if !alive.is_empty() {
                let place = alive[self.luck.random.index(alive.len())];
                self.workers[place].process = None;
                progress.deaths += 1;
                self.schedule(DEAD, Event::Birth(place));
            }
        }
        if self.now.is_multiple_of(CRASH_EVERY) {
            self.campaign.as_mut().expect("as above").crashes += 1;
            self.stop();
            self.schedule(MINUTE, Event::Start);
        }
    }

    fn conclusion(&self, campaign: Campaign, took: Millis) -> Conclusion {
        let progress = self.campaign.as_ref().expect("it is a campaign");
        let run = self.ledger.runs().next().expect("it is there");
        let jobs = || self.ledger.jobs_of(run.settings.id);
        let checked =
            |outcome| jobs().flat_map(|(_, row)| &row.checks).filter(|it| **it == Some(outcome)).count();
        let second_counts = checked(CheckOutcome::Agreed) + checked(CheckOutcome::Settled);
        let results: usize = jobs().map(|(_, row)| row.results.len()).sum();
        let is_lie = |job, counts| truth(job) != counts;
        let lies = jobs().flat_map(|(job, row)| row.results.iter().map(move |it| (job, it.result.counts)));
        let standing = jobs().filter_map(|(job, row)| Some((job, row.accepted()?.1.result.counts)));
        let accepted = jobs().filter_map(|(_, row)| Some(row.accepted()?.1.result.elapsed_us));
        let agreed = jobs().filter(|(_, row)| row.checks.last() == Some(&Some(CheckOutcome::Agreed)));
        let seconds = agreed.filter_map(|(_, row)| Some(row.seconds().next()?.result.elapsed_us));
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = |micros: u64| (micros / 1_000) as f64 / progress.trusted as f64;
        let (accepted, seconds) = (accepted.sum::<u64>(), seconds.sum::<u64>());
        let dispatch = self.coordinator.as_ref().expect("it is there at the end").scheduler.dispatch();
        let is_out = |worker: &&Worker| dispatch.distrusts(&worker.engine.machine()).is_some();
        let sums = dispatch.runs().next().map(nqueens_scheduler::Run::sums);
        Conclusion {
            campaign,
            took,
            deaths: progress.deaths,
            crashes: progress.crashes,
            distrusted: self.workers.iter().filter(is_out).count(),
            second_counts,
            duplicates: results - campaign.jobs as usize - second_counts,
            recounts: sums.map_or(0, |sums| sums.checks.recounted),
            differing: sums.map_or(0, |sums| sums.differing),
            lies: lies.filter(|(job, counts)| is_lie(*job, *counts)).count(),
            standing: standing.filter(|(job, counts)| is_lie(*job, *counts)).count(),
            efficiency: share(accepted),
            with_seconds: share(accepted + seconds),
        }
    }
}

impl Campaign {
    /// Lets it happen until the run is done.
    pub fn run(self) -> Conclusion {
        let mut world = World::campaign(self);
        loop {
            world.step();
            let is_beat = world.now.is_multiple_of(BEAT);
            if is_beat && world.ledger.runs().any(|run| run.state == Some(RunState::Done)) {
                break;
            }
        }
        let took = world.now;
        while !world.is_settled() {
            world.step();
        }
        world.look();
        world.invariants.conclude(&world.ledger);
        world.conclusion(self, took)
    }
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { campaign: Campaign { nodes, threads, .. }, took, deaths, crashes, distrusted, .. } = self;
        let Self { second_counts, duplicates, recounts, differing, lies, standing, .. } = self;
        let hours = Duration::from_millis(*took).as_secs_f64() / 3_600.0;
        write!(f, "{nodes} nodes of {threads} threads: done after {hours:.1} h, {deaths} deaths of nodes, ")?;
        write!(
            f,
            "{crashes} of the coordinator; {second_counts} second counts, {duplicates} other duplicates, "
        )?;
        write!(f, "{recounts} recounts, {differing} of them differ; {lies} lies, {standing} stand; ")?;
        let (efficiency, with_seconds) = (self.efficiency * 100.0, self.with_seconds * 100.0);
        write!(
            f,
            "{distrusted} nodes out; efficiency {efficiency:.1} %, {with_seconds:.1} % with second counts"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_campaign_confirms_is_right() {
        // Its invariants are looked at when it ends.
        let end = Campaign { jobs: 3_000, nodes: 8, threads: 4 }.run();
        assert!(end.lies > 0 && end.distrusted > 0 && end.second_counts >= 60, "{end}");
    }
}
