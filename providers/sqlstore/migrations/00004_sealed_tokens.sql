-- Access tokens are sealed records and no longer rows. Those issued before end with this step.
DROP TABLE access_tokens;

-- A token is refused when its user or client has a later epoch than the token: Unix microseconds, or one above the epoch before.
ALTER TABLE users ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
UPDATE users SET epoch = created * 1000;
ALTER TABLE clients ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
UPDATE clients SET epoch = created * 1000;

ALTER TABLE clients ADD COLUMN tokens_per_minute BIGINT NOT NULL DEFAULT 0; -- access tokens that it may get; 0 = no quota

-- When the last access token of the family expires. 0 is right for existing rows: their access tokens have ended above.
ALTER TABLE families ADD COLUMN access_expires BIGINT NOT NULL DEFAULT 0;
DROP INDEX families_expires;
CREATE INDEX families_over ON families ((CASE WHEN expires > access_expires THEN expires ELSE access_expires END)); -- clean-up

-- What processes tell each other. The counter is updated last in a transaction, so that numbers become visible in their order.
CREATE TABLE changes (
    number    BIGINT PRIMARY KEY,
    kind      TEXT NOT NULL,  -- token, family, user, client, keys
    subject   TEXT NOT NULL,  -- the token's or family's id, the user's or client's id, the purpose of the keys
    client_id TEXT NOT NULL,  -- of a token
    expires   BIGINT NOT NULL -- when the row is no longer needed
);
CREATE INDEX changes_expires ON changes (expires);                     -- clean-up, and reading what has ended
CREATE INDEX changes_token ON changes (subject) WHERE kind = 'token'; -- whether a token has ended
INSERT INTO counters (name, value) VALUES ('change', 0);

-- Keys are wrapped under a key file. Those from before are not kept: backups have them in clear text.
DROP TABLE keys;
CREATE TABLE keys (
    purpose TEXT NOT NULL,
    number  BIGINT NOT NULL,
    wrapped BYTEA NOT NULL,
    made    BIGINT NOT NULL,
    expires BIGINT NOT NULL, -- 0 = it is the current one
    PRIMARY KEY (purpose, number)
);
