-- What a person was asked a code for. The code and a password are kept as argon2id.
CREATE TABLE challenges (
    hash          BYTEA PRIMARY KEY,
    purpose       TEXT NOT NULL,
    channel       TEXT NOT NULL,
    address       TEXT NOT NULL,
    recipient     BYTEA NOT NULL,  -- the channel and address, as code_sends knows them
    user_id       BIGINT NOT NULL, -- 0 = nobody
    name          TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    message       TEXT NOT NULL,
    code_hash     TEXT NOT NULL,
    tries         BIGINT NOT NULL,
    sent          BIGINT NOT NULL,
    expires       BIGINT NOT NULL, -- of the code
    ends          BIGINT NOT NULL
);
CREATE INDEX challenges_ends ON challenges (ends); -- clean-up

-- The codes that count against a recipient's limits. The number makes one of two that are sent at once wait for the other.
CREATE TABLE code_sends (
    recipient BYTEA NOT NULL,
    number    BIGINT NOT NULL,
    sent      BIGINT NOT NULL,
    entered   BOOLEAN NOT NULL,
    expires   BIGINT NOT NULL, -- when it no longer counts
    PRIMARY KEY (recipient, number)
);
CREATE INDEX code_sends_expires ON code_sends (expires); -- clean-up
