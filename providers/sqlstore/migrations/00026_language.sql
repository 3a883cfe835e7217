-- The language that the person chose, and that of a notice (BCP 47), where '' is not known.
ALTER TABLE users ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN language TEXT NOT NULL DEFAULT '';
INSERT INTO schema_versions (version, oldest) VALUES (26, 18);
