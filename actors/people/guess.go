package people

import (
	"errors"
	"net/netip"
	"time"

	"gatehouse/actors/oauth"
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
