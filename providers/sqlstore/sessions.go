package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gatehouse/actors/account"
)

const (
	insertSession = `INSERT INTO sessions (hash, user_id, created, signed_in, seen, expires, device, amr, way, factored, new_browser)
SELECT $1, id, $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM users WHERE id = $2`
	// surplusSessions are all but the new session and those that were used last.
	surplusSessions = `user_id = $1 AND hash <> $2 AND hash NOT IN
(SELECT hash FROM sessions WHERE user_id = $1 AND hash <> $2 ORDER BY seen DESC, created DESC, hash LIMIT CAST($3 AS BIGINT))`
	selectSession  = `SELECT hash, user_id, created, signed_in, seen, expires, used, device, amr, proved, proved_by, way, factored, new_browser FROM sessions WHERE hash = $1`
	selectSessions = `SELECT hash, user_id, created, signed_in, seen, expires, used, device, amr, proved, proved_by, way, factored, new_browser FROM sessions
WHERE user_id = $1 ORDER BY created, hash`
	proveSession  = `UPDATE sessions SET proved = $2, proved_by = $3, factored = $4, amr = $5 WHERE hash = $1`
	updateSession = `UPDATE sessions SET signed_in = $2, seen = $3, expires = $4 WHERE hash = $1`
	useSignIn     = `UPDATE sessions SET used = $2 WHERE hash = $1 AND signed_in = $2 AND used <> $2`
	sessionOwner  = `SELECT user_id FROM sessions WHERE hash = $1 AND user_id = $2`
	oneSession    = `hash = $1`
	otherSessions = `user_id = $1 AND hash <> $2`
)

// CreateSession implements account.Store. It returns ErrNotFound if there is no such user.
func (s *Store) CreateSession(ctx context.Context, session *account.Session,
	notices ...account.Notice) (tokens bool, err error) {
	return tokens, wrap("create session", s.do(ctx, func(b *batch) (err error) {
		amr := strings.Join(session.AMR, " ")
		if !isText(session.Device) || !isText(amr) {
			return refusal{errText}
		}
		err = b.change(insertSession, session.Hash[:], session.UserID, millis(session.Created),
			millis(session.SignedIn), millis(session.Seen), millis(session.Expires), session.Device,
			amr, string(session.Way), millis(session.Factored), session.NewBrowser)
		if err != nil {
			return err
		}
		_, tokens, err = b.endSessions(surplusSessions, session.UserID, session.Hash[:],
			account.MaxSessions-1)
		if err != nil {
			return err
		}
		return b.addNotices(notices)
	}))
}

// change executes a statement. It returns the refusal ErrNotFound if no row changed.
func (b *batch) change(text string, args ...any) error {
	n, err := b.conn.exec(b.ctx, text, args...)
	if err == nil && n == 0 {
		err = refusal{account.ErrNotFound}
	}
	return err
}

