ALTER TABLE links ADD COLUMN sent_to TEXT NOT NULL DEFAULT ''; -- address or number that the message went to
INSERT INTO schema_versions (version, oldest) VALUES (23, 18);
