-- Results counted a second time by another machine, and what is known of the machines by that.

-- At least this share of a run's results is counted twice, in millionths; 0 for none.
ALTER TABLE run ADD COLUMN replicate_ppm INTEGER NOT NULL DEFAULT 0 CHECK (replicate_ppm BETWEEN 0 AND 1000000);

-- A job's accepted result that another machine is to count, too. Append-only; at most one is open for a job.
CREATE TABLE recheck (
    id      INTEGER PRIMARY KEY,
    run     INTEGER NOT NULL,
    job     INTEGER NOT NULL,
    -- NULL while it is open. 'agreed': both counted the same. 'settled': they differed (the job was quarantined), and one
    -- more agreed with one of them. 'waived': there was no other machine. 'dropped': the result was taken back.
    outcome TEXT CHECK (outcome IN ('agreed', 'settled', 'waived', 'dropped')),
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

-- Results that don't stand are few, and are looked up by their job: when a coordinator starts, and for exports.
CREATE INDEX result_other ON result (run, job) WHERE verdict <> 'accepted';

-- Disputes that are open already are to be settled, too.
INSERT INTO recheck (run, job)
SELECT run, number FROM job
WHERE state = 3 AND EXISTS (SELECT 1 FROM result WHERE result.run = job.run AND job = number AND verdict = 'accepted')
  AND EXISTS (SELECT 1 FROM result WHERE result.run = job.run AND job = number AND verdict = 'conflict');

-- What a machine has shown: a worker's name, which is its host's unless told otherwise, stands for the machine.
CREATE TABLE machine (
    name       TEXT    PRIMARY KEY,
    -- Checks in which it agreed with another machine, and those in which two others agreed against it.
    passed     INTEGER NOT NULL CHECK (passed >= 0),
    failed     INTEGER NOT NULL CHECK (failed >= 0),
    -- Why it gets no more jobs; NULL as long as it is trusted.
    distrusted TEXT
) STRICT, WITHOUT ROWID;
