package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gatehouse/actors/oauth"
)

const selectCode = `SELECT client_id, user_id, redirect_uri, scopes, default_scopes, code_challenge, expires, used_at, family_id
FROM authorization_codes WHERE hash = $1`

// AuthorizationCode implements oauth.Store.
func (s *Store) AuthorizationCode(ctx context.Context,
	hash oauth.Hash) (*oauth.AuthorizationCode, error) {
	c := oauth.AuthorizationCode{Hash: hash}
	var expires int64
	var used sql.NullInt64
	err := readOne(ctx, s, oauth.ErrNotFound, selectCode, []any{hash[:]}, func(r row) error {
		return r.Scan(&c.ClientID, &c.UserID, &c.RedirectURI, &c.Scopes, &c.DefaultScopes,
			&c.CodeChallenge, &expires, &used, &c.FamilyID)
	})
	if err != nil {
		return nil, fmt.Errorf("read authorization code: %w", err)
	}
	c.Expires, c.Used = fromMillis(expires), fromMillis(used.Int64)
	return &c, nil
}

const selectRefreshToken = `SELECT r.generation, f.id, f.client_id, f.user_id, f.scopes, f.generation, f.advanced, f.expires, f.ends, f.revoked
FROM refresh_tokens r JOIN families f ON f.id = r.family_id WHERE r.hash = $1`

// RefreshToken implements oauth.Store.
func (s *Store) RefreshToken(ctx context.Context, hash oauth.Hash) (*oauth.RefreshToken, error) {
	t := oauth.RefreshToken{Hash: hash}
	f := &t.Family
	var advanced, expires, ends int64
	err := readOne(ctx, s, oauth.ErrNotFound, selectRefreshToken, []any{hash[:]},
		func(r row) error {
			return r.Scan(&t.Generation, &f.ID, &f.ClientID, &f.UserID, &f.Scopes, &f.Generation,
				&advanced, &expires, &ends, &f.Revoked)
		})
	if err != nil {
		return nil, fmt.Errorf("read refresh token: %w", err)
	}
	f.Advanced, f.Expires, f.Ends = fromMillis(advanced), fromMillis(expires), fromMillis(ends)
	return &t, nil
}

const selectAccessToken = `SELECT client_id, user_id, family_id, scopes, issued, expires FROM access_tokens WHERE hash = $1`

// AccessToken implements oauth.Store.
func (s *Store) AccessToken(ctx context.Context, hash oauth.Hash) (*oauth.AccessToken, error) {
	t := oauth.AccessToken{Hash: hash}
	var issued, expires int64
	err := readOne(ctx, s, oauth.ErrNotFound, selectAccessToken, []any{hash[:]}, func(r row) error {
		return r.Scan(&t.ClientID, &t.UserID, &t.FamilyID, &t.Scopes, &issued, &expires)
	})
	if err != nil {
		return nil, fmt.Errorf("read access token: %w", err)
	}
	t.Issued, t.Expires = fromMillis(issued), fromMillis(expires)
	return &t, nil
}

const (
	insertKey  = `INSERT INTO keys (name, value, created) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`
	selectKeys = `SELECT name, value, created FROM keys`
	// lockKey returns the creation time of the current key and the number of previous ones. It
	// locks the current key until the end of the transaction, so that no other process rotates it.
	lockKey = `UPDATE keys SET created = created WHERE name = 'current' RETURNING created,
(SELECT count(*) FROM keys WHERE name = 'previous')`
	deleteKey = `DELETE FROM keys WHERE name = 'previous'`
	retireKey = `UPDATE keys SET name = 'previous' WHERE name = 'current'`
)

// AccessTokenKeys implements oauth.Store. If several processes create the first key concurrently,
// all get the same one.
func (s *Store) AccessTokenKeys(ctx context.Context) (oauth.Keys, error) {
	keys, err := s.readKeys(ctx)
	if err != nil || keys.Current != ([32]byte{}) {
		return keys, wrap("read keys", err)
	}
	var fresh [32]byte
	rand.Read(fresh[:])
	err = s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, insertKey, "current", fresh[:], time.Now().UnixMilli())
		return err
	})
	if err != nil {
		return oauth.Keys{}, fmt.Errorf("create key: %w", err)
	}
	keys, err = s.readKeys(ctx)
	return keys, wrap("read keys", err)
}

// RotateKeys implements oauth.Store.
func (s *Store) RotateKeys(ctx context.Context, now, settled time.Time) (oauth.Keys, error) {
	if _, err := s.AccessTokenKeys(ctx); err != nil { // creates one to rotate
		return oauth.Keys{}, err
	}
	var fresh [32]byte
	rand.Read(fresh[:])
	err := s.do(ctx, func(b *batch) error { return b.rotateKeys(fresh, now, settled) })
	if err != nil {
		return oauth.Keys{}, fmt.Errorf("rotate keys: %w", err)
	}
	keys, err := s.readKeys(ctx)
	return keys, wrap("read keys", err)
}

func (b *batch) rotateKeys(fresh [32]byte, now, settled time.Time) error {
	var made, previous int64
	err := b.conn.one(b.ctx, lockKey, nil, &made, &previous)
	if errors.Is(err, sql.ErrNoRows) {
		return refusal{oauth.ErrKeysInUse} // another process rotated it since
	}
	if err != nil {
		return err
	}
	if previous > 0 && made > millis(settled) {
		return refusal{oauth.ErrKeysInUse}
	}
	if _, err := b.conn.exec(b.ctx, deleteKey); err != nil {
		return err
	}
	if _, err := b.conn.exec(b.ctx, retireKey); err != nil {
		return err
	}
	_, err = b.conn.exec(b.ctx, insertKey, "current", fresh[:], millis(now))
	return err
}

func (s *Store) readKeys(ctx context.Context) (keys oauth.Keys, err error) {
	err = readAll(ctx, s, selectKeys, nil, func(r row) error {
		var name string
		var value []byte
		var created int64
		if err := r.Scan(&name, &value, &created); err != nil {
			return err
		}
		if len(value) != 32 {
			return fmt.Errorf("key %s has %d bytes, not 32", name, len(value))
		}
		switch name {
		case "current":
			keys.Current, keys.Made = [32]byte(value), fromMillis(created)
		case "previous":
			keys.Previous = [32]byte(value)
		}
		return nil
	})
	return keys, err
}
