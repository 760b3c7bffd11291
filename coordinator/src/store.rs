//! Every SQL statement of the coordinator.
//!
//! Rows travel in batches as JSON arrays, packed and unpacked by SQLite itself: one statement for a thousand rows costs
//! little more than one for a single row.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Counts, Totals};
use nqueens_kernel::job::{Job, Weight};
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};
use nqueens_proto::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_proto::message::{EncodedJob, JobResult, Registration, Verdict};
use nqueens_proto::operator::{Checked, Outcome, WallTime};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnection, SqliteExecutor, SqlitePool};
use sqlx::{query, query_as, query_scalar};

use crate::dispatch::{Accepted, JobState, Moments, RunState, Slot};
use crate::error::{Error, damaged};

/// Rows read or written by one statement.
const ROWS_MAX: u32 = 10_000;

/// A wall clock reading, for the record.
pub(crate) fn wall_time() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::try_from(since.as_millis()).unwrap_or(WallTime::MAX)
}

/// A run's own row.
#[derive(Clone, Debug)]
pub struct RunRow {
    /// Its name.
    pub id: RunId,
    /// N, the kind of plan and the size of its jobs.
    pub plan: Plan,
    /// Number of jobs.
    pub jobs: u32,
    /// Of the plan.
    pub fingerprint: Fingerprint,
    /// Fixes the order of the jobs.
    pub seed: u64,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// What it is doing.
    pub state: RunState,
    /// Why it failed, if it did.
    pub reason: Option<String>,
    /// When it was submitted.
    pub created_at: WallTime,
    /// When it was done.
    pub finished_at: Option<WallTime>,
    /// The result, once it is done.
    pub outcome: Option<Outcome>,
}

/// A number from a column that the schema keeps within the range of its type.
fn within<Narrow: TryFrom<i64>>(column: &str, number: i64) -> Result<Narrow, Error> {
    Narrow::try_from(number).map_err(|_| damaged(format!("{column} is {number}")))
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(damaged)
}

/// A number for a column: everything that comes here was checked to be below 2^63.
fn column(number: u64) -> i64 {
    i64::try_from(number).expect("checked to be below 2^63 where it arrived")
}

fn json(rows: &impl Serialize) -> String {
    serde_json::to_string(rows).expect("plain rows")
}

fn rows_of<Row: for<'de> Deserialize<'de>>(text: &str) -> Result<Vec<Row>, Error> {
    serde_json::from_str(text).map_err(damaged)
}

/// Records this life of the coordinator.
pub(crate) async fn insert_incarnation(
    db: &mut SqliteConnection,
    incarnation: Incarnation,
    build: &str,
    now: WallTime,
) -> Result<(), Error> {
    let number = column(incarnation.get());
    query!("INSERT INTO coordinator (incarnation, build, started_at) VALUES (?, ?, ?)", number, build, now)
        .execute(db)
        .await?;
    Ok(())
}

/// Writes a run whose jobs follow: it stays `planning` until [`finish_planning`].
pub(crate) async fn insert_run(
    db: &mut SqliteConnection,
    id: RunId,
    plan: &Plan,
    seed: u64,
    priority: i32,
    now: WallTime,
) -> Result<(), Error> {
    let (run, n, kind) = (column(id.get()), plan.n().get(), plan.kind().name());
    let (states, seed) = (column(plan.states_per_job()), seed.cast_signed());
    query!(
        "INSERT INTO run (id, n, plan, states_per_job, seed, priority, state, created_at)
         VALUES (?, ?, ?, ?, ?, ?, 'planning', ?)",
        run,
        n,
        kind,
        states,
        seed,
        priority,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Writes the jobs of a plan from number `first` on.
pub(crate) async fn insert_jobs(
    db: &mut SqliteConnection,
    run: RunId,
    first: u32,
    jobs: &[(Job, Weight)],
) -> Result<(), Error> {
    let row = |(number, (job, weight)): (u32, &(Job, Weight))| {
        let Counts { count2, count4, count8 } = weight.counts_max;
        let prefixes = hex(&job.encode());
        (number, job.class().name(), job.bound1(), prefixes, weight.states, count2, count4, count8)
    };
    let rows = json(&(first..).zip(jobs).map(row).collect::<Vec<_>>());
    let run = column(run.get());
    let done = query!(
        "INSERT INTO job (run, number, class, bound1, prefixes, states, count2_max, count4_max, count8_max)
         SELECT ?, value ->> 0, value ->> 1, value ->> 2, unhex(value ->> 3), value ->> 4, value ->> 5, value ->> 6,
                value ->> 7
         FROM json_each(?)",
        run,
        rows
    )
    .execute(db)
    .await?;
    assert_eq!(done.rows_affected(), jobs.len() as u64, "every job of the batch is stored");
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes it");
        text
    })
}

