package sqlstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"

	"gatehouse/actors/oauth"
)

const (
	selectProviders = `SELECT id, described, secret, created, version FROM providers ORDER BY id`
	countProviders  = `SELECT COUNT(*) FROM providers`
	insertProvider  = `INSERT INTO providers (id, described, secret, created, version) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT DO NOTHING`
	updateProvider = `UPDATE providers SET described = $2, secret = $3, version = version + 1 WHERE id = $1 AND version = $4`
	resealProvider = `UPDATE providers SET secret = $2 WHERE id = $1`
	deleteProvider = `DELETE FROM providers WHERE id = $1`

	insertAttempt = `INSERT INTO provider_attempts (hash, browser, provider, purpose, session, query, user_id, identity, ends)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	attemptColumns     = `provider, purpose, session, query, user_id, identity, ends`
	selectAttempt      = `SELECT ` + attemptColumns + ` FROM provider_attempts WHERE hash = $1 AND browser = $2`
	takeAttempt        = `DELETE FROM provider_attempts WHERE hash = $1 AND browser = $2 RETURNING ` + attemptColumns
	deleteAttempts     = `DELETE FROM provider_attempts`
	deleteUserAttempts = `DELETE FROM provider_attempts WHERE user_id = $1`
)

// providerRow is a row of providers. The secret is sealed.
type providerRow struct {
	oauth.Provider
	sealed []byte
}

func scanProvider(r row) (p providerRow, err error) {
	var described string
	var created int64
	if err = r.Scan(&p.ID, &described, &p.sealed, &created, &p.Version); err == nil {
		err = json.Unmarshal([]byte(described), &p.Provider)
	}
	p.Created = fromMillis(created)
	return p, err
}

// open returns the provider with its secret.
func (p *providerRow) open(files keyFiles) (*oauth.Provider, error) {
	if len(p.sealed) > 0 {
		secret, err := files.open(p.sealed, providerData(p.ID))
		if err != nil {
			return nil, fmt.Errorf("secret of the provider %s: %w", p.ID, err)
		}
		p.Secret = string(secret)
	}
	return &p.Provider, nil
}

// providerData binds a sealed secret to its row.
func providerData(id string) []byte { return []byte("secret of provider " + id) }

// seal returns a secret under the key file: the name of the file, a nonce and the sealed secret.
func (f *keyFile) seal(secret, data []byte) []byte {
	head := len(f.name) + chacha20poly1305.NonceSizeX
	sealed := make([]byte, head, head+len(secret)+chacha20poly1305.Overhead)
	nonce := sealed[copy(sealed, f.name[:]):]
	rand.Read(nonce)
	return f.aead.Seal(sealed, nonce, secret, data)
}

// open is the inverse of seal.
func (files keyFiles) open(sealed, data []byte) ([]byte, error) {
	for _, f := range files {
		head := len(f.name) + chacha20poly1305.NonceSizeX
		if bytes.HasPrefix(sealed, f.name[:]) && len(sealed) >= head {
			return f.aead.Open(nil, sealed[len(f.name):head], sealed[head:], data)
		}
	}
	return nil, fmt.Errorf("%w: it is sealed under another one", ErrKeyFile)
}

// Providers implements oauth.ProviderStore.
func (s *Store) Providers(ctx context.Context) (all []*oauth.Provider, err error) {
	err = readAll(ctx, s, selectProviders, nil, func(r row) error {
		found, err := scanProvider(r)
		if err != nil {
			return err
		}
		p, err := found.open(s.keyFiles)
		all = append(all, p)
		return err
	})
	return all, wrap("read providers", err)
}

func (b *batch) providers(files keyFiles) (all []*oauth.Provider, err error) {
	err = b.conn.rows(b.ctx, selectProviders, nil, func(r row) error {
		found, err := scanProvider(r)
		if err != nil {
			return err
		}
		p, err := found.open(files)
		all = append(all, p)
		return err
	})
	return all, err
}

// SaveProvider implements oauth.ProviderStore.
func (s *Store) SaveProvider(ctx context.Context, p *oauth.Provider) error {
	err := s.do(ctx, func(b *batch) error { return b.saveProvider(p, s.keyFiles) })
	if err != nil {
		return fmt.Errorf("save provider: %w", err)
	}
	p.Version++
	return nil
}

func (b *batch) saveProvider(p *oauth.Provider, files keyFiles) error {
	described, err := json.Marshal(p)
	if err != nil {
		return err
	}
	sealed := []byte{}
	if p.Secret != "" {
		stored, err := b.storedKeys()
		if err != nil {
			return err
		}
		file, err := files.current(stored)
		if err != nil {
			return refusal{err}
		}
		sealed = file.seal([]byte(p.Secret), providerData(p.ID))
	}
	var n int64
	if p.Version == 0 {
		var count int64
		if err := b.conn.one(b.ctx, countProviders, nil, &count); err != nil {
			return err
		}
		if count >= oauth.MostProviders {
			return refusal{oauth.ErrBusy}
		}
		n, err = b.conn.exec(b.ctx, insertProvider, p.ID, string(described), sealed, millis(p.Created))
	} else {
		n, err = b.conn.exec(b.ctx, updateProvider, p.ID, string(described), sealed, p.Version)
	}
	if err == nil && n == 0 {
		err = refusal{oauth.ErrConflict}
	}
	return err
}

// DeleteProvider implements oauth.ProviderStore.
func (s *Store) DeleteProvider(ctx context.Context, id string) error {
	return wrap("delete provider", s.do(ctx, func(b *batch) error {
		n, err := b.conn.exec(b.ctx, deleteProvider, id)
		if err == nil && n == 0 {
			return refusal{oauth.ErrNotFound}
		}
		return err
	}))
}

// resealProviders seals the secrets of providers under another key file.
func (b *batch) resealProviders(files keyFiles, to *keyFile) error {
	all, err := b.providers(files)
	for _, p := range all {
		if p.Secret != "" && err == nil {
			_, err = b.conn.exec(b.ctx, resealProvider, p.ID,
				to.seal([]byte(p.Secret), providerData(p.ID)))
		}
	}
	return err
}

// CreateAttempt implements oauth.ProviderStore.
func (s *Store) CreateAttempt(ctx context.Context, a *oauth.ProviderAttempt) error {
	return wrap("begin a sign-in with a provider", s.do(ctx, func(b *batch) error {
		if !isText(a.Query) || !isText(a.Identity) {
			return refusal{errText}
		}
		_, err := b.conn.exec(b.ctx, insertAttempt, a.Hash[:], a.Browser[:], a.Provider, a.Purpose,
			a.Session[:], a.Query, a.UserID, a.Identity, millis(a.Ends))
		return err
	}))
}

// Attempt implements oauth.ProviderStore.
func (s *Store) Attempt(
	ctx context.Context, hash, browser [32]byte,
) (a *oauth.ProviderAttempt, err error) {
	err = readOne(ctx, s, oauth.ErrNotFound, selectAttempt, []any{hash[:], browser[:]},
		func(r row) error {
			a, err = scanAttempt(r, hash, browser)
			return err
		})
	return a, wrap("read a sign-in with a provider", err)
}

// TakeAttempt implements oauth.ProviderStore.
func (s *Store) TakeAttempt(
	ctx context.Context, hash, browser [32]byte,
) (a *oauth.ProviderAttempt, err error) {
	err = s.delete(ctx, func(b *batch) error {
		a = nil // of a try before
		err := b.conn.rows(b.ctx, takeAttempt, []any{hash[:], browser[:]}, func(r row) error {
			a, err = scanAttempt(r, hash, browser)
			return err
		})
		if err == nil && a == nil {
			err = refusal{oauth.ErrNotFound}
		}
		return err
	})
	return a, wrap("take a sign-in with a provider", err)
}

func scanAttempt(r row, hash, browser [32]byte) (*oauth.ProviderAttempt, error) {
	a := &oauth.ProviderAttempt{Hash: hash, Browser: browser}
	var session []byte
	var ends int64
	err := r.Scan(&a.Provider, &a.Purpose, &session, &a.Query, &a.UserID, &a.Identity, &ends)
	copy(a.Session[:], session)
	a.Ends = fromMillis(ends)
	return a, err
}
