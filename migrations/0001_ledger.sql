-- What is to be counted, who counts it, and what came out.
--
--   run --plan--> job --lease--> worker --report--> result --sum--> run.total
--
-- Three rules hold at every commit:
--   1. A job is 'done' if and only if it has exactly one accepted result, and no second count that differs is undecided.
--   2. A job's epoch only grows, with every lease given out.
--   3. Results are only ever added. A verdict can change once, from 'accepted' to 'voided'.
--
-- Numbers that can outgrow 63 bits (totals, sums over jobs) are decimal text; SQLite would turn them into
-- floating point. Times are milliseconds since 1970, UTC, for people to read: nothing is decided by them.

-- The key of this database: tokens of leases are made with it, and it decides what is drawn to be counted again. Backups have
-- it, exported ledgers do not.
CREATE TABLE secret (
    id  INTEGER PRIMARY KEY CHECK (id = 1),
    key BLOB    NOT NULL CHECK (length(key) = 32)
) STRICT;

-- One row for each life of a coordinator process.
CREATE TABLE coordinator (
    incarnation INTEGER PRIMARY KEY CHECK (incarnation > 0),
    build       TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    -- The order of the lives: incarnations are random, and the time of day can jump. Only the newest life may write, which
    -- every transaction of a coordinator checks.
    life        INTEGER NOT NULL UNIQUE
) STRICT;

-- One count of one board.
CREATE TABLE run (
    id             INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND (1 << 48) - 1),
    n              INTEGER NOT NULL CHECK (n BETWEEN 1 AND 31),
    plan           TEXT    NOT NULL,
    -- Estimated work of a job.
    states_per_job INTEGER NOT NULL CHECK (states_per_job > 0),
    -- The board of a plan 'cells', as it is drawn: N lines from the top, '.' open, '#' blocked, 'Q' a given queen. A run on
    -- such a board counts plain solutions: its count2, count4 and count8 are 0.
    cells          TEXT    CHECK ((plan = 'cells') = (cells IS NOT NULL)),
    -- Number of jobs, and SHA-256 over all of them: the same N, plan and option give the same on every machine.
    -- NULL while the jobs are being stored.
    jobs           INTEGER CHECK (jobs >= 0),
    fingerprint    BLOB    CHECK (length(fingerprint) = 32),
    -- Of the pseudo-random order in which the jobs leave.
    seed           INTEGER NOT NULL,
    -- Among active runs, higher goes first.
    priority       INTEGER NOT NULL DEFAULT 0,
    -- This share of the results is counted twice, in millionths; 0 for none.
    replicate_ppm  INTEGER NOT NULL DEFAULT 0 CHECK (replicate_ppm BETWEEN 0 AND 1000000),
    state          TEXT    NOT NULL CHECK (state IN ('planning', 'active', 'paused', 'cancelled', 'done', 'failed')),
    -- The check that a failed run did not pass, for people.
    reason         TEXT,
    created_at     INTEGER NOT NULL,
    -- When the first job was leased; NULL until then.
    started_at     INTEGER,
    finished_at    INTEGER,
    -- The result, as operators' JSON has it: the counts and what they were compared with, and where no published count confirms
    -- the total, the coordinator's estimate of it and the second counts and recounts that there must be. It exists if and only
    -- if the run is done.
    outcome        TEXT CHECK (json_valid(outcome)),
    total          TEXT AS (outcome ->> 'total'),
    -- Recounts: jobs, or parts, that had the same counts as the result that stands, once the run is done; those that had
    -- others; and the processor time of all, in microseconds.
    recounts_agreed    INTEGER NOT NULL DEFAULT 0 CHECK (recounts_agreed >= 0),
    recounts_differing INTEGER NOT NULL DEFAULT 0 CHECK (recounts_differing >= 0),
    recounts_us        INTEGER NOT NULL DEFAULT 0 CHECK (recounts_us >= 0),
    CHECK ((state = 'planning') = (jobs IS NULL) AND (state = 'planning') = (fingerprint IS NULL)),
    CHECK ((state = 'done') = (outcome IS NOT NULL)),
    CHECK ((state = 'failed') = (reason IS NOT NULL))
) STRICT;

