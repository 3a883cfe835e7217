-- The few clients with rules for token exchange, which the consent page asks for.
CREATE INDEX clients_exchange ON clients (id) WHERE options LIKE '%"exchange":%';
INSERT INTO schema_versions (version, oldest) VALUES (34, 18);
