-- +goose Up
ALTER TABLE clients ADD COLUMN uri TEXT NOT NULL DEFAULT ''; -- of a page about the client; '' = none

-- +goose Down
ALTER TABLE clients DROP COLUMN uri;
