-- Who did what. Rows refer to users and clients by value, so that they outlive them. Details are words with spaces between.
CREATE TABLE audit (
    number     BIGINT PRIMARY KEY, -- grows in the order of the commits
    time       BIGINT NOT NULL,
    action     TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    user_id    BIGINT NOT NULL,    -- the subject; 0 = no user
    client_id  TEXT NOT NULL,      -- the subject; '' = no client
    target     TEXT NOT NULL,
    details    TEXT NOT NULL,
    count      BIGINT NOT NULL,    -- events that the row stands for
    actor_kind TEXT NOT NULL,
    actor_id   TEXT NOT NULL,
    request_id TEXT NOT NULL,
    caller     TEXT NOT NULL       -- an address or a prefix; '' = not kept
);
CREATE INDEX audit_time ON audit (time, number); -- clean-up, and the first event since a time
CREATE INDEX audit_action ON audit (action, number);
CREATE INDEX audit_user ON audit (user_id, number) WHERE user_id <> 0;
CREATE INDEX audit_client ON audit (client_id, number) WHERE client_id <> '';
CREATE INDEX audit_target ON audit (target, number) WHERE target <> '';
CREATE INDEX audit_actor ON audit (actor_id, number) WHERE actor_kind IN ('client', 'operator');
INSERT INTO counters (name, value) VALUES ('audit', 0);

-- The events of one subject, action and outcome in an hour. Those above a limit share one row of the trail.
CREATE TABLE audit_counts (
    hour    BIGINT NOT NULL, -- when it began
    subject TEXT NOT NULL,
    action  TEXT NOT NULL,
    outcome TEXT NOT NULL,
    events  BIGINT NOT NULL,
    counted BIGINT NOT NULL, -- the sum of the shared row; 0 = there is none
    number  BIGINT NOT NULL, -- of the shared row
    PRIMARY KEY (hour, subject, action, outcome)
);
