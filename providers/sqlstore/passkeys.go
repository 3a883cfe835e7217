package sqlstore

import (
	"context"
	"time"

	"gatehouse/actors/account"
)

const useChallenge = `INSERT INTO used_challenges (hash, ends) VALUES ($1, $2) ON CONFLICT DO NOTHING`

// UsePasskeyChallenge implements account.Store.
func (s *Store) UsePasskeyChallenge(ctx context.Context, hash [32]byte, ends time.Time) error {
	return wrap("use challenge", s.do(ctx, func(b *batch) error {
		n, err := b.conn.exec(b.ctx, useChallenge, hash[:], millis(ends))
		if err == nil && n == 0 {
			err = refusal{account.ErrConflict}
		}
		return err
	}))
}
