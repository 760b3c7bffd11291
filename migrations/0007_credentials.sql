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
