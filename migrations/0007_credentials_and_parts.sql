-- What workers show to be let in, and what is known by it: names tell accidents apart, credentials lies.

-- The name of the token or certificate under which a process registered; 'shared' is the one token of all, or none.
ALTER TABLE worker ADD COLUMN credential TEXT NOT NULL DEFAULT 'shared';

UPDATE worker SET credential = '(the coordinator)' WHERE name = '(the coordinator)';

-- 1 if a done job's result was counted alike under another credential, or by the coordinator.
ALTER TABLE job ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 0 CHECK (confirmed IN (0, 1) AND (confirmed = 0 OR state = 2));

-- A machine is a name under a credential. An empty name stands for all machines of the credential.
CREATE TABLE machine_of_credential (
    credential TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    -- Checks in which its result was found right, and wrong.
    passed     INTEGER NOT NULL CHECK (passed >= 0),
    failed     INTEGER NOT NULL CHECK (failed >= 0),
    -- Of those passed: with somebody of another credential, or the coordinator.
    confirmed  INTEGER NOT NULL CHECK (confirmed BETWEEN 0 AND passed),
    -- Why it gets no more jobs; NULL as long as it is trusted.
    distrusted TEXT,
    PRIMARY KEY (credential, name)
) STRICT, WITHOUT ROWID;

INSERT INTO machine_of_credential (credential, name, passed, failed, confirmed, distrusted)
SELECT 'shared', name, passed, failed, 0, distrusted FROM machine WHERE name <> '(the coordinator)';

DROP TABLE machine;

ALTER TABLE machine_of_credential RENAME TO machine;

-- Checks by parts: a job can be too large to be counted twice. So its result tells what was found in each of its parts, and the
-- coordinator counts some of the parts itself, with an engine of another family.

-- What was found in each part of the job: an array of [COUNT2, COUNT4, COUNT8, solutions], which add up to the counts of the
-- result. NULL: the job is one part, or the result is of an earlier version.
ALTER TABLE result ADD COLUMN parts TEXT CHECK (json_array_length(parts) BETWEEN 2 AND 64);

-- The new column is append-only too.
DROP TRIGGER result_is_append_only_update;
CREATE TRIGGER result_is_append_only_update BEFORE UPDATE ON result
WHEN (OLD.verdict, NEW.verdict) <> ('accepted', 'voided')
  OR (OLD.id, OLD.run, OLD.job, OLD.epoch, OLD.incarnation, OLD.worker, OLD.kernel, OLD.count2, OLD.count4, OLD.count8,
      OLD.solutions, OLD.states, OLD.elapsed_us, OLD.reported_at, OLD.parts)
  IS NOT (NEW.id, NEW.run, NEW.job, NEW.epoch, NEW.incarnation, NEW.worker, NEW.kernel, NEW.count2, NEW.count4,
      NEW.count8, NEW.solutions, NEW.states, NEW.elapsed_us, NEW.reported_at, NEW.parts)
BEGIN
    SELECT RAISE(ABORT, 'results are append-only');
END;

-- Everything that the coordinator has counted itself: whole jobs, or parts. Append-only.
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

-- What the recounts of a run come to: parts that had the same counts as the accepted result, each counted once however often
-- it was recounted; recounts that had others; and the processor time for all of them, in microseconds.
ALTER TABLE run ADD COLUMN recounts_agreed INTEGER NOT NULL DEFAULT 0 CHECK (recounts_agreed >= 0);
ALTER TABLE run ADD COLUMN recounts_differing INTEGER NOT NULL DEFAULT 0 CHECK (recounts_differing >= 0);
ALTER TABLE run ADD COLUMN recounts_us INTEGER NOT NULL DEFAULT 0 CHECK (recounts_us >= 0);
