-- +goose Up
-- The few clients with rules for token exchange, which the consent page asks for.
CREATE INDEX clients_exchange ON clients (id) WHERE options LIKE '%"exchange":%';
INSERT INTO schema_versions (version, oldest) VALUES (34, 18);

-- +goose Down
DROP INDEX clients_exchange;
DELETE FROM schema_versions WHERE version = 34;
