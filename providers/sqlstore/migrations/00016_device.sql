-- Device codes (RFC 8628) until some time after they expire. One that was allowed has an authorization code with its hash.
CREATE TABLE device_codes (
    hash           BYTEA PRIMARY KEY,
    user_code      BYTEA NOT NULL UNIQUE, -- a hash as well
    client_id      TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    scopes         BIGINT NOT NULL,
    default_scopes BOOLEAN NOT NULL,
    place          TEXT NOT NULL,         -- rough place of the device
    created        BIGINT NOT NULL,
    expires        BIGINT NOT NULL,
    decision       BIGINT NOT NULL        -- 0 = none, 1 = allowed, 2 = denied
);
CREATE INDEX device_codes_client ON device_codes (client_id);   -- the end of a client
CREATE INDEX device_codes_expires ON device_codes (expires);    -- clean-up
ALTER TABLE consents ADD COLUMN devices BIGINT NOT NULL DEFAULT 0; -- scopes granted to devices

-- Assertions of clients that were used, by a hash of client and jti, until they expire (RFC 7523).
CREATE TABLE client_assertions (
    hash    BYTEA PRIMARY KEY,
    expires BIGINT NOT NULL
);
CREATE INDEX client_assertions_expires ON client_assertions (expires); -- clean-up
