package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gatehouse/actors/oauth"
)

const (
	keyAge   = time.Second     // how old what is known of the keys may be, where other processes change them too
	keyDelay = 5 * time.Second // from the making of a key to its first use there: others know it by then, also if their clocks differ a little
)

// keyring holds the keys of access tokens as this process knows them. Its methods may be called by many goroutines.
type keyring struct {
	keys  atomic.Pointer[oauth.Keys]
	delay time.Duration // keyDelay or, where nobody else checks tokens, 0
}

// CheckAccessToken is that of oauth.Keys.
func (k *keyring) CheckAccessToken(token string) (expires time.Time, ok bool) {
	return k.keys.Load().CheckAccessToken(token)
}

// newAccessToken returns a token that ends at expires.
func (k *keyring) newAccessToken(expires, now time.Time) string {
	keys := *k.keys.Load()
	if keys.Previous != [32]byte{} && now.Before(keys.Made.Add(k.delay)) {
		keys.Current = keys.Previous
	}
	return keys.NewAccessToken(expires)
}

// adopt takes keys into use, and reports whether they are others than before.
func (s *Identity) adopt(keys oauth.Keys) bool {
	before := s.keys.keys.Swap(&keys)
	if before != nil && before.Current == keys.Current && before.Previous == keys.Previous {
		return false
	}
	s.people.known.use(keys)
	return true
}

// followKeys reads the keys again and again until ctx ends, since another process may rotate them.
func (s *Identity) followKeys(ctx context.Context) {
	tick := time.NewTicker(keyAge)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		keys, err := s.config.Tokens.AccessTokenKeys(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.config.Logger.Warn("the keys of access tokens cannot be read: a rotation would go unseen", "error", err)
		case err == nil && s.adopt(keys):
			s.logRotation(keys)
		}
		failing = err != nil
	}
}

func (s *Identity) logRotation(keys oauth.Keys) {
	s.config.Logger.Info("access tokens are signed with a new key", slog.Time("made", keys.Made))
}

// RotateKeys makes a new key for access tokens. Tokens signed with the key before stay good: another rotation, which would forget that key, is
// oauth.ErrKeysInUse until they have expired. It returns when the key was made, and from when on there can be another.
func (s *Identity) RotateKeys(ctx context.Context, now time.Time) (made, again time.Time, err error) {
	if !s.inflight.Enter() {
		return made, again, errStopped
	}
	defer s.inflight.Leave()
	rest := s.config.Lifetimes.AccessToken + keyDelay
	keys, err := s.config.Tokens.RotateKeys(ctx, now, now.Add(-rest))
	if errors.Is(err, oauth.ErrKeysInUse) {
		return made, s.keys.keys.Load().Made.Add(rest), err
	}
	if err != nil {
		return made, again, fmt.Errorf("rotate keys: %w", err)
	}
	if s.adopt(keys) {
		s.logRotation(keys)
	}
	return keys.Made, keys.Made.Add(rest), nil
}
