ALTER TABLE sessions ADD COLUMN amr TEXT NOT NULL DEFAULT ''; -- how the user signed in, separated by spaces

-- The clients that got a code in a session.
CREATE TABLE session_clients (
    session   BYTEA NOT NULL REFERENCES sessions (hash) ON DELETE CASCADE,
    client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    sid       TEXT NOT NULL,    -- by which the client knows the session
    told      BOOLEAN NOT NULL, -- the client was told that it ended
    PRIMARY KEY (session, client_id)
);
CREATE INDEX session_clients_client ON session_clients (client_id); -- the end of a client

-- The codes of a session that were not used so far end with it.
CREATE INDEX authorization_codes_session ON authorization_codes (session) WHERE session IS NOT NULL AND used_at IS NULL;

-- What clients are still to be told: the ends of sessions.
CREATE TABLE logouts (
    id        TEXT PRIMARY KEY,
    client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    user_id   BIGINT NOT NULL,
    sid       TEXT NOT NULL,
    created   BIGINT NOT NULL,
    attempts  BIGINT NOT NULL,
    due       BIGINT NOT NULL -- no attempt before
);
CREATE INDEX logouts_client ON logouts (client_id, due); -- the sender, and the end of a client
