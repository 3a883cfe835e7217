-- The last epoch of each client that was deleted: a new client with its id begins above it.
CREATE TABLE former_clients (
    id    TEXT PRIMARY KEY,
    epoch BIGINT NOT NULL
);

-- The set of files that a resource belongs to, and whether the server's own files declare it. A
-- declared one that is gone from them is deleted, and comes back with its number.
ALTER TABLE resources ADD COLUMN set_name TEXT NOT NULL DEFAULT '';
ALTER TABLE resources ADD COLUMN declared BOOLEAN NOT NULL DEFAULT FALSE;

-- What the servers' own files declared last.
CREATE TABLE declared_sets (
    name     TEXT PRIMARY KEY,
    revision BIGINT NOT NULL,
    digest   BYTEA NOT NULL
);
INSERT INTO schema_versions (version, oldest) VALUES (24, 18);
