-- Who is invited to make an account: one invitation an address.
CREATE TABLE invitations (
    id          TEXT PRIMARY KEY,
    hash        BYTEA NOT NULL UNIQUE, -- SHA-256 of the token in the link
    email       TEXT NOT NULL,
    email_key   TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,         -- '' = the person says it
    group_names TEXT NOT NULL,         -- separated by spaces
    made        BIGINT NOT NULL,
    ends        BIGINT NOT NULL
);
CREATE INDEX invitations_ends ON invitations (ends);
INSERT INTO schema_versions (version, oldest) VALUES (31, 18);
