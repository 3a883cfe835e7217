-- What one process does at a time, and who. A lease ends at until, unless its holder renews it.
CREATE TABLE leases (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until  BIGINT NOT NULL -- milliseconds since 1970
);
CREATE INDEX leases_until ON leases (until); -- clean-up

-- The last event of the audit trail that a receiver has got.
CREATE TABLE audit_cursors (
    name   TEXT PRIMARY KEY, -- as the lease of its sender
    number BIGINT NOT NULL
);
