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
code_hash, tries, sent, expires, ends, requester, proved_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`
	selectChallenge = `SELECT purpose, channel, address, user_id, name, password_hash, message, code_hash, tries, sent, expires, ends, requester,
proved_by FROM challenges WHERE hash = $1`
	liveChallenge  = `SELECT recipient FROM challenges WHERE hash = $1 AND ends > $2`
	renewChallenge = `UPDATE challenges SET requester = $2, sent = $3 WHERE hash = $1`
	renewCode      = `UPDATE challenges SET code_hash = $2, tries = $3, expires = $4 WHERE hash = $1`
	countTry       = `UPDATE challenges SET tries = tries + 1
WHERE hash = $1 AND code_hash = $2 AND expires > $3 AND tries < $4`
	undoTry       = `UPDATE challenges SET tries = tries - 1 WHERE hash = $1 AND code_hash = $2 AND tries > 0`
	hasCode       = `SELECT tries FROM challenges WHERE hash = $1 AND code_hash = $2 AND expires > $3`
	takeChallenge = `DELETE FROM challenges WHERE hash = $1 AND code_hash = $2 AND expires > $3`
	selectSends   = `SELECT requester, sent, entered, free FROM code_sends WHERE recipient = $1 AND expires > $2 ORDER BY number`
	lastSend      = `SELECT COALESCE(MAX(number), 0) FROM code_sends WHERE recipient = $1`
	insertSend    = `INSERT INTO code_sends (recipient, number, requester, sent, entered, long_code, free, expires)
