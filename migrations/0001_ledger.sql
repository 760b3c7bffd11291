-- The ledger of a coordinator: what is to be counted, who counts it, and what came out.
--
--   run --plan--> job --lease--> worker --report--> result --sum--> run.total
--
-- Three rules hold at every commit:
--   1. A job is 'done' if and only if it has exactly one accepted result, and no other result disagrees with it.
--   2. A job's epoch only grows, with every lease given out.
--   3. Results are only ever added. What becomes of one is its verdict; 'accepted' may turn into 'voided' once.
--
-- Numbers that can outgrow 63 bits (totals, sums over jobs) are decimal text; SQLite would turn them into
-- floating point. Times are milliseconds since 1970, UTC, for people to read: nothing is decided by them.

-- One row for each life of a coordinator process. Lease tokens name it, so that a database restored from a backup,
-- where epochs repeat, does not take old tokens for new ones.
CREATE TABLE coordinator (
    incarnation INTEGER PRIMARY KEY CHECK (incarnation > 0),
    build       TEXT    NOT NULL,
    started_at  INTEGER NOT NULL
) STRICT;

-- One count of one board.
CREATE TABLE run (
    id             INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND (1 << 48) - 1),
    n              INTEGER NOT NULL CHECK (n BETWEEN 1 AND 31),
    plan           TEXT    NOT NULL,
    -- The plan's one option: estimated work of a job.
    states_per_job INTEGER NOT NULL CHECK (states_per_job > 0),
    -- Number of jobs, and SHA-256 over all of them: the same N, plan and option give the same on every machine.
    -- Absent while the jobs are still being stored.
    jobs           INTEGER CHECK (jobs >= 0),
    fingerprint    BLOB    CHECK (length(fingerprint) = 32),
    -- Fixes the pseudo-random order in which the jobs leave.
    seed           INTEGER NOT NULL,
    -- Among active runs, higher goes first.
    priority       INTEGER NOT NULL DEFAULT 0,
    state          TEXT    NOT NULL CHECK (state IN ('planning', 'active', 'paused', 'cancelled', 'done', 'failed')),
    -- For people: which check a failed run did not pass.
    reason         TEXT,
    created_at     INTEGER NOT NULL,
    finished_at    INTEGER,
    -- The result, decimal. It exists if and only if the run is done.
    count2         TEXT,
    count4         TEXT,
    count8         TEXT,
    total          TEXT,
    -- What the result was held against: 'published' or 'symmetric' counts.
    checked        TEXT CHECK (checked IN ('published', 'symmetric')),
    CHECK ((state = 'planning') = (jobs IS NULL) AND (state = 'planning') = (fingerprint IS NULL)),
    CHECK ((state = 'done') = (total IS NOT NULL)),
    CHECK ((total IS NULL) = (count2 IS NULL) AND (total IS NULL) = (count4 IS NULL)
       AND (total IS NULL) = (count8 IS NULL) AND (total IS NULL) = (checked IS NULL)),
    CHECK ((state = 'failed') = (reason IS NOT NULL))
) STRICT;

-- Every worker process that ever registered; results point here for good.
CREATE TABLE worker (
    id            INTEGER PRIMARY KEY CHECK (id > 0),
    -- Drawn by the process at its start: registering twice is registering once.
    instance      BLOB    NOT NULL UNIQUE CHECK (length(instance) = 16),
    name          TEXT    NOT NULL,
    build         TEXT    NOT NULL,
    kernels       TEXT    NOT NULL,
    threads       INTEGER NOT NULL CHECK (threads > 0),
    registered_at INTEGER NOT NULL
) STRICT;

-- An independent piece of a run's work.
CREATE TABLE job (
    run         INTEGER NOT NULL REFERENCES run (id),
    -- Position in the plan, from 0.
    number      INTEGER NOT NULL CHECK (number >= 0),
    class       TEXT    NOT NULL,
    bound1      INTEGER NOT NULL CHECK (bound1 BETWEEN 0 AND 30),
    -- Prefixes of equal width: a byte with the width, then one byte a queen.
    prefixes    BLOB    NOT NULL,
    -- Estimated work.
    states      INTEGER NOT NULL CHECK (states > 0),
    -- Counts above these can't be right, whoever reports them.
    count2_max  INTEGER NOT NULL CHECK (count2_max >= 0),
    count4_max  INTEGER NOT NULL CHECK (count4_max >= 0),
    count8_max  INTEGER NOT NULL CHECK (count8_max >= 0),
    -- 0 ready, 1 leased, 2 done, 3 quarantined: a digit instead of a word, for there are millions.
    state       INTEGER NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
    -- Leases given out so far; the number of the latest.
    epoch       INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    -- Attempts that failed (a worker said so, or its counts could not be right), and leases that ran out.
    failures    INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    lapses      INTEGER NOT NULL DEFAULT 0 CHECK (lapses >= 0),
    -- The latest lease, while the job is leased.
    worker      INTEGER REFERENCES worker (id),
    incarnation INTEGER REFERENCES coordinator (incarnation),
    PRIMARY KEY (run, number),
    CHECK ((state = 1) = (worker IS NOT NULL) AND (state = 1) = (incarnation IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- Those few jobs that need somebody's eye.
CREATE INDEX job_quarantined ON job (run, number) WHERE state = 3;

-- Everything that was ever reported and names a job of ours, in the order of its commit. Append-only.
CREATE TABLE result (
    id          INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL,
    job         INTEGER NOT NULL,
    epoch       INTEGER NOT NULL CHECK (epoch > 0),
    incarnation INTEGER NOT NULL,
    worker      INTEGER NOT NULL REFERENCES worker (id),
    kernel      TEXT    NOT NULL,
    count2      INTEGER NOT NULL CHECK (count2 >= 0),
    count4      INTEGER NOT NULL CHECK (count4 >= 0),
    count8      INTEGER NOT NULL CHECK (count8 >= 0),
    -- Work done: states visited, and thread time in microseconds.
    states      INTEGER NOT NULL CHECK (states >= 0),
    elapsed_us  INTEGER NOT NULL CHECK (elapsed_us >= 0),
    -- 'voided' results were accepted once, until somebody found them in doubt.
    verdict     TEXT    NOT NULL CHECK (verdict IN ('accepted', 'voided', 'duplicate', 'conflict', 'implausible',
                                                    'set_aside')),
    reported_at INTEGER NOT NULL,
    FOREIGN KEY (run, job) REFERENCES job (run, number)
) STRICT;

-- At most one accepted result a job: the database itself refuses to count twice.
CREATE UNIQUE INDEX result_accepted ON result (run, job) WHERE verdict = 'accepted';

CREATE TRIGGER result_is_append_only_update BEFORE UPDATE ON result
WHEN (OLD.verdict, NEW.verdict) <> ('accepted', 'voided')
  OR (OLD.id, OLD.run, OLD.job, OLD.epoch, OLD.incarnation, OLD.worker, OLD.kernel, OLD.count2, OLD.count4, OLD.count8,
      OLD.states, OLD.elapsed_us, OLD.reported_at)
  IS NOT (NEW.id, NEW.run, NEW.job, NEW.epoch, NEW.incarnation, NEW.worker, NEW.kernel, NEW.count2, NEW.count4,
      NEW.count8, NEW.states, NEW.elapsed_us, NEW.reported_at)
BEGIN
    SELECT RAISE(ABORT, 'results are append-only');
END;
CREATE TRIGGER result_is_append_only_delete BEFORE DELETE ON result BEGIN
    SELECT RAISE(ABORT, 'results are append-only');
END;
