ALTER TABLE users ADD COLUMN phone_sign_in BOOLEAN NOT NULL DEFAULT FALSE; -- a code to the phone may replace the password

-- One number has one key: without the optional 9 of Argentina's mobile numbers, and without Mexico's former 1. Where two users
-- have one number, the second keeps its key, and is found by the number as it is.
UPDATE users SET phone_key = '+54' || substr(phone_key, 5) WHERE phone_key LIKE '+549%' AND length(phone_key) = 14
AND NOT EXISTS (SELECT 1 FROM users other WHERE other.phone_key = '+54' || substr(users.phone_key, 5));
UPDATE users SET phone = '+52' || substr(phone, 5), phone_key = '+52' || substr(phone_key, 5)
WHERE phone_key LIKE '+521%' AND length(phone_key) = 14
AND NOT EXISTS (SELECT 1 FROM users other WHERE other.phone_key = '+52' || substr(users.phone_key, 5));

-- Messages are counted by who requested them. Those from before no longer count.
DROP TABLE code_sends;
CREATE TABLE code_sends (
    recipient BYTEA NOT NULL,
    number    BIGINT NOT NULL,
    requester BYTEA NOT NULL,   -- a keyed hash of the caller's network, or zeros for the account's known browsers
    sent      BIGINT NOT NULL,
    entered   BOOLEAN NOT NULL,
    long_code BYTEA,            -- SHA-256 of the long code in the message
    free      BOOLEAN NOT NULL, -- it no longer counts for the day
    expires   BIGINT NOT NULL,  -- when it no longer counts, and the long code is no longer valid
    PRIMARY KEY (recipient, number)
);
CREATE INDEX code_sends_expires ON code_sends (expires); -- clean-up
ALTER TABLE challenges ADD COLUMN requester BYTEA NOT NULL DEFAULT ''; -- of the last code