/// All jobs of a run are stored: it becomes active.
pub(crate) async fn finish_planning(
    db: &mut SqliteConnection,
    run: RunId,
    jobs: u32,
    fingerprint: Fingerprint,
) -> Result<(), Error> {
    let (run, fingerprint) = (column(run.get()), fingerprint.0.to_vec());
    let done = query!(
        "UPDATE run SET state = 'active', jobs = ?1, fingerprint = ?2 WHERE id = ?3 AND state = 'planning'
           AND ?1 = (SELECT count(*) FROM job WHERE run = ?3)",
        jobs,
        fingerprint,
        run
    )
    .execute(db)
    .await?;
    assert_eq!(done.rows_affected(), 1, "the run was being planned, and all its jobs are stored");
    Ok(())
}

/// Removes the runs whose planning was cut short; nobody has seen them.
pub(crate) async fn delete_unplanned(db: &mut SqliteConnection) -> Result<(), Error> {
    query!("DELETE FROM job WHERE run IN (SELECT id FROM run WHERE state = 'planning')")
        .execute(&mut *db)
        .await?;
    query!("DELETE FROM run WHERE state = 'planning'").execute(db).await?;
    Ok(())
}

struct RunRecord {
    id: i64,
    n: i64,
    plan: String,
    states_per_job: i64,
    jobs: i64,
    fingerprint: Vec<u8>,
    seed: i64,
    priority: i64,
    state: String,
    reason: Option<String>,
    created_at: i64,
    finished_at: Option<i64>,
    count2: Option<String>,
    count4: Option<String>,
    count8: Option<String>,
    total: Option<String>,
    checked: Option<String>,
}

impl TryFrom<RunRecord> for RunRow {
    type Error = Error;

    fn try_from(row: RunRecord) -> Result<Self, Error> {
        let n = BoardSize::new(within("run.n", row.n)?).map_err(damaged)?;
        let kind = parsed::<PlanKind>(&row.plan)?;
        let outcome = match (row.count2, row.count4, row.count8, row.total, row.checked.as_deref()) {
            (Some(count2), Some(count4), Some(count8), Some(total), Some(checked)) => Some(Outcome {
                totals: Totals {
                    count2: parsed(&count2)?,
                    count4: parsed(&count4)?,
                    count8: parsed(&count8)?,
                },
                total: parsed(&total)?,
                checked: if checked == "published" { Checked::Published } else { Checked::Symmetric },
            }),
            _ => None,
        };
        let fingerprint =
            row.fingerprint.try_into().map_err(|_| damaged("run.fingerprint has not 32 bytes"))?;
        Ok(Self {
            id: RunId::new(within("run.id", row.id)?).ok_or_else(|| damaged("run.id is out of range"))?,
            plan: Plan::with_states_per_job(n, kind, within("run.states_per_job", row.states_per_job)?),
            jobs: within("run.jobs", row.jobs)?,
            fingerprint: Fingerprint(fingerprint),
            seed: row.seed.cast_unsigned(),
            priority: within("run.priority", row.priority)?,
            state: RunState::from_name(&row.state)
                .ok_or_else(|| damaged(format!("run.state is {}", row.state)))?,
            reason: row.reason,
            created_at: row.created_at,
            finished_at: row.finished_at,
            outcome,
        })
    }
}

