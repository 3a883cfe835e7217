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
	selectGuesses = `SELECT paid, told FROM guesses WHERE account = $1 AND known = $2`
	// An attempt is refused if the account owes more than a burst at $3.
	countGuess = `INSERT INTO guesses (account, known, paid, told) VALUES ($1, $2, $4, 0)
ON CONFLICT (account, known) DO UPDATE SET paid = CASE WHEN guesses.paid > $3 THEN guesses.paid ELSE $3 END + $5
WHERE guesses.paid <= $6`
	undoGuess   = `UPDATE guesses SET paid = paid - $3 WHERE account = $1 AND known = $2`
	tellGuesses = `UPDATE guesses SET told = $3 WHERE account = $1 AND known = $2 AND told <= $4`
	dropGuesses = `DELETE FROM guesses WHERE account = $1`
)

// CountGuess implements account.GuessStore. A refusal is no write, so that a flood of refused
// attempts is cheap.
func (s *Store) CountGuess(ctx context.Context, g account.Guess) error {
	var paid, told int64
	err := readOne(ctx, s, sql.ErrNoRows, selectGuesses, []any{g.Account[:], g.Known},
		func(r row) error { return r.Scan(&paid, &told) })
	if err == nil {
		err = guessLimit(g, paid, told)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("count attempt: %w", err)
	}
	return wrap("count attempt", s.do(ctx, func(b *batch) error {
		n, err := b.conn.exec(b.ctx, countGuess, g.Account[:], g.Known, millis(g.At),
			millis(g.At.Add(g.Rate.Every)), g.Rate.Every.Milliseconds(), lastPaid(g))
		if err != nil || n > 0 {
			return err
		}
		err = b.conn.one(b.ctx, selectGuesses, []any{g.Account[:], g.Known}, &paid, &told)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if limit := guessLimit(g, paid, told); err == nil && limit != nil {
			return refusal{limit}
		}
		return refusal{&account.GuessLimitError{Next: g.At}} // another process has just made room
	}))
}

// lastPaid is the latest time of paid at which g is allowed.
func lastPaid(g account.Guess) int64 {
	return millis(g.At.Add(time.Duration(g.Rate.Burst-1) * g.Rate.Every))
}

// guessLimit returns an *account.GuessLimitError if g is not allowed.
func guessLimit(g account.Guess, paid, told int64) error {
	wait := paid - lastPaid(g)
	if wait <= 0 {
		return nil
	}
	return &account.GuessLimitError{
		Next: fromMillis(millis(g.At) + wait), Told: told > toldBefore(g.At),
	}
}

// toldBefore is the latest time of told at which an owner may be told again at now.
func toldBefore(now time.Time) int64 { return millis(now.Add(-account.GuessesTold)) }

// UndoGuess implements account.GuessStore.
func (s *Store) UndoGuess(ctx context.Context, g account.Guess) error {
	return wrap("undo attempt", s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, undoGuess, g.Account[:], g.Known,
			g.Rate.Every.Milliseconds())
		return err
	}))
}

// TellGuesses implements account.GuessStore.
func (s *Store) TellGuesses(ctx context.Context, g account.Guess) error {
	return wrap("tell owner", s.do(ctx, func(b *batch) error {
		return b.change(tellGuesses, g.Account[:], g.Known, millis(g.At), toldBefore(g.At))
	}))
}

// dropGuesses forgets the attempts at the account with that e-mail address.
func (b *batch) dropGuesses(email string) error {
	key := account.GuessedAccount(email)
	_, err := b.conn.exec(b.ctx, dropGuesses, key[:])
	return err
}
