-- +goose Up
-- How long a key is needed after its successor, in milliseconds: the longest time that a server with this database has had in its settings.
ALTER TABLE keys ADD COLUMN needed BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE keys DROP COLUMN needed;
