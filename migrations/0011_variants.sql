-- Runs of variants: boards with given queens and blocked cells (plan 'cells'), and the torus (plan 'torus'). Their jobs count
-- plain solutions, and count2, count4 and count8 of their runs are 0: nothing is sorted into orbits.

-- The board of a plan 'cells', as it is drawn: N lines from the top, '.' open, '#' blocked, 'Q' a given queen. The job.prefixes
-- of its jobs have, after the byte with the width, the columns of each row where a queen may stand: N masks of 4 bytes,
-- big-endian.
ALTER TABLE run ADD COLUMN cells TEXT CHECK ((plan = 'cells') = (cells IS NOT NULL));

-- run.checked can be 'none', too: no count of such a board is published. SQLite changes no CHECK of a table in place but
-- in this way (https://www.sqlite.org/lang_altertable.html#otheralter); the rows stay as they are.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '(checked IN (''published'', ''symmetric''))',
                                       '(checked IN (''published'', ''symmetric'', ''none''))')
WHERE type = 'table' AND name = 'run';
PRAGMA writable_schema = RESET;

-- The other connections read the schema again.
DROP TRIGGER run_is_checked;
CREATE TRIGGER run_is_checked BEFORE UPDATE OF state ON run
WHEN NEW.state = 'done' AND EXISTS (SELECT 1 FROM recheck WHERE run = NEW.id AND outcome IS NULL)
BEGIN
    SELECT RAISE(ABORT, 'a check is open');
END;
