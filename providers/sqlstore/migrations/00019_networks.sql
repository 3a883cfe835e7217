-- The network that asked for a device code, an IPv4 address or an IPv6 /48; '' = not known.
ALTER TABLE device_codes ADD COLUMN network TEXT NOT NULL DEFAULT '';
CREATE INDEX device_codes_waiting ON device_codes (client_id, network, created) WHERE decision = 0; -- the largest holder
-- The same of a client that registered itself, and its caller, an IPv4 address or an IPv6 /64. Both are '' after a consent.
ALTER TABLE clients ADD COLUMN network TEXT NOT NULL DEFAULT '';
ALTER TABLE clients ADD COLUMN caller TEXT NOT NULL DEFAULT '';
CREATE INDEX clients_waiting ON clients (network, caller, awaits) WHERE awaits > 0; -- the largest holder
INSERT INTO schema_versions (version, oldest) VALUES (19, 18);
