-- Resource servers (RFC 8707). A deleted one stays, so that its number is never given again.
CREATE TABLE resources (
    number  BIGINT PRIMARY KEY,
    uri     TEXT NOT NULL,
    scopes  TEXT NOT NULL, -- names, separated by spaces
    created BIGINT NOT NULL,
    deleted BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE UNIQUE INDEX resources_uri ON resources (uri) WHERE NOT deleted;

-- The resources that a user has granted, as pairs of a number and the bits of scopes; '' = none.
ALTER TABLE consents ADD COLUMN resources TEXT NOT NULL DEFAULT '';
