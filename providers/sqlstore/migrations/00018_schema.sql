-- Which programs may use the schema: those that know at least the migration "oldest" may use it at
-- the migration "version". Each migration from here on adds its row. One that only adds has the
-- oldest of the one before. A program that finds no row for a newer schema does not start.
CREATE TABLE schema_versions (
    version BIGINT PRIMARY KEY,
    oldest  BIGINT NOT NULL
);
INSERT INTO schema_versions (version, oldest) VALUES (18, 18);
