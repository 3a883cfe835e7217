-- The nodes of a cluster: a row for each process that runs. Others remove the row of one whose beat stands still.
CREATE TABLE nodes (
    id           TEXT PRIMARY KEY, -- of the process; never used again
    name         TEXT NOT NULL,    -- for people
    address      TEXT NOT NULL,    -- host:port where other nodes reach it
    certificates TEXT NOT NULL,    -- SHA-256 sums in hexadecimal of those that it may present, with spaces between them
    speaks       BIGINT NOT NULL,  -- newest version of frames that it understands
    version      TEXT NOT NULL,    -- of the program
    egress       TEXT NOT NULL,    -- label of the address that it asks the upstream from
    state        TEXT NOT NULL,    -- whether it may hold partitions
    drain        BOOLEAN NOT NULL, -- an operator wants it to leave
    beat         BIGINT NOT NULL,  -- grows each second while the process lives
    seen         BIGINT NOT NULL   -- number of the last change that it has applied
);

-- Who counts what: the access tokens whose id begins with that byte, and the lookups of an egress label ("geo/" and the label).
CREATE TABLE partitions (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,  -- id of a node, which may be gone; '' = none yet
    epoch  BIGINT NOT NULL -- grows with each new holder
);
INSERT INTO partitions (name, holder, epoch)
WITH digits (digit) AS (VALUES ('0'), ('1'), ('2'), ('3'), ('4'), ('5'), ('6'), ('7'), ('8'), ('9'), ('a'), ('b'), ('c'), ('d'), ('e'), ('f'))
SELECT a.digit || b.digit, '', 0 FROM digits a CROSS JOIN digits b;
