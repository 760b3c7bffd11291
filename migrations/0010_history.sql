-- What operators look back on: events, and how the runs went over time. Nothing is decided by it, and no exported ledger has it.
-- So neither table refers to others: what a row tells of may be gone. Both are bounded, and take less than 2 MB together.

-- The latest events: 300 in all, and 100 of any one run.
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

-- Moments of the runs, from a second apart on: 240 of a run, and then every second one goes; 64 runs, and then that which has been
-- over for longest goes.
CREATE TABLE moment (
    run          INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    -- Share of the estimated work that was done.
    share_done   REAL    NOT NULL,
    -- NULL where it was not known.
    states_per_s REAL,
    -- Estimates with their 95 % confidence intervals: of the total, and of the seconds that were left. NULL where there was none.
    total        REAL,
    total_low    REAL,
    total_high   REAL,
    left_s       REAL,
    left_low_s   REAL,
    left_high_s  REAL,
    PRIMARY KEY (run, at),
    CHECK ((total IS NULL) = (total_low IS NULL) AND (total IS NULL) = (total_high IS NULL)),
    CHECK ((left_s IS NULL) = (left_low_s IS NULL) AND (left_s IS NULL) = (left_high_s IS NULL))
) STRICT, WITHOUT ROWID;
