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

// guess is an attempt at the password of an account, or at a code.
type guess struct {
	account oauth.Hash // of the e-mail address in small letters; for a code, of its recipient
	caller  netip.Addr // the zero Addr = nobody to be limited
	known   bool       // the browser has signed in to the account before
}

// try checks a password or code unless too many were wrong before, for that account or from that caller: then it returns a
// *ThrottledError. What check returns counts as wrong if it is ErrWrongCredentials or ErrWrongCode.
func (s *Service) try(g guess, now time.Time, check func() error) error {
	limited := g.caller.IsValid()
	if limited {
		if wait := s.wrongPasswords.Take(g.caller, now); wait > 0 {
			return &ThrottledError{RetryAfter: wait}
		}
	}
	if !g.known {
		if wait := s.guard.begin(g.account, g.caller, now); wait > 0 {
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
		s.guard.succeed(g.account)
	} else if !g.known {
		s.guard.undo(g.account)
	}
	return err
}

const (
	freeGuesses   = 3                // failed attempts at an account before the first delay
	longestDelay  = 10 * time.Second // and all later ones
	guessesForget = 15 * time.Minute // when an account's failures no longer count
	guardAccounts = 50_000           // accounts that are remembered
	guardTurns    = 50_000           // callers that wait for their turn at an account
)

// guard delays guesses at the password of an account, whoever makes them and whether there is such an account. Each delayed
// caller gets a turn, which no other can take: so whoever knows the password gets in after one delay, however many guess.
// Its methods may be called by many goroutines.
type guard struct {
	mu       sync.Mutex
	accounts *simplelru.LRU[oauth.Hash, guesses]
	turns    *simplelru.LRU[turn, time.Time] // when each comes
}

// guesses are the attempts at one account that failed or have not ended.
type guesses struct {
	n    int
	last time.Time
}

// turn is that of one caller at one account.
type turn struct {
	account oauth.Hash
	caller  netip.Prefix
}

func newGuard() *guard {
	return &guard{accounts: newLRU[oauth.Hash, guesses](guardAccounts), turns: newLRU[turn, time.Time](guardTurns)}
}

// begin counts an attempt of caller at an account as failed, before its outcome is known, and returns 0; or it returns how long
// caller has to wait for its turn, at most longestDelay. succeed or undo ends an attempt that did not fail.
func (g *guard) begin(account oauth.Hash, caller netip.Addr, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	past, _ := g.accounts.Get(account)
	if now.Sub(past.last) > guessesForget {
		past = guesses{}
	}
	own := turn{account: account, caller: ratelimit.CallerPrefix(caller)}
	if due := past.last.Add(delayAfter(past.n)); now.Before(due) {
		at, waiting := g.turns.Get(own)
		if !waiting {
			at = due
			g.turns.Add(own, at)
		}
		if now.Before(at) {
			return at.Sub(now)
		}
	}
	g.turns.Remove(own)
	g.accounts.Add(account, guesses{n: past.n + 1, last: now})
	return 0
}

// succeed forgets the failures at an account.
func (g *guard) succeed(account oauth.Hash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accounts.Remove(account)
}

// undo takes an attempt back that came to no end.
func (g *guard) undo(account oauth.Hash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if past, ok := g.accounts.Peek(account); ok && past.n > 0 {
		past.n--
		g.accounts.Add(account, past)
	}
}

// delayAfter returns the delay after n failed attempts: 1, 2, 4, 8 seconds and then the longest.
func delayAfter(n int) time.Duration {
	if n < freeGuesses {
		return 0
	}
	return min(longestDelay, time.Second<<min(n-freeGuesses, 4))
}

// newLRU returns a map that forgets what was not used for longest when it has size entries, at least 1.
func newLRU[K comparable, V any](size int) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // the size is no number of entries
	}
	return lru
}
