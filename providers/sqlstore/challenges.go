package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gatehouse/actors/account"
)

const (
	insertChallenge = `INSERT INTO challenges (hash, purpose, channel, address, recipient, user_id, name, password_hash, message,
code_hash, tries, sent, expires, ends) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`
	selectChallenge = `SELECT purpose, channel, address, user_id, name, password_hash, message, code_hash, tries, sent, expires, ends
FROM challenges WHERE hash = $1`
	liveChallenge  = `SELECT recipient FROM challenges WHERE hash = $1 AND ends > $2`
	renewChallenge = `UPDATE challenges SET code_hash = $2, tries = $3, sent = $4, expires = $5 WHERE hash = $1 AND ends > $4`
	countTry       = `UPDATE challenges SET tries = tries + 1
WHERE hash = $1 AND code_hash = $2 AND expires > $3 AND tries < $4`
	undoTry       = `UPDATE challenges SET tries = tries - 1 WHERE hash = $1 AND code_hash = $2 AND tries > 0`
	hasCode       = `SELECT tries FROM challenges WHERE hash = $1 AND code_hash = $2 AND expires > $3`
	takeChallenge = `DELETE FROM challenges WHERE hash = $1 AND code_hash = $2 AND expires > $3`
	selectSends   = `SELECT number, sent, entered FROM code_sends WHERE recipient = $1 AND expires > $2 ORDER BY number`
	lastSend      = `SELECT COALESCE(MAX(number), 0) FROM code_sends WHERE recipient = $1`
	insertSend    = `INSERT INTO code_sends (recipient, number, sent, entered, expires) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING`
	enterSends = `UPDATE code_sends SET entered = $2 WHERE recipient = $1`
)

// CreateChallenge implements account.ChallengeStore.
func (s *Store) CreateChallenge(ctx context.Context, c *account.Challenge) error {
	return wrap("create challenge", s.do(ctx, func(b *batch) error {
		for _, text := range []string{c.Address, c.Name, c.PasswordHash, c.CodeHash} {
			if !isText(text) {
				return refusal{errText}
			}
		}
		recipient := c.Recipient()
		if err := b.countSend(recipient, c.Sent); err != nil {
			return err
		}
		_, err := b.conn.exec(b.ctx, insertChallenge, c.Hash[:], string(c.Purpose),
			string(c.Channel), c.Address, recipient[:], c.UserID, c.Name, c.PasswordHash,
			string(c.Message), c.CodeHash, c.Tries, millis(c.Sent), millis(c.Expires),
			millis(c.Ends))
		return err
	}))
}

// countSend counts a code for a recipient. It returns a refusal, before any change, if a limit is
// reached.
func (b *batch) countSend(recipient [32]byte, now time.Time) error {
	// The number is read first: a code of another process is then seen among the sends, or has
	// taken the number.
	var last int64
	if err := b.conn.one(b.ctx, lastSend, []any{recipient[:]}, &last); err != nil {
		return err
	}
	before, err := b.sends(recipient, now)
	if err != nil {
		return err
	}
	if next := account.NextSend(before); next.After(now) {
		return refusal{&account.SendLimitError{Next: next}}
	}
	n, err := b.conn.exec(b.ctx, insertSend, recipient[:], last+1, millis(now), false,
		millis(now.Add(account.SendsRemembered)))
	if err == nil && n == 0 { // another process sent one since
		return refusal{&account.SendLimitError{Next: now.Add(account.SendInterval)}}
	}
	return err
}

func (b *batch) sends(recipient [32]byte, now time.Time) (sends []account.CodeSend, err error) {
	err = b.conn.rows(b.ctx, selectSends, []any{recipient[:], millis(now)}, func(r row) error {
		send, err := scanSend(r)
		sends = append(sends, send)
		return err
	})
	return sends, err
}

func scanSend(r row) (send account.CodeSend, err error) {
	var number, sent int64
	err = r.Scan(&number, &sent, &send.Entered)
	send.At = fromMillis(sent)
	return send, err
}

