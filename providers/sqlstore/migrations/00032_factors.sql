-- When a second factor was last used in the session; 0 = never.
ALTER TABLE sessions ADD COLUMN factored BIGINT NOT NULL DEFAULT 0;
-- The browser was not known to the account when the session began.
ALTER TABLE sessions ADD COLUMN new_browser BOOLEAN NOT NULL DEFAULT FALSE;

-- Sign-ins that wait for a second factor. There is no session before.
CREATE TABLE pending_sign_ins (
    hash          BYTEA PRIMARY KEY, -- SHA-256 of the cookie's value
    browser       BYTEA NOT NULL,    -- SHA-256 of the secret of the browser that it is for
    user_id       BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    state         BYTEA NOT NULL,    -- a hash of what the first factor was about
    way           TEXT NOT NULL,     -- the first factor
    means         TEXT NOT NULL,
    known         BOOLEAN NOT NULL,
    password_hash TEXT NOT NULL,     -- that replaces the password; '' = none
    confirmed     BOOLEAN NOT NULL,  -- a code to a channel of the account was entered
    ends          BIGINT NOT NULL
);
CREATE INDEX pending_sign_ins_user ON pending_sign_ins (user_id); -- the end of an account
CREATE INDEX pending_sign_ins_ends ON pending_sign_ins (ends);    -- clean-up

-- Browsers in which the second factor is not asked for.
CREATE TABLE trusted_browsers (
    hash    BYTEA PRIMARY KEY, -- SHA-256 of the cookie's value
    user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    ends    BIGINT NOT NULL
);
CREATE INDEX trusted_browsers_user ON trusted_browsers (user_id); -- a change of credentials
CREATE INDEX trusted_browsers_ends ON trusted_browsers (ends);    -- clean-up

-- Wrong codes of second factors.
CREATE TABLE factor_guesses (
    user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id      BIGINT NOT NULL,
    own     BOOLEAN NOT NULL, -- by a browser that has used a second factor of the account before
    at      BIGINT NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX factor_guesses_at ON factor_guesses (at); -- clean-up
INSERT INTO schema_versions (version, oldest) VALUES (32, 18);
