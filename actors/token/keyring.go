package token

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

const (
	// keyAge is how old the keys in memory may be, where other processes rotate them too.
	keyAge = time.Second
	// keyDelay is the time from the making of a key to its first use there. By then the other
	// processes know it, also if their clocks differ a little.
	keyDelay = 5 * time.Second
)

// keyring holds the keys of access tokens. Its methods may be called by many goroutines.
type keyring struct {
	keys  atomic.Pointer[oauth.Keys]
	delay time.Duration // keyDelay, or 0 where no other process checks tokens
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

// use makes keys the current ones, and reports whether they differ from those before.
func (k *keyring) use(keys oauth.Keys) bool {
	before := k.keys.Swap(&keys)
	return before == nil || before.Current != keys.Current || before.Previous != keys.Previous
}

// Keys returns the keys that sign access tokens now.
func (s *Service) Keys() oauth.Keys { return *s.keys.keys.Load() }

// followKeys reads the keys again until the Service stops, since another process may rotate them.
func (s *Service) followKeys() {
	tick := time.NewTicker(keyAge)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-s.lifetime.Done():
			return
		case <-tick.C:
		}
		keys, err := s.config.Tokens.AccessTokenKeys(s.lifetime)
		switch {
		case s.lifetime.Err() != nil:
			return
		case err != nil && !failing:
			s.config.Logger.Warn("the keys of access tokens cannot be read, so a rotation by another "+
				"process would go unnoticed", "error", err)
		case err == nil && s.keys.use(keys):
			s.logRotation(keys)
		}
		failing = err != nil
	}
}

func (s *Service) logRotation(keys oauth.Keys) {
	s.config.Logger.Info("access tokens are signed with a new key", slog.Time("made", keys.Made))
}

// RotateKeys makes a new key for access tokens. Tokens signed with the key before stay valid. Another
// rotation would forget that key, so it is oauth.ErrKeysInUse until those tokens have expired.
// RotateKeys returns when the key was made, and when the next rotation is possible.
func (s *Service) RotateKeys(
	ctx context.Context, now time.Time,
) (made, again time.Time, err error) {
	if !s.inflight.Enter() {
		return made, again, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	rest := s.config.Lifetimes.AccessToken + keyDelay
	keys, err := s.config.Tokens.RotateKeys(ctx, now, now.Add(-rest))
	if errors.Is(err, oauth.ErrKeysInUse) {
		return made, s.Keys().Made.Add(rest), err
	}
	if err != nil {
		return made, again, fmt.Errorf("rotate keys: %w", err)
	}
	if s.keys.use(keys) {
		s.logRotation(keys)
	}
	return keys.Made, keys.Made.Add(rest), nil
}