/// All runs that are planned, oldest first.
pub(crate) async fn runs(db: impl SqliteExecutor<'_>) -> Result<Vec<RunRow>, Error> {
    let rows = query_as!(
        RunRecord,
        r#"SELECT id AS "id!", n, plan, states_per_job, jobs AS "jobs!", fingerprint AS "fingerprint!", seed,
                  priority, state, reason, created_at, finished_at, count2, count4, count8, total, checked
           FROM run WHERE state <> 'planning' ORDER BY created_at, id"#
    )
    .fetch_all(db)
    .await?;
    rows.into_iter().map(RunRow::try_from).collect()
}

/// The slots of a run's jobs, by number.
pub(crate) async fn slots(db: &SqlitePool, run: RunId, jobs: u32) -> Result<Vec<Slot>, Error> {
    let id = column(run.get());
    let mut slots = Vec::with_capacity(jobs as usize);
    for first in (0..jobs).step_by(ROWS_MAX as usize) {
        let text = query_scalar!(
            r#"SELECT json_group_array(json_array(number, state, epoch, failures, lapses, states)) AS "rows!: String"
               FROM (SELECT * FROM job WHERE run = ?1 AND number >= ?2 AND number < ?2 + ?3 ORDER BY number)"#,
            id,
            first,
            ROWS_MAX
        )
        .fetch_one(db)
        .await?;
        for (number, state, epoch, failures, lapses, estimate) in
            rows_of::<(u32, i64, u32, u16, u16, u64)>(&text)?
        {
            if number as usize != slots.len() {
                return Err(damaged(format!(
                    "job {number} of run {run} stands where {} should",
                    slots.len()
                )));
            }
            let state =
                JobState::from_stored(state).ok_or_else(|| damaged(format!("job.state is {state}")))?;
            slots.push(Slot { state, epoch, failures, lapses, estimate });
        }
    }
    if slots.len() != jobs as usize {
        return Err(damaged(format!("run {run} has {} jobs instead of {jobs}", slots.len())));
    }
    Ok(slots)
}

/// All jobs that were leased when the coordinator last stopped, with their holders.
pub(crate) async fn leases(db: &SqlitePool) -> Result<Vec<(WorkerId, LeaseToken)>, Error> {
    let rows = query!(
        r#"SELECT run, number, epoch, worker AS "worker!", incarnation AS "incarnation!" FROM job WHERE state = 1"#
    )
    .fetch_all(db)
    .await?;
    rows.into_iter()
        .map(|row| Ok((worker_id(row.worker)?, token(row.run, row.number, row.epoch, row.incarnation)?)))
        .collect()
}

fn worker_id(number: i64) -> Result<WorkerId, Error> {
    WorkerId::new(within("worker", number)?).ok_or_else(|| damaged("a worker's id is zero"))
}

fn run_id(number: i64) -> Result<RunId, Error> {
    RunId::new(within("run", number)?).ok_or_else(|| damaged("a run's id is out of range"))
}

fn token(run: i64, job: i64, epoch: i64, incarnation: i64) -> Result<LeaseToken, Error> {
    Ok(LeaseToken {
        job: JobId { run: run_id(run)?, number: within("job", job)? },
        epoch: NonZeroU32::new(within("epoch", epoch)?).ok_or_else(|| damaged("a lease's epoch is zero"))?,
        incarnation: Incarnation::new(within("incarnation", incarnation)?)
            .ok_or_else(|| damaged("an incarnation is zero"))?,
    })
}

/// What the accepted results of one run come to; those of jobs in quarantine are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AcceptedSums {
    /// How many there are.
    pub results: u64,
    /// Their orbits by size.
    pub orbits: Totals,
    /// States visited.
    pub states: u128,
    /// Thread time, in microseconds.
    pub elapsed_us: u128,
    /// For estimates.
    pub moments: Moments,
}

