ALTER TABLE audit ADD COLUMN browser TEXT NOT NULL DEFAULT ''; -- browser and system in a few words
ALTER TABLE audit ADD COLUMN data TEXT NOT NULL DEFAULT '';    -- what the action says besides, a JSON object; '' = nothing
INSERT INTO schema_versions (version, oldest) VALUES (22, 18);
