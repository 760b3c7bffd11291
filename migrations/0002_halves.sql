-- Jobs of half boards: they count solutions one by one and find no orbits. Their job.prefixes are a range of column sets:
-- the byte 8, then the numbers of the first and of the first after the last, four bytes each, big-endian.

-- Solutions above this can't be right; 0 for jobs that find orbits.
ALTER TABLE job ADD COLUMN solutions_max INTEGER NOT NULL DEFAULT 0 CHECK (solutions_max >= 0);

-- Solutions that stand in none of the three counts.
ALTER TABLE result ADD COLUMN solutions INTEGER NOT NULL DEFAULT 0 CHECK (solutions >= 0);

-- The new column is append-only too.
DROP TRIGGER result_is_append_only_update;
CREATE TRIGGER result_is_append_only_update BEFORE UPDATE ON result
WHEN (OLD.verdict, NEW.verdict) <> ('accepted', 'voided')
  OR (OLD.id, OLD.run, OLD.job, OLD.epoch, OLD.incarnation, OLD.worker, OLD.kernel, OLD.count2, OLD.count4, OLD.count8,
      OLD.solutions, OLD.states, OLD.elapsed_us, OLD.reported_at)
  IS NOT (NEW.id, NEW.run, NEW.job, NEW.epoch, NEW.incarnation, NEW.worker, NEW.kernel, NEW.count2, NEW.count4,
      NEW.count8, NEW.solutions, NEW.states, NEW.elapsed_us, NEW.reported_at)
BEGIN
    SELECT RAISE(ABORT, 'results are append-only');
END;
