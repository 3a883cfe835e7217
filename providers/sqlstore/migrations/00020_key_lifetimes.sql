-- How long a key is needed after its successor, in milliseconds: the longest time that a server with this database has had in its settings.
ALTER TABLE keys ADD COLUMN needed BIGINT NOT NULL DEFAULT 0;
INSERT INTO schema_versions (version, oldest) VALUES (20, 18);
