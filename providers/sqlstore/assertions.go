package sqlstore

import (
	"context"
	"time"

	"gatehouse/actors/oauth"
)

const useAssertion = `INSERT INTO client_assertions (hash, expires) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING`

// UseAssertion implements oauth.Store. The primary key decides, in all processes.
func (s *Store) UseAssertion(ctx context.Context, replay oauth.Hash, expires time.Time) error {
	return wrap("use assertion", s.do(ctx, func(b *batch) error {
		n, err := b.conn.exec(b.ctx, useAssertion, replay[:], millis(expires))
		if err == nil && n == 0 {
			err = refusal{oauth.ErrConflict}
		}
		return err
	}))
}
