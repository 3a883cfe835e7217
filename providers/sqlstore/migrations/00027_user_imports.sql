-- The last part of each import of users, so that a part that is sent again is not done again.
CREATE TABLE user_imports (
    id      TEXT PRIMARY KEY,
    line    BIGINT NOT NULL, -- where the part begins
    result  TEXT NOT NULL,   -- what it has led to, as JSON
    updated BIGINT NOT NULL
);
CREATE INDEX user_imports_updated ON user_imports (updated);
INSERT INTO schema_versions (version, oldest) VALUES (27, 18);