// Session implements account.Store. It returns an expired session until it is swept, and then
// ErrNotFound.
func (s *Store) Session(ctx context.Context, hash [32]byte) (session *account.Session, err error) {
	err = readOne(ctx, s, account.ErrNotFound, selectSession, []any{hash[:]}, func(r row) error {
		session, err = scanSession(r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return session, nil
}

// Sessions implements account.Store. The oldest is first.
func (s *Store) Sessions(ctx context.Context,
	userID int64) (sessions []*account.Session, err error) {
	err = readAll(ctx, s, selectSessions, []any{userID}, func(r row) error {
		session, err := scanSession(r)
		sessions = append(sessions, session)
		return err
	})
	return sessions, wrap("read sessions", err)
}

func scanSession(r row) (*account.Session, error) {
	var s account.Session
	var hash []byte
	var created, signedIn, seen, expires, used, proved, factored int64
	var amr string
	if err := r.Scan(&hash, &s.UserID, &created, &signedIn, &seen, &expires, &used,
		&s.Device, &amr, &proved, &s.ProvedBy, &s.Way, &factored, &s.NewBrowser); err != nil {
		return nil, err
	}
	s.Hash, s.Proved = [32]byte(hash), fromMillis(proved)
	s.Factored = fromMillis(factored)
	if amr != "" {
		s.AMR = strings.Fields(amr)
	}
	s.Created, s.SignedIn = fromMillis(created), fromMillis(signedIn)
	s.Seen, s.Expires, s.Used = fromMillis(seen), fromMillis(expires), fromMillis(used)
	return &s, nil
}

// UpdateSession implements account.Store. It returns ErrNotFound if the session has ended.
func (s *Store) UpdateSession(ctx context.Context, session *account.Session) error {
	return wrap("update session", s.do(ctx, func(b *batch) error {
		return b.change(updateSession, session.Hash[:], millis(session.SignedIn),
			millis(session.Seen), millis(session.Expires))
	}))
}

// ProveSession implements account.Store.
func (s *Store) ProveSession(ctx context.Context, session *account.Session) error {
	return wrap("prove session", s.do(ctx, func(b *batch) error {
		return b.change(proveSession, session.Hash[:], millis(session.Proved),
			string(session.ProvedBy), millis(session.Factored), strings.Join(session.AMR, " "))
	}))
}

// UseSignIn implements account.Store.
func (s *Store) UseSignIn(ctx context.Context, session *account.Session) error {
	return wrap("use sign-in", s.do(ctx, func(b *batch) error {
		n, err := b.conn.exec(b.ctx, useSignIn, session.Hash[:], millis(session.SignedIn))
		if err == nil && n == 0 {
			err = refusal{account.ErrConflict}
		}
		return err
	}))
}

// DeleteSession implements account.Store. It returns nil if there is no such session.
func (s *Store) DeleteSession(ctx context.Context, hash [32]byte) (tokens bool, err error) {
	tokens, err = s.deleteSessions(ctx, oneSession, hash[:])
	return tokens, wrap("delete session", err)
}

// DeleteSessions implements account.Store.
func (s *Store) DeleteSessions(ctx context.Context, userID int64, keep [32]byte) (tokens bool,
	err error) {
	tokens, err = s.deleteSessions(ctx, otherSessions, userID, keep[:])
	return tokens, wrap("delete sessions", err)
}

func (s *Store) deleteSessions(ctx context.Context, which string, args ...any) (tokens bool,
	err error) {
	return tokens, s.delete(ctx, func(b *batch) error {
		n, ended, err := b.endSessions(which, args...)
		tokens = ended
		if err == nil && n == 0 {
			err = errNoEffect
		}
		return err
	})
}

const (
	selectConsent = `SELECT user_id, client_id, scopes, devices, resources, granted, used, used FROM consents WHERE user_id = $1 AND client_id = $2`
	// The last column is the last time at which a family of the grant advanced.
	selectConsents = `SELECT c.user_id, c.client_id, c.scopes, c.devices, c.resources, c.granted, c.used,
COALESCE((SELECT MAX(f.advanced) FROM families f WHERE f.user_id = c.user_id AND f.client_id = c.client_id), 0)
FROM consents c WHERE c.user_id = $1 ORDER BY c.client_id`
	// It inserts the first consent, or changes the one that was granted at $6.
	grantConsent = `INSERT INTO consents (user_id, client_id, scopes, granted, used, resources)
SELECT u.id, c.id, $3, $4, $5, $7 FROM users u CROSS JOIN clients c WHERE u.id = $1 AND c.id = $2
AND (CAST($6 AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM consents o WHERE o.user_id = $1 AND o.client_id = $2))
ON CONFLICT (user_id, client_id) DO UPDATE SET scopes = consents.scopes | excluded.scopes, used = excluded.used,
resources = CASE WHEN excluded.resources = '' THEN consents.resources ELSE excluded.resources END,
granted = CASE WHEN consents.granted < excluded.granted THEN excluded.granted ELSE consents.granted + 1 END
WHERE consents.granted = $6`
	hasGrantParties = `SELECT u.id FROM users u CROSS JOIN clients c WHERE u.id = $1 AND c.id = $2`
	useConsent      = `UPDATE consents SET used = CASE WHEN used > $3 THEN used ELSE $3 END WHERE user_id = $1 AND client_id = $2`
)

// Consent implements account.Store. It returns ErrNotFound if nothing was granted.
func (s *Store) Consent(ctx context.Context, userID int64,
	clientID string) (consent *account.Consent, err error) {
	if !isText(clientID) {
		return nil, fmt.Errorf("read consent: %w", account.ErrNotFound)
	}
	err = readOne(ctx, s, account.ErrNotFound, selectConsent, []any{userID, clientID},
		func(r row) error {
			consent, err = scanConsent(r)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("read consent: %w", err)
	}
	return consent, nil
}

// Consents implements account.Store.
func (s *Store) Consents(ctx context.Context,
	userID int64) (consents []*account.Consent, err error) {
	err = readAll(ctx, s, selectConsents, []any{userID}, func(r row) error {
		c, err := scanConsent(r)
		consents = append(consents, c)
		return err
	})
	return consents, wrap("read consents", err)
}

func scanConsent(r row) (*account.Consent, error) {
	var c account.Consent
	var granted, used, advanced int64
	err := r.Scan(&c.UserID, &c.ClientID, &c.Scopes, &c.Devices, &c.Resources, &granted, &used, &advanced)
	c.Granted, c.Used = fromMillis(granted), fromMillis(max(used, advanced))
	return &c, err
}

// GrantConsent implements account.Store.
func (s *Store) GrantConsent(ctx context.Context, c *account.Consent, before time.Time) error {
	return wrap("grant consent", s.do(ctx, func(b *batch) error {
		if !isText(c.ClientID) {
			return refusal{account.ErrNotFound}
		}
		if err := b.checkSelfRegistered(c); err != nil {
			return err
		}
		n, err := b.conn.exec(b.ctx, grantConsent, c.UserID, c.ClientID, int64(c.Scopes),
			millis(c.Granted), millis(c.Used), millis(before), c.Resources)
		if err != nil || n > 0 {
			return err
		}
		switch found, err := b.conn.has(b.ctx, hasGrantParties, c.UserID, c.ClientID); {
		case err != nil:
			return err
		case found:
			return refusal{account.ErrConflict}
		}
		return refusal{account.ErrNotFound}
	}))
}

// UseConsent implements account.Store.
func (s *Store) UseConsent(ctx context.Context, c *account.Consent) error {
	return wrap("use consent", s.do(ctx, func(b *batch) error {
		if !isText(c.ClientID) {
			return refusal{account.ErrNotFound}
		}
		return b.change(useConsent, c.UserID, c.ClientID, millis(c.Used))
	}))
}
