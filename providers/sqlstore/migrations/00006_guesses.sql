-- Wrong passwords of an account, whether it exists or not. Rows are swept once the account owes nothing and its owner may be told again.
CREATE TABLE guesses (
    account BYTEA NOT NULL,   -- SHA-256 of the e-mail address in lower case
    known   BOOLEAN NOT NULL, -- by browsers that have signed in to the account before
    paid    BIGINT NOT NULL,  -- when the account owes nothing: each attempt adds the interval of its rate
    told    BIGINT NOT NULL,  -- when the owner was last told that the limit is reached; 0 = never
    PRIMARY KEY (account, known)
);
CREATE INDEX guesses_paid ON guesses (paid); -- clean-up
