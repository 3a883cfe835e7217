-- When a signing key is first used: others read the public half before. 0 = at once.
ALTER TABLE keys ADD COLUMN starts BIGINT NOT NULL DEFAULT 0;
