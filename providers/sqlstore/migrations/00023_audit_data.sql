-- +goose Up
ALTER TABLE audit ADD COLUMN browser TEXT NOT NULL DEFAULT ''; -- browser and system in a few words
ALTER TABLE audit ADD COLUMN data TEXT NOT NULL DEFAULT '';    -- what the action says besides, a JSON object; '' = nothing

-- +goose Down
ALTER TABLE audit DROP COLUMN data;
ALTER TABLE audit DROP COLUMN browser;
