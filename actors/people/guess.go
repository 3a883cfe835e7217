package people

import (
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// guess is an attempt to enter the password of an account, or a code.
type guess struct {
	account oauth.Hash // of the e-mail address in lower case; for a code, of its recipient
	caller  netip.Addr // the zero Addr is not limited
	known   bool       // the browser has signed in to the account before
}

// limitGuess calls check, which checks a password or code. It returns a *ThrottledError instead
// after too many failed attempts at the account or by the caller. An attempt has failed when check
// returns ErrWrongCredentials or ErrWrongCode.
func (s *Service) limitGuess(g guess, now time.Time, check func() error) error {
	limited := g.caller.IsValid()
	if limited {
		if wait := s.wrongPasswords.Take(g.caller, now); wait > 0 {
			return &ThrottledError{RetryAfter: wait}
		}
	}
	if !g.known {
		if wait := s.guesses.take(g.account, g.caller, now); wait > 0 {
			if limited {
				s.wrongPasswords.Forgive(g.caller)
			}
			return &ThrottledError{RetryAfter: wait}
		}
	}
	err := check()
	if errors.Is(err, ErrWrongCredentials) || errors.Is(err, ErrWrongCode) {
		return err
	}
	if limited {
		s.wrongPasswords.Forgive(g.caller)
	}
	if err == nil {
		s.guesses.reset(g.account)
	} else if !g.known {
		s.guesses.forgive(g.account)
	}
	return err
}

const (
	freeGuesses      = 3                // failed attempts at an account before the first delay
	longestDelay     = 10 * time.Second // between two attempts at an account
	failuresKept     = 15 * time.Minute // after the last one, an account's failures are forgotten
	limitedAccounts  = 50_000           // accounts whose failures are remembered
	reservationLimit = 50_000           // reservations that are remembered
)

// guessLimiter delays attempts at each account, whether the account exists or not. A delayed caller
// gets a reservation that no other caller can use. So a caller with the right password waits for
// one delay at most, however many others guess. Its methods may be called by many goroutines.
type guessLimiter struct {
	mu           sync.Mutex
	accounts     *simplelru.LRU[oauth.Hash, failures]
	reservations *simplelru.LRU[reservation, time.Time] // when each may be used
}

// failures are the attempts at one account that have failed or not ended.
type failures struct {
	n    int
	last time.Time
}

// reservation is one caller's next attempt at one account.
type reservation struct {
	account oauth.Hash
	caller  netip.Prefix
}

func newGuessLimiter() *guessLimiter {
	return &guessLimiter{
		accounts:     newLRU[oauth.Hash, failures](limitedAccounts),
		reservations: newLRU[reservation, time.Time](reservationLimit),
	}
}

// take counts an attempt of caller at an account as failed and returns 0. If caller has to wait,
// take returns the delay, at most longestDelay, and counts nothing. Call it before the attempt, and
// reset or forgive after an attempt that did not fail.
func (g *guessLimiter) take(account oauth.Hash, caller netip.Addr, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	past, _ := g.accounts.Get(account)
	if now.Sub(past.last) > failuresKept {
		past = failures{}
	}
	own := reservation{account: account, caller: ratelimit.CallerPrefix(caller)}
	if due := past.last.Add(delayAfter(past.n)); now.Before(due) {
		at, reserved := g.reservations.Get(own)
		if !reserved {
			at = due
			g.reservations.Add(own, at)
		}
		if now.Before(at) {
			return at.Sub(now)
		}
	}
	g.reservations.Remove(own)
	g.accounts.Add(account, failures{n: past.n + 1, last: now})
	return 0
}

// reset forgets the failures at an account.
func (g *guessLimiter) reset(account oauth.Hash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accounts.Remove(account)
}

// forgive takes back an attempt that take has counted.
func (g *guessLimiter) forgive(account oauth.Hash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if past, ok := g.accounts.Peek(account); ok && past.n > 0 {
		past.n--
		g.accounts.Add(account, past)
	}
}

// delayAfter returns the delay after n failed attempts: 1, 2, 4, 8 seconds, then longestDelay.
func delayAfter(n int) time.Duration {
	if n < freeGuesses {
		return 0
	}
	return min(longestDelay, time.Second<<min(n-freeGuesses, 4))
}

// newLRU returns a map of size entries, at least 1. A full map drops the least recently used entry.
func newLRU[K comparable, V any](size int) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // size is below 1
	}
	return lru
}
