-- What a worker's program says of the engine in use, the first of worker.kernels. All three are NULL where it did not: then
-- the engine's name is all that is known. Names of engines in worker.kernels and result.kernel are kept as they came, known
-- to this program or not: 1 to 32 lower-case letters, digits and hyphens.

-- The search that it makes: whoever checks a result had better make another one.
ALTER TABLE worker ADD COLUMN family TEXT;

-- Its instruction set or device, for people.
ALTER TABLE worker ADD COLUMN device TEXT CHECK ((device IS NULL) = (family IS NULL));

-- States that all threads visited in a second when it was tried. What its results show later is not kept.
ALTER TABLE worker ADD COLUMN states_per_s INTEGER
    CHECK ((states_per_s IS NULL) = (family IS NULL) AND (states_per_s IS NULL OR states_per_s > 0));