// Challenge implements account.ChallengeStore.
func (s *Store) Challenge(ctx context.Context, hash [32]byte) (*account.Challenge, error) {
	c := &account.Challenge{Hash: hash}
	err := readOne(ctx, s, account.ErrNotFound, selectChallenge, []any{hash[:]}, func(r row) error {
		var sent, expires, ends int64
		err := r.Scan(&c.Purpose, &c.Channel, &c.Address, &c.UserID, &c.Name, &c.PasswordHash,
			&c.Message, &c.CodeHash, &c.Tries, &sent, &expires, &ends)
		c.Sent, c.Expires, c.Ends = fromMillis(sent), fromMillis(expires), fromMillis(ends)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read challenge: %w", err)
	}
	var sends []account.CodeSend
	recipient := c.Recipient()
	// All stored ones: they are deleted when they no longer count.
	err = readAll(ctx, s, selectSends, []any{recipient[:], int64(0)}, func(r row) error {
		send, err := scanSend(r)
		sends = append(sends, send)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read codes sent: %w", err)
	}
	c.Again = account.NextSend(sends)
	return c, nil
}

// RenewChallenge implements account.ChallengeStore.
func (s *Store) RenewChallenge(ctx context.Context, c *account.Challenge) error {
	return wrap("renew challenge", s.do(ctx, func(b *batch) error {
		if !isText(c.CodeHash) {
			return refusal{errText}
		}
		var recipient []byte
		err := b.conn.one(b.ctx, liveChallenge, []any{c.Hash[:], millis(c.Sent)}, &recipient)
		if errors.Is(err, sql.ErrNoRows) {
			return refusal{account.ErrNotFound}
		}
		if err != nil {
			return err
		}
		if err := b.countSend([32]byte(recipient), c.Sent); err != nil {
			return err
		}
		return b.change(renewChallenge, c.Hash[:], c.CodeHash, c.Tries, millis(c.Sent),
			millis(c.Expires))
	}))
}

// CountTry implements account.ChallengeStore.
func (s *Store) CountTry(ctx context.Context, c *account.Challenge, now time.Time) error {
	return wrap("count try", s.do(ctx, func(b *batch) error {
		return b.change(countTry, c.Hash[:], c.CodeHash, millis(now), account.CodeTries)
	}))
}

// UndoTry implements account.ChallengeStore.
func (s *Store) UndoTry(ctx context.Context, c *account.Challenge) error {
	return wrap("undo try", s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, undoTry, c.Hash[:], c.CodeHash)
		return err
	}))
}

// TakeChallenge implements account.ChallengeStore. It overwrites ID, ServiceID, Version and
// Epoch of create.
func (s *Store) TakeChallenge(ctx context.Context, c *account.Challenge, create *account.User,
	now time.Time) error {
	var created account.User
	if create != nil {
		created = *create
		if err := newUserIdentity(&created); err != nil {
			return fmt.Errorf("take challenge: %w", err)
		}
	}
	err := s.do(ctx, func(b *batch) error {
		code := []any{c.Hash[:], c.CodeHash, millis(now)}
		if err := b.conn.one(b.ctx, hasCode, code, new(int)); errors.Is(err, sql.ErrNoRows) {
			return refusal{account.ErrNotFound}
		} else if err != nil {
			return err
		}
		if create != nil {
			if err := b.checkNew(&created); err != nil {
				return err
			}
		}
		if err := b.change(takeChallenge, code...); err != nil {
			return err
		}
		recipient := c.Recipient()
		if _, err := b.conn.exec(b.ctx, enterSends, recipient[:], true); err != nil {
			return err
		}
		if create == nil {
			return nil
		}
		return b.insertUser(&created)
	})
	if err != nil {
		return fmt.Errorf("take challenge: %w", err)
	}
	if create != nil {
		create.ID, create.ServiceID = created.ID, created.ServiceID
		create.Version, create.Epoch = created.Version, created.Epoch
	}
	return nil
}
