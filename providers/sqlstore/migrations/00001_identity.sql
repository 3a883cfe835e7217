-- Times are milliseconds since 1970 UTC. Hashes are SHA-256. Text that a person left out is ''.

CREATE TABLE clients (
    id                TEXT PRIMARY KEY,
    name              TEXT NOT NULL,
    public            BOOLEAN NOT NULL,
    operator          BOOLEAN NOT NULL,
    introspect_any    BOOLEAN NOT NULL,
    loopback_any_port BOOLEAN NOT NULL,
    disabled          BOOLEAN NOT NULL,
    detail_approved   BOOLEAN NOT NULL,
    scopes            BIGINT NOT NULL,
    grants            BIGINT NOT NULL,
    created           BIGINT NOT NULL,
    version           BIGINT NOT NULL -- how often it was changed
);

CREATE TABLE client_secrets (
    client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    position  BIGINT NOT NULL,
    id        TEXT NOT NULL,
    hash      BYTEA NOT NULL,
    created   BIGINT NOT NULL,
    PRIMARY KEY (client_id, position)
);

CREATE TABLE redirect_uris (
    client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    position  BIGINT NOT NULL,
    uri       TEXT NOT NULL,
    PRIMARY KEY (client_id, position)
);

-- The keys are the folded e-mail address and username; NULL when there is none, so that they are unique among the others.
CREATE TABLE users (
    id              BIGINT PRIMARY KEY,
    service_id      TEXT NOT NULL UNIQUE,
    name            TEXT NOT NULL,
    email           TEXT NOT NULL,
    email_key       TEXT UNIQUE,
    phone           TEXT NOT NULL,
    phone_key       TEXT UNIQUE,
    username        TEXT NOT NULL,
    username_key    TEXT UNIQUE,
    gender          TEXT NOT NULL,
    bio             TEXT NOT NULL,
    place_of_birth  TEXT NOT NULL,
    date_of_birth   TEXT NOT NULL,
    address         TEXT NOT NULL,
    profile_picture TEXT NOT NULL,
    password_hash   TEXT NOT NULL,
    disabled        BOOLEAN NOT NULL,
    created         BIGINT NOT NULL,
    updated         BIGINT NOT NULL,
    version         BIGINT NOT NULL -- how often it was changed
);

-- The last number given out. A user's id is never given to another, so that it cannot be taken from the users that are left.
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('user', 0);

CREATE TABLE sessions (
    hash      BYTEA PRIMARY KEY,
    user_id   BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created   BIGINT NOT NULL,
    signed_in BIGINT NOT NULL,
    seen      BIGINT NOT NULL,
    expires   BIGINT NOT NULL,
    device    TEXT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);    -- a user's list of sessions, and their end
CREATE INDEX sessions_expires ON sessions (expires); -- clean-up

CREATE TABLE consents (
    user_id   BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    scopes    BIGINT NOT NULL,
    granted   BIGINT NOT NULL,
    PRIMARY KEY (user_id, client_id)
);
CREATE INDEX consents_client ON consents (client_id); -- the end of a client

-- What follows refers to users and clients by value: a check of each reference would cost every token, and a
-- token of a client that is gone is refused by the client's record.
CREATE TABLE families (
    id         TEXT PRIMARY KEY,
    client_id  TEXT NOT NULL,
    user_id    BIGINT NOT NULL,
    scopes     BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    advanced   BIGINT NOT NULL,
    expires    BIGINT NOT NULL,
    ends       BIGINT NOT NULL,
    revoked    BOOLEAN NOT NULL
);
CREATE INDEX families_user ON families (user_id, client_id); -- a password change, a consent taken back
CREATE INDEX families_expires ON families (expires);         -- clean-up

CREATE TABLE authorization_codes (
    hash           BYTEA PRIMARY KEY,
    client_id      TEXT NOT NULL,
    user_id        BIGINT NOT NULL,
    redirect_uri   TEXT NOT NULL,
    scopes         BIGINT NOT NULL,
    default_scopes BOOLEAN NOT NULL,
    code_challenge TEXT NOT NULL,
    expires        BIGINT NOT NULL,
    used_at        BIGINT,
    family_id      TEXT NOT NULL
);
-- Codes nobody came for: few, since they last a minute. Serves clean-up, and the end of a user's or client's codes.
CREATE INDEX authorization_codes_unused ON authorization_codes (expires) WHERE used_at IS NULL;
CREATE INDEX authorization_codes_family ON authorization_codes (family_id) WHERE family_id <> ''; -- they end with it

CREATE TABLE refresh_tokens (
    hash       BYTEA PRIMARY KEY,
    family_id  TEXT NOT NULL REFERENCES families (id) ON DELETE CASCADE,
    generation BIGINT NOT NULL
);
CREATE INDEX refresh_tokens_family ON refresh_tokens (family_id); -- they end with it

-- A client's tokens have no index: only the end of a client asks for them, and every token would pay.
CREATE TABLE access_tokens (
    hash      BYTEA PRIMARY KEY,
    client_id TEXT NOT NULL,
    user_id   BIGINT NOT NULL,
    family_id TEXT NOT NULL,
    scopes    BIGINT NOT NULL,
    issued    BIGINT NOT NULL,
    expires   BIGINT NOT NULL
);
CREATE INDEX access_tokens_expires ON access_tokens (expires); -- clean-up
CREATE INDEX access_tokens_family ON access_tokens (family_id) WHERE family_id <> ''; -- reuse and revocation of a family
-- A user's tokens are found through the user's families; this one has only what belongs to a user and to no family.
CREATE INDEX access_tokens_user ON access_tokens (user_id) WHERE user_id <> 0 AND family_id = '';

CREATE TABLE keys (
    name    TEXT PRIMARY KEY,
    value   BYTEA NOT NULL,
    created BIGINT NOT NULL
);
