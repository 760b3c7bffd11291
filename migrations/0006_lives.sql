-- The order of the lives. Incarnations are random and times of day can jump, so neither of them tells which is the newest.
-- Only the newest life may write: every transaction of a coordinator looks whether that is its own.
ALTER TABLE coordinator ADD COLUMN life INTEGER NOT NULL DEFAULT 0;

UPDATE coordinator SET life = earlier.life
FROM (SELECT incarnation, row_number() OVER (ORDER BY started_at, incarnation) AS life FROM coordinator) AS earlier
WHERE coordinator.incarnation = earlier.incarnation;

CREATE UNIQUE INDEX coordinator_life ON coordinator (life);
