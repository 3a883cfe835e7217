-- Groups of people. The first is that of the operators, which nothing but its members changes.
CREATE TABLE user_groups (
    id       BIGINT PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,
    set_name TEXT NOT NULL DEFAULT '',           -- the set of files that it belongs to; '' = none
    declared BOOLEAN NOT NULL DEFAULT FALSE,     -- the server's own files declare it
    released BOOLEAN NOT NULL DEFAULT FALSE      -- they did, and nobody has described it since
);
INSERT INTO user_groups (id, name) VALUES (1, 'gatehouse-operators');
INSERT INTO counters (name, value) VALUES ('group', 1);

-- Who is in which group, and who says so: '' = operators, else a provider. A person may be in a
-- group for several reasons.
CREATE TABLE group_members (
    user_id  BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    group_id BIGINT NOT NULL REFERENCES user_groups (id) ON DELETE CASCADE,
    source   TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (user_id, group_id, source)
);
CREATE INDEX group_members_group ON group_members (group_id, user_id);

-- Attributes that people may have, and claims that are made of them.
CREATE TABLE attributes (
    name     TEXT PRIMARY KEY,
    type     TEXT NOT NULL,
    changer  TEXT NOT NULL,                      -- operator or person
    set_name TEXT NOT NULL DEFAULT '',
    declared BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE TABLE claims (
    name      TEXT PRIMARY KEY,
    attribute TEXT NOT NULL,
    scope     TEXT NOT NULL,
    set_name  TEXT NOT NULL DEFAULT '',
    declared  BOOLEAN NOT NULL DEFAULT FALSE
);
ALTER TABLE users ADD COLUMN attributes TEXT NOT NULL DEFAULT '';  -- a JSON object; '' = none
ALTER TABLE resources ADD COLUMN claims TEXT NOT NULL DEFAULT '';  -- in JWTs for it, by spaces
INSERT INTO schema_versions (version, oldest) VALUES (30, 18);