-- Every worker process that ever registered. Rows stay: results refer to them.
CREATE TABLE worker (
    id            INTEGER PRIMARY KEY CHECK (id > 0),
    -- Drawn by the process at its start: registering twice is registering once.
    instance      BLOB    NOT NULL UNIQUE CHECK (length(instance) = 16),
    -- Drawn by the coordinator when the process registered; it stands in every later call.
    secret        BLOB    NOT NULL CHECK (length(secret) = 16),
    -- Name of the token or certificate under which it registered; 'shared' is the one token of all, or none.
    credential    TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    build         TEXT    NOT NULL,
    -- Names of engines, the one in use first. They are kept as they came, known to this program or not: 1 to 32 lower-case
    -- letters, digits and hyphens.
    kernels       TEXT    NOT NULL,
    -- Of the engine in use: its family (a check is better made by another one), instruction set or device for people, and
    -- states per second of all threads when it was tried. All three are NULL where the worker's program does not say.
    family        TEXT,
    device        TEXT    CHECK ((device IS NULL) = (family IS NULL)),
    states_per_s  INTEGER CHECK ((states_per_s IS NULL) = (family IS NULL) AND (states_per_s IS NULL OR states_per_s > 0)),
    threads       INTEGER NOT NULL CHECK (threads > 0),
    registered_at INTEGER NOT NULL
) STRICT;

