-- A code is refused when its user or client has a later epoch than when the code was issued.
ALTER TABLE authorization_codes ADD COLUMN client_epoch BIGINT NOT NULL DEFAULT 0;
ALTER TABLE authorization_codes ADD COLUMN user_epoch BIGINT NOT NULL DEFAULT 0;
UPDATE authorization_codes SET
    client_epoch = COALESCE((SELECT epoch FROM clients WHERE clients.id = authorization_codes.client_id), 0),
    user_epoch = COALESCE((SELECT epoch FROM users WHERE users.id = authorization_codes.user_id), 0)
WHERE used_at IS NULL;

ALTER TABLE families ADD COLUMN repeats BIGINT NOT NULL DEFAULT 0; -- responses to the previous refresh token since it was replaced

ALTER TABLE sessions ADD COLUMN used BIGINT NOT NULL DEFAULT 0; -- the sign-in that a code was issued for with prompt=login; 0 = none
DELETE FROM sessions WHERE hash IN (SELECT hash FROM
    (SELECT hash, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY seen DESC, hash) AS place FROM sessions) AS ranked
    WHERE place > 100);

ALTER TABLE changes ADD COLUMN user_id BIGINT NOT NULL DEFAULT 0; -- of a token or family that ended; 0 = none, or not known
CREATE INDEX changes_grant ON changes (user_id, client_id) WHERE user_id <> 0; -- how many ends a user has at a client
