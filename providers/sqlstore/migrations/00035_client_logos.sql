-- Pictures of clients that operators have set. The options of a client name its picture.
CREATE TABLE client_logos (
    client_id TEXT PRIMARY KEY REFERENCES clients (id) ON DELETE CASCADE,
    type      TEXT NOT NULL, -- media type
    data      BYTEA NOT NULL
);
INSERT INTO schema_versions (version, oldest) VALUES (35, 18);