VALUES ($1, $2, $3, $4, $5, $6, $5, $7) ON CONFLICT DO NOTHING`
	enterSends       = `UPDATE code_sends SET entered = $2 WHERE recipient = $1`
	hasLongCode      = `SELECT number FROM code_sends WHERE recipient = $1 AND long_code = $2 AND expires > $3`
	freeSend         = `UPDATE code_sends SET long_code = NULL, free = $3 WHERE recipient = $1 AND long_code = $2 AND expires > $4`
	endChallenge     = `DELETE FROM challenges WHERE hash = $1 AND ends > $2`
	deleteChallenges = `DELETE FROM challenges`
)

// CreateChallenge implements account.ChallengeStore.
func (s *Store) CreateChallenge(ctx context.Context, c *account.Challenge,
	longCode [32]byte) (plan account.Plan, err error) {
	codeHash := c.CodeHash
	err = s.do(ctx, func(b *batch) (err error) {
		for _, text := range []string{c.Address, c.Name, c.PasswordHash, c.CodeHash} {
			if !isText(text) {
				return refusal{errText}
			}
		}
		recipient := c.Recipient()
		if plan, err = b.countSend(recipient, c, longCode); err != nil {
			return err
		}
		if codeHash = c.CodeHash; plan != account.SendCode {
			codeHash = ""
		}
		_, err = b.conn.exec(b.ctx, insertChallenge, c.Hash[:], string(c.Purpose),
			string(c.Channel), c.Address, recipient[:], c.UserID, c.Name, c.PasswordHash,
			string(c.Message), codeHash, c.Tries, millis(c.Sent), millis(c.Expires),
			millis(c.Ends), c.Requester[:], string(c.ProvedBy))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("create challenge: %w", err)
	}
	c.CodeHash = codeHash
	return plan, nil
}

// countSend counts a message to the recipient of c. It returns a refusal, before any change, if a
// limit is reached.
func (b *batch) countSend(recipient [32]byte, c *account.Challenge,
	longCode [32]byte) (account.Plan, error) {
	// The number is read first: a message of another process is then seen among the sends, or has
	// taken the number.
	var last int64
	if err := b.conn.one(b.ctx, lastSend, []any{recipient[:]}, &last); err != nil {
		return 0, err
	}
	var before []account.CodeSend
	err := b.conn.rows(b.ctx, selectSends, []any{recipient[:], millis(c.Sent)}, func(r row) error {
		return scanSend(r, &before)
	})
	if err != nil {
		return 0, err
	}
	plan, again := account.PlanSend(before, c.Requester, c.Sent)
	if plan == account.SendNothing {
		return plan, nil
	}
	if again.After(c.Sent) {
		return 0, refusal{&account.SendLimitError{Next: again}}
	}
	var code []byte // NULL: no long code
	if plan == account.SendLongCode {
		code = longCode[:]
	}
	n, err := b.conn.exec(b.ctx, insertSend, recipient[:], last+1, c.Requester[:], millis(c.Sent),
		false, code, millis(c.Sent.Add(account.SendsRemembered)))
	if err == nil && n == 0 { // another process sent one since
		return 0, refusal{&account.SendLimitError{Next: c.Sent.Add(account.SendInterval)}}
	}
	return plan, err
}

func scanSend(r row, sends *[]account.CodeSend) error {
	var send account.CodeSend
	var requester []byte
	var sent int64
	err := r.Scan(&requester, &sent, &send.Entered, &send.Free)
	copy(send.Requester[:], requester)
	send.At = fromMillis(sent)
	*sends = append(*sends, send)
	return err
}

// Challenge implements account.ChallengeStore.
func (s *Store) Challenge(ctx context.Context, hash [32]byte) (*account.Challenge, error) {
	c := &account.Challenge{Hash: hash}
	err := readOne(ctx, s, account.ErrNotFound, selectChallenge, []any{hash[:]}, func(r row) error {
		var requester []byte
		var sent, expires, ends int64
		err := r.Scan(&c.Purpose, &c.Channel, &c.Address, &c.UserID, &c.Name, &c.PasswordHash,
			&c.Message, &c.CodeHash, &c.Tries, &sent, &expires, &ends, &requester, &c.ProvedBy)
		copy(c.Requester[:], requester)
		c.Sent, c.Expires, c.Ends = fromMillis(sent), fromMillis(expires), fromMillis(ends)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read challenge: %w", err)
	}
	var sends []account.CodeSend
	recipient := c.Recipient()
	err = readAll(ctx, s, selectSends, []any{recipient[:], millis(c.Sent)}, func(r row) error {
		return scanSend(r, &sends)
	})
	if err != nil {
		return nil, fmt.Errorf("read codes sent: %w", err)
	}
	var plan account.Plan
	if plan, c.Again = account.PlanSend(sends, c.Requester, c.Sent); plan == account.SendNothing {
		c.Again = c.Sent.Add(account.SendInterval) // as if it had been sent
	}
	return c, nil
}

// RenewChallenge implements account.ChallengeStore.
func (s *Store) RenewChallenge(ctx context.Context, c *account.Challenge,
	longCode [32]byte) (plan account.Plan, err error) {
	err = s.do(ctx, func(b *batch) error {
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
		if plan, err = b.countSend([32]byte(recipient), c, longCode); err != nil {
			return err
		}
		if err := b.change(renewChallenge, c.Hash[:], c.Requester[:],
			millis(c.Sent)); err != nil || plan != account.SendCode {
			return err
		}
		return b.change(renewCode, c.Hash[:], c.CodeHash, c.Tries, millis(c.Expires))
	})
	return plan, wrap("renew challenge", err)
}

// FreeSend implements account.ChallengeStore.
func (s *Store) FreeSend(ctx context.Context, recipient, longCode [32]byte) error {
	return wrap("free message", s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, freeSend, recipient[:], longCode[:], true, int64(0))
		return err
	}))
}

// HasLongCode implements account.ChallengeStore.
func (s *Store) HasLongCode(ctx context.Context, recipient, longCode [32]byte,
	now time.Time) (bool, error) {
	err := readOne(ctx, s, account.ErrNotFound, hasLongCode,
		[]any{recipient[:], longCode[:], millis(now)}, func(r row) error { return r.Scan(new(int64)) })
	if errors.Is(err, account.ErrNotFound) {
		return false, nil
	}
	return err == nil, wrap("read long code", err)
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
	recipient := c.Recipient()
	check, code := hasCode, []any{c.Hash[:], c.CodeHash, millis(now)}
	if c.LongCode != [32]byte{} {
		check, code = hasLongCode, []any{recipient[:], c.LongCode[:], millis(now)}
	}
	err := s.do(ctx, func(b *batch) error {
		if err := b.conn.one(b.ctx, check, code, new(int64)); errors.Is(err, sql.ErrNoRows) {
			return refusal{account.ErrNotFound}
		} else if err != nil {
			return err
		}
		if create != nil {
			if err := b.checkNew(&created); err != nil {
				return err
			}
		}
		if err := b.endChallenge(c, code, now); err != nil {
			return err
		}
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

// endChallenge deletes c, and uses up its long code if that was entered. It returns a refusal,
// before any change, if either is gone.
func (b *batch) endChallenge(c *account.Challenge, code []any, now time.Time) error {
	if c.LongCode == [32]byte{} {
		return b.change(takeChallenge, code...)
	}
	if err := b.change(endChallenge, c.Hash[:], millis(now)); err != nil {
		return err
	}
	recipient := c.Recipient()
	return b.change(freeSend, recipient[:], c.LongCode[:], true, millis(now))
}
