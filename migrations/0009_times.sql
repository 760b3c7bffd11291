-- Times that tell what a run cost from what it waited for.

-- When the first job of the run was leased; NULL until then. Of runs from before it was kept: when the first of their results
-- was begun, as far as its arrival tells.
ALTER TABLE run ADD COLUMN started_at INTEGER;

UPDATE run SET started_at = max(created_at, first.begun)
FROM (SELECT run, min(reported_at - elapsed_us / 1000) AS begun FROM result GROUP BY run) AS first
WHERE first.run = run.id;

-- Processor time of the counting threads, in microseconds; elapsed_us is their time by the clock. NULL where it was not measured.
ALTER TABLE result ADD COLUMN cpu_us INTEGER CHECK (cpu_us >= 0);

-- The new column is append-only too.
DROP TRIGGER result_is_append_only_update;
CREATE TRIGGER result_is_append_only_update BEFORE UPDATE ON result
WHEN (OLD.verdict, NEW.verdict) <> ('accepted', 'voided')
  OR (OLD.id, OLD.run, OLD.job, OLD.epoch, OLD.incarnation, OLD.worker, OLD.kernel, OLD.count2, OLD.count4, OLD.count8,
      OLD.solutions, OLD.states, OLD.elapsed_us, OLD.cpu_us, OLD.reported_at, OLD.parts)
  IS NOT (NEW.id, NEW.run, NEW.job, NEW.epoch, NEW.incarnation, NEW.worker, NEW.kernel, NEW.count2, NEW.count4,
      NEW.count8, NEW.solutions, NEW.states, NEW.elapsed_us, NEW.cpu_us, NEW.reported_at, NEW.parts)
BEGIN
    SELECT RAISE(ABORT, 'results are append-only');
END;
