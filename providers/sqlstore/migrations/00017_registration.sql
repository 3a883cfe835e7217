-- When a client that registered itself ends unless a person consents before; 0 = it does not.
ALTER TABLE clients ADD COLUMN awaits BIGINT NOT NULL DEFAULT 0;
-- When the use of a client that registered itself is looked at; 0 = never, for others.
ALTER TABLE clients ADD COLUMN review BIGINT NOT NULL DEFAULT 0;
UPDATE clients SET review = 1 WHERE options LIKE '%"self_registered":true%';
CREATE INDEX clients_awaits ON clients (awaits) WHERE awaits > 0; -- their number
CREATE INDEX clients_review ON clients (review) WHERE review > 0; -- clean-up
