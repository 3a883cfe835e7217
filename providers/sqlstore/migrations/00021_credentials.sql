-- When a way in was added or last changed; 0 = when the account was made.
ALTER TABLE users ADD COLUMN password_since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN email_since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN phone_since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN phone_sign_in_since BIGINT NOT NULL DEFAULT 0;

-- When the person at the browser last proved to be the user by a code, and the way in that got it; 0 = never.
ALTER TABLE sessions ADD COLUMN proved BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN proved_by TEXT NOT NULL DEFAULT '';

-- The way in that allowed to request the code.
ALTER TABLE challenges ADD COLUMN proved_by TEXT NOT NULL DEFAULT '';

-- What links in messages do. Each works once.
CREATE TABLE links (
    hash    BYTEA PRIMARY KEY, -- SHA-256 of the token in the link
    user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    made    BIGINT NOT NULL,   -- the time of the change
    ends    BIGINT NOT NULL,
    channel TEXT NOT NULL,     -- the message went by it
    address TEXT NOT NULL,     -- of the channel that the link restores; '' = it ends sessions only
    since   BIGINT NOT NULL    -- as in users, of that channel
);
CREATE INDEX links_user ON links (user_id, made); -- an undo ends later ones
CREATE INDEX links_ends ON links (ends);          -- clean-up

-- Notices to people that are to be sent, and for an hour those that were.
CREATE TABLE outbox (
    id       TEXT PRIMARY KEY,
    user_id  BIGINT NOT NULL,
    channel  TEXT NOT NULL,
    address  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    operator BOOLEAN NOT NULL, -- an operator did what the notice is about
    browser  TEXT NOT NULL,
    seed     TEXT NOT NULL,    -- the token of its link is derived from it and a secret key; '' = no link
    link     BYTEA NOT NULL,   -- as in links; empty = no link
    made     BIGINT NOT NULL,  -- the time of the first change that it is about
    at       BIGINT NOT NULL,  -- the time of the last one
    count    BIGINT NOT NULL,  -- changes that it is about
    attempts BIGINT NOT NULL,
    due      BIGINT NOT NULL,  -- no attempt before
    sent     BIGINT NOT NULL   -- 0 = not so far
);
CREATE INDEX outbox_due ON outbox (due) WHERE sent = 0;   -- the sender
CREATE INDEX outbox_user ON outbox (user_id, kind, sent); -- notices of one kind become one
CREATE INDEX outbox_sent ON outbox (sent) WHERE sent > 0; -- clean-up
INSERT INTO schema_versions (version, oldest) VALUES (21, 18);