/// Sums over the accepted results of every run: in 128 bits, checked.
pub(crate) async fn accepted_sums(
    db: impl SqliteExecutor<'_> + Copy,
) -> Result<HashMap<RunId, AcceptedSums>, Error> {
    let mut sums = HashMap::<RunId, AcceptedSums>::new();
    let mut last = 0;
    loop {
        let text = query_scalar!(
            r#"SELECT json_group_array(json_array(id, run, json_array(count2, count4, count8, states, elapsed_us, estimate)))
                      AS "rows!: String"
               FROM (SELECT result.*, job.states AS estimate
                     FROM result JOIN job ON job.run = result.run AND job.number = result.job
                     WHERE id > ?1 AND verdict = 'accepted' AND job.state = 2 ORDER BY id LIMIT ?2)"#,
            last,
            ROWS_MAX
        )
        .fetch_one(db)
        .await?;
        let rows: Vec<(i64, i64, [u64; 6])> = rows_of(&text)?;
        let Some(&(id, ..)) = rows.last() else { break };
        last = id;
        for (_, run, [count2, count4, count8, states, elapsed_us, estimate]) in rows {
            let sum = sums.entry(run_id(run)?).or_default();
            let counts = Counts { count2, count4, count8 };
            sum.results += 1;
            sum.orbits = sum.orbits.checked_add(counts).map_err(damaged)?;
            sum.states += u128::from(states);
            sum.elapsed_us += u128::from(elapsed_us);
            sum.moments.add(1.0, estimate, counts, elapsed_us);
        }
    }
    Ok(sums)
}

/// Registers a worker's process, once.
pub(crate) async fn upsert_worker(
    db: &mut SqliteConnection,
    worker: &Registration,
    now: WallTime,
) -> Result<WorkerId, Error> {
    let instance = worker.instance.to_vec();
    let kernels = worker.kernels.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let id = query_scalar!(
        r#"INSERT INTO worker (instance, name, build, kernels, threads, registered_at) VALUES (?, ?, ?, ?, ?, ?)
           ON CONFLICT (instance) DO UPDATE SET name = excluded.name RETURNING id AS "id!""#,
        instance,
        worker.name,
        worker.build,
        kernels,
        worker.threads,
        now
    )
    .fetch_one(db)
    .await?;
    worker_id(id)
}

/// All workers that ever registered, each with its counting threads.
pub(crate) async fn workers(db: &SqlitePool) -> Result<Vec<(WorkerId, u32)>, Error> {
    let rows = query!("SELECT id, threads FROM worker").fetch_all(db).await?;
    rows.into_iter().map(|row| Ok((worker_id(row.id)?, within("worker.threads", row.threads)?))).collect()
}

/// A worker as it registered, with what the ledger has of it.
#[derive(Clone, Debug)]
pub struct WorkerRow {
    /// Its name in the ledger.
    pub id: WorkerId,
    /// What its owner calls it.
    pub name: String,
    /// Program version and source revision.
    pub build: String,
    /// Its engines, the one in use first, separated by commas.
    pub kernels: String,
    /// Its counting threads.
    pub threads: u32,
    /// When it registered.
    pub registered_at: WallTime,
}

/// All workers that ever registered, oldest first.
pub(crate) async fn worker_rows(db: &SqlitePool) -> Result<Vec<WorkerRow>, Error> {
    let rows = query!("SELECT id, name, build, kernels, threads, registered_at FROM worker ORDER BY id");
    let rows = rows.fetch_all(db).await?;
    rows.into_iter()
        .map(|row| {
            Ok(WorkerRow {
                id: worker_id(row.id)?,
                name: row.name,
                build: row.build,
                kernels: row.kernels,
                threads: within("worker.threads", row.threads)?,
                registered_at: row.registered_at,
            })
        })
        .collect()
}

/// The accepted results of these jobs stand no longer.
pub(crate) async fn void_results(db: &mut SqliteConnection, jobs: &[JobId]) -> Result<(), Error> {
    let jobs = json_of_ids(jobs.iter().copied());
    query!(
        "UPDATE result SET verdict = 'voided' FROM json_each(?) AS job
         WHERE result.run = job.value ->> 0 AND result.job = job.value ->> 1 AND verdict = 'accepted'",
        jobs
    )
    .execute(db)
    .await?;
    Ok(())
}

/// What a result is judged by: the most that its job can count, and the result that stands for the job already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedJob {
    pub(crate) counts_max: Counts,
    pub(crate) accepted: Option<Accepted>,
}

