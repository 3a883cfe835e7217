-- The challenges of WebAuthn that were used, so that each counts once in all processes.
CREATE TABLE used_challenges (
    hash BYTEA PRIMARY KEY, -- SHA-256
    ends BIGINT NOT NULL
);
CREATE INDEX used_challenges_ends ON used_challenges (ends);
INSERT INTO schema_versions (version, oldest) VALUES (29, 18);