-- An independent piece of a run's work.
CREATE TABLE job (
    run           INTEGER NOT NULL REFERENCES run (id),
    -- Position in the plan, from 0.
    number        INTEGER NOT NULL CHECK (number >= 0),
    class         TEXT    NOT NULL,
    bound1        INTEGER NOT NULL CHECK (bound1 BETWEEN 0 AND 30),
    -- Prefixes of equal width: a byte with the width, then one byte a queen. In a plan 'cells' the byte with the width is
    -- followed by the columns of each row where a queen may stand: N masks of 4 bytes, big-endian. In a plan 'colours': the
    -- byte 8, then the first row set and the first after the last, four bytes each, big-endian.
    prefixes      BLOB    NOT NULL,
    -- Estimated work.
    states        INTEGER NOT NULL CHECK (states > 0),
    -- Counts above these can't be right, whoever reports them. solutions_max is 0 for jobs that find orbits.
    count2_max    INTEGER NOT NULL CHECK (count2_max >= 0),
    count4_max    INTEGER NOT NULL CHECK (count4_max >= 0),
    count8_max    INTEGER NOT NULL CHECK (count8_max >= 0),
    solutions_max INTEGER NOT NULL CHECK (solutions_max >= 0),
    -- 0 ready, 1 leased, 2 done, 3 quarantined: a digit instead of a word, for there are millions.
    state         INTEGER NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
    -- 1 if the result of a done job was counted alike under another credential.
    confirmed     INTEGER NOT NULL DEFAULT 0 CHECK (confirmed IN (0, 1) AND (confirmed = 0 OR state = 2)),
    -- Parts of a done job that the coordinator has recounted to the same, up to 64; 255 if all of it. 254 if it has counted all
    -- of it, but not because it was drawn: no recount that counts.
    recounted     INTEGER NOT NULL DEFAULT 0 CHECK (recounted BETWEEN 0 AND 255 AND (recounted = 0 OR state = 2)),
    -- Number of the latest lease; 0 before the first, which has any number.
    epoch         INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    -- Attempts that failed (the worker said so, or its counts could not be right), and leases that expired.
    failures      INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    lapses        INTEGER NOT NULL DEFAULT 0 CHECK (lapses >= 0),
    -- The latest lease, while the job is leased.
    worker        INTEGER REFERENCES worker (id),
    PRIMARY KEY (run, number),
    CHECK ((state = 1) = (worker IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- Few jobs are ever quarantined.
CREATE INDEX job_quarantined ON job (run, number) WHERE state = 3;

-- Every accepted result, and every second count that was asked for, in the order of their commits. Append-only.
CREATE TABLE result (
    id          INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL,
    job         INTEGER NOT NULL,
    epoch       INTEGER NOT NULL CHECK (epoch > 0),
    worker      INTEGER NOT NULL REFERENCES worker (id),
    kernel      TEXT    NOT NULL,
    count2      INTEGER NOT NULL CHECK (count2 >= 0),
    count4      INTEGER NOT NULL CHECK (count4 >= 0),
    count8      INTEGER NOT NULL CHECK (count8 >= 0),
    -- Solutions that stand in none of the three counts.
    solutions   INTEGER NOT NULL CHECK (solutions >= 0),
    -- The counts of each part of the job: an array of [COUNT2, COUNT4, COUNT8, solutions], which add up to those above. A job
    -- too large to be counted twice is checked by parts. NULL: the job is one part.
    parts       TEXT    CHECK (json_array_length(parts) BETWEEN 2 AND 64),
    -- States visited; time of the counting threads by the clock, and their processor time (NULL: not measured), in
    -- microseconds.
    states      INTEGER NOT NULL CHECK (states >= 0),
    elapsed_us  INTEGER NOT NULL CHECK (elapsed_us >= 0),
    cpu_us      INTEGER CHECK (cpu_us >= 0),
    -- 'voided' results were accepted until they were found in doubt. A second count is a 'duplicate' or a 'conflict' of the
    -- result that was accepted at the time.
    verdict     TEXT    NOT NULL CHECK (verdict IN ('accepted', 'voided', 'duplicate', 'conflict')),
    reported_at INTEGER NOT NULL,
    FOREIGN KEY (run, job) REFERENCES job (run, number)
) STRICT;

-- At most one accepted result a job: the database itself refuses to count twice.
CREATE UNIQUE INDEX result_accepted ON result (run, job) WHERE verdict = 'accepted';

-- Results that don't stand are few, and are looked up by their job: when a coordinator starts, and for exports.
CREATE INDEX result_other ON result (run, job) WHERE verdict <> 'accepted';

-- What a machine has counted is looked up when it turns out to be wrong: lies must not cost a look at everybody's results.
CREATE INDEX result_of_worker ON result (worker);

CREATE TRIGGER result_is_append_only_update BEFORE UPDATE ON result
WHEN (OLD.verdict, NEW.verdict) <> ('accepted', 'voided')
  OR (OLD.id, OLD.run, OLD.job, OLD.epoch, OLD.worker, OLD.kernel, OLD.count2, OLD.count4, OLD.count8,
      OLD.solutions, OLD.parts, OLD.states, OLD.elapsed_us, OLD.cpu_us, OLD.reported_at)
  IS NOT (NEW.id, NEW.run, NEW.job, NEW.epoch, NEW.worker, NEW.kernel, NEW.count2, NEW.count4,
      NEW.count8, NEW.solutions, NEW.parts, NEW.states, NEW.elapsed_us, NEW.cpu_us, NEW.reported_at)
BEGIN
    SELECT RAISE(ABORT, 'results are append-only');
END;
CREATE TRIGGER result_is_append_only_delete BEFORE DELETE ON result BEGIN
    SELECT RAISE(ABORT, 'results are append-only');
END;

-- Results that stand, as the scheduler knows them: one JSON array each.
CREATE VIEW accepted_result AS
SELECT run, job, worker, json_array(run, job, json_array(worker, epoch), kernel, json_array(count2, count4, count8, solutions),
                                    json_array(states, elapsed_us, coalesce(cpu_us, elapsed_us))) AS record
FROM result WHERE verdict = 'accepted';

-- Results as exported ledgers have them: one JSON object each (docs/ledger.md).
CREATE VIEW ledger_result AS
SELECT id, run, job, verdict, coalesce(json_array_length(parts), 1) AS parts,
       json_object('counts', json_object('count2', CAST(count2 AS TEXT), 'count4', CAST(count4 AS TEXT),
                                         'count8', CAST(count8 AS TEXT), 'solutions', CAST(solutions AS TEXT)),
                   'kernel', kernel, 'worker', worker, 'epoch', epoch, 'states', CAST(states AS TEXT),
                   'elapsed_us', CAST(elapsed_us AS TEXT), 'cpu_us', CAST(cpu_us AS TEXT),
                   'reported_at_ms', reported_at) AS object
FROM result;

-- Second counts: an accepted result that another machine is to count, too. Append-only; at most one is open for a job.
CREATE TABLE recheck (
    id      INTEGER PRIMARY KEY,
    run     INTEGER NOT NULL,
    job     INTEGER NOT NULL,
    -- NULL while it is open. 'agreed': both counted the same. 'settled': they differed, and the coordinator counted the job.
    -- 'unmade': the run ended, and nobody had made it. 'dropped': the result was taken back.
    outcome TEXT CHECK (outcome IN ('agreed', 'settled', 'unmade', 'dropped')),
    FOREIGN KEY (run, job) REFERENCES job (run, number)
) STRICT;

CREATE UNIQUE INDEX recheck_open ON recheck (run, job) WHERE outcome IS NULL;

CREATE TRIGGER recheck_is_append_only_update BEFORE UPDATE ON recheck
WHEN OLD.outcome IS NOT NULL OR (OLD.id, OLD.run, OLD.job) IS NOT (NEW.id, NEW.run, NEW.job)
BEGIN
    SELECT RAISE(ABORT, 'checks are append-only');
END;
CREATE TRIGGER recheck_is_append_only_delete BEFORE DELETE ON recheck BEGIN
    SELECT RAISE(ABORT, 'checks are append-only');
END;

-- No total while a check is open.
CREATE TRIGGER run_is_checked BEFORE UPDATE OF state ON run
WHEN NEW.state = 'done' AND EXISTS (SELECT 1 FROM recheck WHERE run = NEW.id AND outcome IS NULL)
BEGIN
    SELECT RAISE(ABORT, 'a check is open');
END;

-- What the coordinator has counted itself: whole jobs, or parts. Append-only.
CREATE TABLE recount (
    id         INTEGER PRIMARY KEY,
    run        INTEGER NOT NULL,
    job        INTEGER NOT NULL,
    -- Number of the part; NULL for a whole job.
    part       INTEGER CHECK (part BETWEEN 0 AND 63),
    -- The engine that counted.
    kernel     TEXT    NOT NULL,
    -- Whether the accepted result had the same counts.
    agrees     INTEGER NOT NULL CHECK (agrees IN (0, 1)),
    -- Processor time, in microseconds.
    elapsed_us INTEGER NOT NULL CHECK (elapsed_us >= 0),
    counted_at INTEGER NOT NULL,
    FOREIGN KEY (run, job) REFERENCES job (run, number)
) STRICT;

CREATE INDEX recount_of_job ON recount (run, job);

CREATE TRIGGER recount_is_append_only_update BEFORE UPDATE ON recount BEGIN
    SELECT RAISE(ABORT, 'recounts are append-only');
END;
CREATE TRIGGER recount_is_append_only_delete BEFORE DELETE ON recount BEGIN
    SELECT RAISE(ABORT, 'recounts are append-only');
END;

-- What a machine has shown. A machine is a worker's name (its host's by default) under a credential; the empty name stands
-- for all machines of the credential.
CREATE TABLE machine (
    credential TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    -- Its results that were counted a second time to the same; those that the coordinator found wrong; and those that were
    -- refused and not kept.
    passed     INTEGER NOT NULL CHECK (passed >= 0),
    failed     INTEGER NOT NULL CHECK (failed >= 0),
    refused    INTEGER NOT NULL CHECK (refused >= 0),
    -- Why it gets no more jobs; NULL as long as it is trusted.
    distrusted TEXT,
    PRIMARY KEY (credential, name)
) STRICT, WITHOUT ROWID;

-- The latest events: 300 in all, and 100 of any one run. They are for operators to look back on: nothing is decided by them, and
-- no exported ledger has them. They refer to no other table, since what a row is about may be gone.
CREATE TABLE event (
    -- Ascends through all lives of the coordinator.
    number INTEGER PRIMARY KEY CHECK (number > 0),
    at     INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    -- What it is about, if it is about a run or a worker.
    run    INTEGER,
    worker INTEGER,
    text   TEXT    NOT NULL
) STRICT;