fn json_of_ids(ids: impl Iterator<Item = JobId>) -> String {
    json(&ids.map(|id| (id.run.get(), id.number)).collect::<Vec<_>>())
}

fn job_id(run: i64, number: i64) -> Result<JobId, Error> {
    Ok(JobId { run: run_id(run)?, number: within("job.number", number)? })
}

/// Counts as the schema keeps them: not negative.
fn counts(count2: i64, count4: i64, count8: i64) -> Result<Counts, Error> {
    Ok(Counts {
        count2: within("count2", count2)?,
        count4: within("count4", count4)?,
        count8: within("count8", count8)?,
    })
}

/// Looks up what results are judged by; jobs that do not exist are left out.
pub(crate) async fn reported_jobs(
    db: &mut SqliteConnection,
    ids: impl Iterator<Item = JobId>,
) -> Result<HashMap<JobId, ReportedJob>, Error> {
    let wanted = json_of_ids(ids);
    let rows = query!(
        r#"SELECT job.run AS "run!", job.number AS "number!", job.count2_max AS "count2_max!",
                  job.count4_max AS "count4_max!", job.count8_max AS "count8_max!", result.worker AS "worker?",
                  result.epoch AS "epoch?", result.incarnation AS "incarnation?", result.count2 AS "count2?",
                  result.count4 AS "count4?", result.count8 AS "count8?", result.states AS "states?",
                  result.elapsed_us AS "elapsed_us?"
           FROM json_each(?) AS wanted
           JOIN job ON job.run = wanted.value ->> 0 AND job.number = wanted.value ->> 1
           LEFT JOIN result ON result.run = job.run AND result.job = job.number AND result.verdict = 'accepted'"#,
        wanted
    )
    .fetch_all(db)
    .await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let lease = row.worker.zip(row.epoch).zip(row.incarnation);
        let work = row.states.zip(row.elapsed_us);
        let accepted = match lease.zip(row.count2.zip(row.count4).zip(row.count8)).zip(work) {
            None => None,
            Some(((((worker, epoch), incarnation), ((count2, count4), count8)), (states, elapsed_us))) => {
                let LeaseToken { epoch, incarnation, .. } = token(row.run, row.number, epoch, incarnation)?;
                Some(Accepted {
                    worker: worker_id(worker)?,
                    epoch,
                    incarnation,
                    counts: counts(count2, count4, count8)?,
                    states: within("result.states", states)?,
                    elapsed_us: within("result.elapsed_us", elapsed_us)?,
                })
            }
        };
        let counts_max = counts(row.count2_max, row.count4_max, row.count8_max)?;
        found.insert(job_id(row.run, row.number)?, ReportedJob { counts_max, accepted });
    }
    Ok(found)
}

/// Looks up what jobs are; those that do not exist are left out.
pub(crate) async fn encoded_jobs(
    db: &mut SqliteConnection,
    ids: impl Iterator<Item = JobId>,
) -> Result<HashMap<JobId, EncodedJob>, Error> {
    let wanted = json_of_ids(ids);
    let rows = query!(
        r#"SELECT job.run AS "run!", job.number AS "number!", run.n AS "n!", job.class AS "class!",
                  job.bound1 AS "bound1!", job.prefixes AS "prefixes!"
           FROM json_each(?) AS wanted
           JOIN job ON job.run = wanted.value ->> 0 AND job.number = wanted.value ->> 1
           JOIN run ON run.id = job.run"#,
        wanted
    )
    .fetch_all(db)
    .await?;
    let job = |row: (i64, i64, i64, String, i64, Vec<u8>)| {
        let (run, number, n, class, bound1, prefixes) = row;
        Ok((job_id(run, number)?, encoded_job(n, &class, bound1, prefixes)?))
    };
    rows.into_iter()
        .map(|row| job((row.run, row.number, row.n, row.class, row.bound1, row.prefixes)))
        .collect()
}

fn encoded_job(n: i64, class: &str, bound1: i64, prefixes: Vec<u8>) -> Result<EncodedJob, Error> {
    let n = BoardSize::new(within("run.n", n)?).map_err(damaged)?;
    Ok(EncodedJob { n, class: parsed(class)?, bound1: within("job.bound1", bound1)?, prefixes })
}

