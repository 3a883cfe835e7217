ALTER TABLE clients ADD COLUMN uri TEXT NOT NULL DEFAULT ''; -- of a page about the client; '' = none
ALTER TABLE consents ADD COLUMN used BIGINT NOT NULL DEFAULT 0; -- when the client last got a code; 0 = never
