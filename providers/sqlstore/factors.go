package sqlstore

import (
	"context"
	"time"

	"gatehouse/actors/account"
)

const (
	insertPending = `INSERT INTO pending_sign_ins (hash, browser, user_id, state, way, means, known, password_hash, confirmed, ends)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	selectPending  = `SELECT browser, user_id, state, way, means, known, password_hash, confirmed, ends FROM pending_sign_ins WHERE hash = $1`
	confirmPending = `UPDATE pending_sign_ins SET confirmed = $2 WHERE hash = $1`
	takePending    = `DELETE FROM pending_sign_ins WHERE hash = $1`

	insertTrust     = `INSERT INTO trusted_browsers (hash, user_id, ends) VALUES ($1, $2, $3)`
	selectTrust     = `SELECT user_id, ends FROM trusted_browsers WHERE hash = $1`
	deleteTrustOf   = `DELETE FROM trusted_browsers WHERE user_id = $1`
	deletePendingOf = `DELETE FROM pending_sign_ins WHERE user_id = $1`

	deletePendingSignIns  = `DELETE FROM pending_sign_ins`
	deleteTrustedBrowsers = `DELETE FROM trusted_browsers`

	selectFactorGuesses = `SELECT own, COUNT(*), MIN(at) FROM factor_guesses WHERE user_id = $1 AND at > $2 GROUP BY own`
	insertFactorGuess   = `INSERT INTO factor_guesses (user_id, id, own, at) VALUES ($1, $2, $3, $4)`
	deleteFactorGuess   = `DELETE FROM factor_guesses WHERE user_id = $1 AND id = $2`
	freeFactorGuesses   = `DELETE FROM factor_guesses WHERE user_id = $1`
)

// CreatePendingSignIn implements account.FactorStore.
func (s *Store) CreatePendingSignIn(ctx context.Context, p *account.PendingSignIn) error {
	return wrap("create pending sign-in", s.do(ctx, func(b *batch) error {
		if !isText(p.PasswordHash) {
			return refusal{errText}
		}
		_, err := b.conn.exec(b.ctx, insertPending, p.Hash[:], p.Browser[:], p.UserID, p.State[:],
			string(p.Way), p.Means, p.Known, p.PasswordHash, p.Confirmed, millis(p.Ends))
		return err
	}))
}

// PendingSignIn implements account.FactorStore.
func (s *Store) PendingSignIn(
	ctx context.Context, hash [32]byte,
) (*account.PendingSignIn, error) {
	p := &account.PendingSignIn{Hash: hash}
	err := readOne(ctx, s, account.ErrNotFound, selectPending, []any{hash[:]}, func(r row) error {
		var browser, state []byte
		var ends int64
		err := r.Scan(&browser, &p.UserID, &state, &p.Way, &p.Means, &p.Known, &p.PasswordHash,
			&p.Confirmed, &ends)
		copy(p.Browser[:], browser)
		copy(p.State[:], state)
		p.Ends = fromMillis(ends)
		return err
	})
	if err != nil {
		return nil, wrap("read pending sign-in", err)
	}
	return p, nil
}

// ConfirmPendingSignIn implements account.FactorStore.
func (s *Store) ConfirmPendingSignIn(ctx context.Context, hash [32]byte) error {
	return wrap("confirm pending sign-in", s.do(ctx, func(b *batch) error {
		return b.change(confirmPending, hash[:], true)
	}))
}

// TakePendingSignIn implements account.FactorStore.
func (s *Store) TakePendingSignIn(ctx context.Context, hash [32]byte) error {
	return wrap("take pending sign-in", s.do(ctx, func(b *batch) error {
		return b.change(takePending, hash[:])
	}))
}

// TrustBrowser implements account.FactorStore.
func (s *Store) TrustBrowser(ctx context.Context, t *account.TrustedBrowser) error {
	return wrap("trust browser", s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, insertTrust, t.Hash[:], t.UserID, millis(t.Ends))
		return err
	}))
}

// TrustedBrowser implements account.FactorStore.
func (s *Store) TrustedBrowser(
	ctx context.Context, hash [32]byte,
) (*account.TrustedBrowser, error) {
	t := &account.TrustedBrowser{Hash: hash}
	err := readOne(ctx, s, account.ErrNotFound, selectTrust, []any{hash[:]}, func(r row) error {
		var ends int64
		err := r.Scan(&t.UserID, &ends)
		t.Ends = fromMillis(ends)
		return err
	})
	if err != nil {
		return nil, wrap("read trusted browser", err)
	}
	return t, nil
}

// CountFactor implements account.FactorStore. It locks the user first, so that concurrent attempts
// cannot exceed a limit.
func (s *Store) CountFactor(
	ctx context.Context, g account.FactorGuess,
) (c account.FactorGuesses, err error) {
	err = s.do(ctx, func(b *batch) error {
		c = account.FactorGuesses{} // of another try
		if err := b.change(lockUser, g.UserID); err != nil {
			return err
		}
		err := b.conn.rows(b.ctx, selectFactorGuesses, factorWindow(g.UserID, g.At),
			func(r row) error { return scanFactorGuesses(r, &c) })
		if err != nil {
			return err
		}
		if err := c.Check(g); err != nil {
			return refusal{err}
		}
		if g.Own {
			c.Own++
		} else {
			c.Others++
		}
		_, err = b.conn.exec(b.ctx, insertFactorGuess, g.UserID, g.ID, g.Own, millis(g.At))
		return err
	})
	return c, wrap("count second factor", err)
}

// FactorGuesses implements account.FactorStore.
func (s *Store) FactorGuesses(
	ctx context.Context, userID int64, at time.Time,
) (c account.FactorGuesses, err error) {
	err = readAll(ctx, s, selectFactorGuesses, factorWindow(userID, at),
		func(r row) error { return scanFactorGuesses(r, &c) })
	return c, wrap("read attempts at second factors", err)
}

func factorWindow(userID int64, at time.Time) []any {
	return []any{userID, millis(at.Add(-account.FactorWindow))}
}

func scanFactorGuesses(r row, c *account.FactorGuesses) error {
	var own bool
	var n int
	var oldest int64
	err := r.Scan(&own, &n, &oldest)
	if own {
		c.Own, c.OldestOwn = n, fromMillis(oldest)
	} else {
		c.Others, c.OldestOthers = n, fromMillis(oldest)
	}
	return err
}

// UndoFactor implements account.FactorStore.
func (s *Store) UndoFactor(ctx context.Context, g account.FactorGuess) error {
	return wrap("undo attempt at a second factor", s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, deleteFactorGuess, g.UserID, g.ID)
		return err
	}))
}

// changeTrust ends the trust in the browsers of a user, and the sign-ins that wait, as c says.
func (b *batch) changeTrust(userID int64, c account.CredentialChange) error {
	var texts []string
	if c.EndTrust {
		texts = append(texts, deleteTrustOf)
	}
	if c.EndTokens || c.EndSessions {
		texts = append(texts, deletePendingOf)
	}
	if c.FreeFactors {
		texts = append(texts, freeFactorGuesses)
	}
	for _, text := range texts {
		if _, err := b.conn.exec(b.ctx, text, userID); err != nil {
			return err
		}
	}
	return nil
}