/// A job's slot, and the lease on it.
pub(crate) type ChangedJob = (JobId, Slot, Option<(WorkerId, Incarnation)>);

/// Writes what became of jobs.
pub(crate) async fn update_jobs(db: &mut SqliteConnection, changes: &[ChangedJob]) -> Result<(), Error> {
    let row = |(id, slot, lease): &ChangedJob| {
        let lease = lease.map(|(worker, incarnation)| (worker.get(), incarnation.get()));
        let (run, state) = (id.run.get(), slot.state as u8);
        (
            run,
            id.number,
            state,
            slot.epoch,
            slot.failures,
            slot.lapses,
            lease.map(|l| l.0),
            lease.map(|l| l.1),
        )
    };
    let rows = json(&changes.iter().map(row).collect::<Vec<_>>());
    let done = query!(
        "UPDATE job SET state = new.state, epoch = new.epoch, failures = new.failures, lapses = new.lapses,
                        worker = new.worker, incarnation = new.incarnation
         FROM (SELECT value ->> 0 AS run, value ->> 1 AS number, value ->> 2 AS state, value ->> 3 AS epoch,
                      value ->> 4 AS failures, value ->> 5 AS lapses, value ->> 6 AS worker, value ->> 7 AS incarnation
               FROM json_each(?)) AS new
         WHERE job.run = new.run AND job.number = new.number AND job.epoch <= new.epoch",
        rows
    )
    .execute(db)
    .await?;
    assert_eq!(
        done.rows_affected(),
        changes.len() as u64,
        "every changed job is there, and no epoch goes back"
    );
    Ok(())
}

/// A result with what became of it.
pub(crate) type JudgedResult = (WorkerId, JobResult, Verdict);

/// Adds results to the ledger.
pub(crate) async fn insert_results(
    db: &mut SqliteConnection,
    results: &[JudgedResult],
    now: WallTime,
) -> Result<(), Error> {
    let row = |(worker, result, verdict): &JudgedResult| {
        let LeaseToken { job, epoch, incarnation } = result.token;
        let Counts { count2, count4, count8 } = result.counts;
        let lease = (job.run.get(), job.number, epoch.get(), incarnation.get(), worker.get());
        (
            lease,
            result.kernel.name(),
            (count2, count4, count8),
            result.states,
            result.elapsed_us,
            name_of(*verdict),
        )
    };
    let rows = json(&results.iter().map(row).collect::<Vec<_>>());
    let done = query!(
        "INSERT INTO result (run, job, epoch, incarnation, worker, kernel, count2, count4, count8, states, elapsed_us,
                             verdict, reported_at)
         SELECT value ->> '$[0][0]', value ->> '$[0][1]', value ->> '$[0][2]', value ->> '$[0][3]',
                value ->> '$[0][4]', value ->> 1, value ->> '$[2][0]', value ->> '$[2][1]', value ->> '$[2][2]',
                value ->> 3, value ->> 4, value ->> 5, ?2
         FROM json_each(?1)",
        rows,
        now
    )
    .execute(db)
    .await?;
    assert_eq!(done.rows_affected(), results.len() as u64, "every result is stored");
    Ok(())
}

fn name_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Duplicate => "duplicate",
        Verdict::Conflict => "conflict",
        Verdict::Implausible => "implausible",
        Verdict::SetAside => "set_aside",
        Verdict::Unknown => unreachable!("results of nothing that we know are not kept"),
    }
}

/// Changes what a run is doing; its total, if it had one, is withdrawn.
pub(crate) async fn update_run_state(
    db: &mut SqliteConnection,
    run: RunId,
    state: RunState,
    reason: Option<&str>,
) -> Result<(), Error> {
    assert_ne!(state, RunState::Done, "a run is done by finish_run");
    let (run, state) = (column(run.get()), state.name());
    let done = query!(
        "UPDATE run SET state = ?, reason = ?, finished_at = NULL, count2 = NULL, count4 = NULL, count8 = NULL,
                        total = NULL, checked = NULL WHERE id = ?",
        state,
        reason,
        run
    )
    .execute(db)
    .await?;
    assert_eq!(done.rows_affected(), 1, "the run exists");
    Ok(())
}

