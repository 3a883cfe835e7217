-- What few clients are registered for, and what few grants have, as JSON; '' = nothing.
ALTER TABLE clients ADD COLUMN options TEXT NOT NULL DEFAULT '';
ALTER TABLE authorization_codes ADD COLUMN details TEXT NOT NULL DEFAULT '';
ALTER TABLE families ADD COLUMN details TEXT NOT NULL DEFAULT '';

-- The session of the browser that a code was issued in, and that a family ends with; NULL = none.
ALTER TABLE authorization_codes ADD COLUMN session BYTEA;
ALTER TABLE families ADD COLUMN session BYTEA;
CREATE INDEX families_session ON families (session) WHERE session IS NOT NULL; -- the end of a session
