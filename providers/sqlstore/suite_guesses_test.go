package sqlstore_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
)

var guessTests = map[string]func(*testing.T, *fixture){
	"GuessesAreLimited":             guessesAreLimited,
	"GuessesAreCountedApart":        guessesAreCountedApart,
	"UndoneGuessDoesNotCount":       undoneGuessDoesNotCount,
	"ConcurrentGuessesAreLimited":   concurrentGuessesAreLimited,
	"OwnerIsToldOnceADay":           ownerIsToldOnceADay,
	"NewPasswordForgetsGuesses":     newPasswordForgetsGuesses,
	"SweepDeletesForgottenAttempts": sweepDeletesGuesses,
}

// guess returns an attempt, after a while, at the account with that address.
func (f *fixture) guess(email string, after time.Duration) account.Guess {
	return account.Guess{
		Account: account.GuessedAccount(email), At: f.now.Add(after),
		Rate: account.GuessRate{Burst: 3, Every: 10 * time.Second},
	}
}

// guesses counts as many attempts as are allowed.
func (f *fixture) guesses(g account.Guess) (n int) {
	f.Helper()
	var limit *account.GuessLimitError
	for {
		err := f.CountGuess(f.ctx, g)
		if errors.As(err, &limit) {
			return n
		}
		f.must(err)
		n++
	}
}

func (f *fixture) wantGuesses(what string, g account.Guess, want int) {
	f.Helper()
	if got := f.guesses(g); got != want {
		f.Errorf("%s: got %d attempts, want %d", what, got, want)
	}
}

func guessesAreLimited(t *testing.T, f *fixture) {
	f.wantGuesses("at once", f.guess("ada@example.org", 0), 3)
	for _, after := range []time.Duration{0, 4 * time.Second, 10*time.Second - time.Millisecond} {
		err := f.CountGuess(f.ctx, f.guess("ADA@example.ORG", after))
		var limit *account.GuessLimitError
		if next := f.now.Add(10 * time.Second); !errors.As(err, &limit) ||
			!limit.Next.Equal(next) || limit.Told {
			t.Errorf("after %v: got %+v, want a limit until %v of which nobody is told", after, limit,
				next)
		}
	}
	f.wantGuesses("one interval later", f.guess("ada@example.org", 10*time.Second), 1)
	f.wantGuesses("two more", f.guess("ada@example.org", 30*time.Second), 2)
	f.wantGuesses("long after", f.guess("ada@example.org", time.Hour), 3)
}

func guessesAreCountedApart(_ *testing.T, f *fixture) {
	f.wantGuesses("unknown browsers", f.guess("ada@example.org", 0), 3)
	known := f.guess("ada@example.org", 0)
	known.Known = true
	f.wantGuesses("known browsers", known, 3)
	f.wantGuesses("another account", f.guess("bea@example.org", 0), 3)
}

func undoneGuessDoesNotCount(_ *testing.T, f *fixture) {
	g := f.guess("ada@example.org", 0)
	for range 10 {
		f.must(f.CountGuess(f.ctx, g))
		f.must(f.UndoGuess(f.ctx, g))
	}
	f.wantGuesses("after undone ones", g, 3)
	f.must(f.UndoGuess(f.ctx, g))
	f.wantGuesses("after one was undone", g, 1)
	f.must(f.UndoGuess(f.ctx, f.guess("nobody@example.org", 0)))
}

func concurrentGuessesAreLimited(t *testing.T, f *fixture) {
	g := f.guess("ada@example.org", 0)
	errs := make([]error, 16)
	var ended sync.WaitGroup
	for i := range errs {
		ended.Go(func() { errs[i] = f.CountGuess(f.ctx, g) })
	}
	ended.Wait()
	counted := 0
	for _, err := range errs {
		var limit *account.GuessLimitError
		switch {
		case err == nil:
			counted++
		case !errors.As(err, &limit):
			t.Error(err)
		}
	}
	if counted != 3 {
		t.Errorf("got %d attempts, want 3", counted)
	}
}

func ownerIsToldOnceADay(t *testing.T, f *fixture) {
	at := func(after time.Duration) account.Guess { return f.guess("ada@example.org", after) }
	f.wantError("tell without attempts", f.TellGuesses(f.ctx, at(0)), account.ErrNotFound)
	f.guesses(at(0))
	f.must(f.TellGuesses(f.ctx, at(0)))
	f.wantError("tell at once", f.TellGuesses(f.ctx, at(0)), account.ErrNotFound)
	day := account.GuessesTold
	f.guesses(at(day - time.Millisecond))
	f.wantError("tell too early", f.TellGuesses(f.ctx, at(day-time.Millisecond)),
		account.ErrNotFound)
	for after, told := range map[time.Duration]bool{day - time.Millisecond: true, day: false} {
		var limit *account.GuessLimitError
		if err := f.CountGuess(f.ctx, at(after)); !errors.As(err, &limit) || limit.Told != told {
			t.Errorf("after %v: got %v, want a limit with told %v", after, err, told)
		}
	}
	f.must(f.TellGuesses(f.ctx, at(day)))
}

func newPasswordForgetsGuesses(_ *testing.T, f *fixture) {
	u := f.fullUser()
	f.must(f.CreateUser(f.ctx, u))
	g, known, other := f.guess(u.Email, 0), f.guess(u.Email, 0), f.guess("bea@example.org", 0)
	known.Known = true
	for _, all := range []account.Guess{g, known, other} {
		f.wantGuesses("at first", all, 3)
	}
	f.must(f.ChangeCredentials(f.ctx, u, account.CredentialChange{EndTokens: true}))
	f.wantGuesses("unknown browsers", g, 3)
	f.wantGuesses("known browsers", known, 3)
	f.wantGuesses("another account", other, 0)
}

func sweepDeletesGuesses(_ *testing.T, f *fixture) {
	told := f.guess("bea@example.org", 0)
	f.must(f.CountGuess(f.ctx, f.guess("ada@example.org", 0)))
	f.must(f.CountGuess(f.ctx, told))
	f.must(f.TellGuesses(f.ctx, told))
	f.sweep(f.now.Add(10*time.Second-time.Millisecond), 0)
	f.sweep(f.now.Add(10*time.Second), 1)
	f.sweep(f.now.Add(account.GuessesTold-time.Millisecond), 0)
	f.sweep(f.now.Add(account.GuessesTold), 1)
}