/// Gives a run its total. The database itself makes sure that no job is open.
pub(crate) async fn finish_run(
    db: &mut SqliteConnection,
    run: RunId,
    outcome: &Outcome,
    now: WallTime,
) -> Result<(), Error> {
    let id = column(run.get());
    let Totals { count2, count4, count8 } = outcome.totals;
    let [count2, count4, count8, total] =
        [count2, count4, count8, outcome.total].map(|count| count.to_string());
    let checked = outcome.checked.name();
    let done = query!(
        "UPDATE run SET state = 'done', finished_at = ?1, count2 = ?2, count4 = ?3, count8 = ?4, total = ?5,
                        checked = ?6
         WHERE id = ?7 AND state IN ('active', 'paused')
           AND NOT EXISTS (SELECT 1 FROM job WHERE run = ?7 AND state <> 2)",
        now,
        count2,
        count4,
        count8,
        total,
        checked,
        id
    )
    .execute(db)
    .await?;
    assert_eq!(done.rows_affected(), 1, "the run was open and all its jobs are done");
    Ok(())
}

/// One job of a run with its accepted result, if it has one.
#[derive(Clone, Debug)]
pub struct LedgerRow {
    /// Its number in the plan.
    pub number: u32,
    /// What it is.
    pub job: EncodedJob,
    /// Where it stands.
    pub state: JobState,
    /// What it came to.
    pub accepted: Option<LedgerResult>,
}

/// An accepted result, as it is exported.
#[derive(Clone, Debug)]
pub struct LedgerResult {
    /// The orbits found.
    pub counts: Counts,
    /// Who counted.
    pub worker: String,
    /// The engine that counted.
    pub kernel: String,
    /// States visited.
    pub states: u64,
    /// Thread time, in microseconds.
    pub elapsed_us: u64,
}

/// Up to 10,000 jobs of a run from number `first` on, with their accepted results; empty past the last.
pub(crate) async fn ledger(db: &SqlitePool, run: RunId, first: u32) -> Result<Vec<LedgerRow>, Error> {
    let id = column(run.get());
    let rows = query!(
        r#"SELECT job.number, run.n, job.class, job.bound1, job.prefixes, job.state, worker.name AS "worker?",
                  result.kernel AS "kernel?", result.count2 AS "count2?", result.count4 AS "count4?",
                  result.count8 AS "count8?", result.states AS "states?", result.elapsed_us AS "elapsed_us?"
           FROM job JOIN run ON run.id = job.run
           LEFT JOIN result ON result.run = job.run AND result.job = job.number AND result.verdict = 'accepted'
           LEFT JOIN worker ON worker.id = result.worker
           WHERE job.run = ?1 AND job.number >= ?2 AND job.number < ?2 + ?3 ORDER BY job.number"#,
        id,
        first,
        ROWS_MAX
    )
    .fetch_all(db)
    .await?;
    let mut ledger = Vec::with_capacity(rows.len());
    for row in rows {
        let found = (row.worker, row.kernel, row.count2, row.count4, row.count8, row.states, row.elapsed_us);
        let accepted = match found {
            (
                Some(worker),
                Some(kernel),
                Some(count2),
                Some(count4),
                Some(count8),
                Some(states),
                Some(elapsed_us),
            ) => {
                let counts = counts(count2, count4, count8)?;
                let (states, elapsed_us) =
                    (within("result.states", states)?, within("elapsed_us", elapsed_us)?);
                Some(LedgerResult { counts, worker, kernel, states, elapsed_us })
            }
            _ => None,
        };
        ledger.push(LedgerRow {
            number: within("job.number", row.number)?,
            job: encoded_job(row.n, &row.class, row.bound1, row.prefixes)?,
            state: JobState::from_stored(row.state).ok_or_else(|| damaged("job.state is out of range"))?,
            accepted,
        });
    }
    Ok(ledger)
}
