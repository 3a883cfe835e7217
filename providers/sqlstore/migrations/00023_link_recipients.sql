-- +goose Up
ALTER TABLE links ADD COLUMN sent_to TEXT NOT NULL DEFAULT ''; -- address or number that the message went to
INSERT INTO schema_versions (version, oldest) VALUES (23, 18);

-- +goose Down
ALTER TABLE links DROP COLUMN sent_to;
DELETE FROM schema_versions WHERE version = 23;
