-- What people read of a resource and, as a JSON object, of its scopes.
ALTER TABLE resources ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE resources ADD COLUMN scope_texts TEXT NOT NULL DEFAULT '';
INSERT INTO schema_versions (version, oldest) VALUES (25, 18);
