-- The secret that the coordinator gave the process when it registered; it stands in every later call. Workers that
-- registered before have one that nobody knows, and register again.
ALTER TABLE worker ADD COLUMN secret BLOB NOT NULL DEFAULT x'00000000000000000000000000000000' CHECK (length(secret) = 16);

UPDATE worker SET secret = randomblob(16);
