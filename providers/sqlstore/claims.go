package sqlstore

import (
	"context"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

const (
	selectClaims = `SELECT c.name, c.attribute, c.scope, c.set_name, c.declared, COALESCE(a.type, '')
FROM claims c LEFT JOIN attributes a ON a.name = c.attribute ORDER BY c.name`
	putClaim = `INSERT INTO claims (name, attribute, scope, set_name, declared) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (name) DO UPDATE SET attribute = excluded.attribute, scope = excluded.scope, set_name = excluded.set_name, declared = excluded.declared`
	deleteClaim  = `DELETE FROM claims WHERE name = $1`
	hasAttribute = `SELECT 1 FROM attributes WHERE name = $1`
)

// claimsChanged is the subject of a change of kind client that says that claims or attributes have
// changed. No client has such an ID: programs that know no claims ignore it.
const claimsChanged = ":claims"

// noteClaims notes that claims, or the attributes that they are made of, have changed, or that a
// resource was deleted.
func (b *batch) noteClaims() { b.note(clientChange, claimsChanged) }

// Claims implements oauth.Store.
func (s *Store) Claims(ctx context.Context) (all []oauth.Claim, err error) {
	err = readAll(ctx, s, selectClaims, nil, func(r row) error {
		c, err := scanClaim(r)
		all = append(all, c)
		return err
	})
	return all, wrap("read claims", err)
}

func scanClaim(r row) (c oauth.Claim, err error) {
	err = r.Scan(&c.Name, &c.Attribute, &c.Scope, &c.Set, &c.Declared, &c.Type)
	return c, err
}

// PutClaim implements oauth.Store.
func (s *Store) PutClaim(ctx context.Context, c oauth.Claim) error {
	return wrap("write claim", s.do(ctx, func(b *batch) error {
		found, err := b.conn.has(b.ctx, hasAttribute, c.Attribute)
		if err != nil {
			return err
		}
		if !found {
			return refusal{oauth.ErrNotFound}
		}
		return b.putClaim(c)
	}))
}

func (b *batch) putClaim(c oauth.Claim) error {
	b.noteClaims()
	_, err := b.conn.exec(b.ctx, putClaim, c.Name, c.Attribute, c.Scope, c.Set, c.Declared)
	return err
}

// DeleteClaim implements oauth.Store.
func (s *Store) DeleteClaim(ctx context.Context, name string) error {
	return wrap("delete claim", s.do(ctx, func(b *batch) error {
		switch err := b.change(deleteClaim, name); err {
		case refusal{account.ErrNotFound}:
			return refusal{oauth.ErrNotFound}
		case nil:
			b.noteClaims()
			return nil
		default:
			return err
		}
	}))
}
