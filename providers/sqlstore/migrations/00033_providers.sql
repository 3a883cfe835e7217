-- Other providers with which people sign in.
CREATE TABLE providers (
    id        TEXT PRIMARY KEY,
    described TEXT NOT NULL, -- as JSON
    secret    BYTEA NOT NULL, -- sealed under the key file; empty = none
    created   BIGINT NOT NULL,
    version   BIGINT NOT NULL
);

-- Sign-ins with them that have begun, and connections that wait until the person has signed in to
-- the account that they belong to.
CREATE TABLE provider_attempts (
    hash     BYTEA PRIMARY KEY, -- SHA-256 of the state, or of the cookie's value
    browser  BYTEA NOT NULL,    -- SHA-256 of the browser's secret
    provider TEXT NOT NULL,
    purpose  TEXT NOT NULL,
    session  BYTEA NOT NULL,
    query    TEXT NOT NULL,
    user_id  BIGINT NOT NULL,   -- 0 = nobody's yet
    identity TEXT NOT NULL,     -- as JSON; '' = the provider has not said it yet
    ends     BIGINT NOT NULL
);
CREATE INDEX provider_attempts_ends ON provider_attempts (ends);
CREATE INDEX provider_attempts_user ON provider_attempts (user_id) WHERE user_id <> 0;
INSERT INTO schema_versions (version, oldest) VALUES (33, 18);
