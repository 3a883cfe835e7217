-- Passkeys, the authenticator app, recovery codes and connections to other providers of a person, as
-- JSON; '' = none.
ALTER TABLE users ADD COLUMN credentials TEXT NOT NULL DEFAULT '';
-- The user handle of a person's passkeys; NULL = there was none yet.
ALTER TABLE users ADD COLUMN handle BYTEA DEFAULT NULL;
CREATE UNIQUE INDEX users_handle ON users (handle) WHERE handle IS NOT NULL;

-- Whose account a connection of credentials signs in to.
CREATE TABLE connections (
    issuer  TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX connections_user ON connections (user_id);

-- The way in that began the session; '' = an older program made it.
ALTER TABLE sessions ADD COLUMN way TEXT NOT NULL DEFAULT '';
INSERT INTO schema_versions (version, oldest) VALUES (28, 18);
