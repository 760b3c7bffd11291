-- What confirms a total that is not compared with a published count. All five columns are NULL where a published count does,
-- and in runs that are not done.

-- The coordinator's estimate of the total, by random descents: the seed of the random numbers, the parts of the search with
-- two descents each, the estimate, and half the width of its 95 % confidence interval (decimal, like the counts).
ALTER TABLE run ADD COLUMN estimate_seed INTEGER;
ALTER TABLE run ADD COLUMN estimate_strata INTEGER CHECK (estimate_strata > 0);
ALTER TABLE run ADD COLUMN estimate_value TEXT;
ALTER TABLE run ADD COLUMN estimate_reach TEXT;

-- Results that must have been counted a second time, under another credential or by the coordinator.
ALTER TABLE run ADD COLUMN checks_wanted INTEGER CHECK (checks_wanted >= 0);

-- Without it, the results of an untrusted machine that nobody has counted alike took seconds to find.
CREATE INDEX recheck_agreed ON recheck (run, job) WHERE outcome = 'agreed';
