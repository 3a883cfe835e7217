package token

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

const (
	// keyDelay is the time from the making of a key to its first use where other processes need it
	// too. By then they know it, also if their clocks differ a little.
	keyDelay = 5 * time.Second
	// keyReads is the least time between two reads of the keys for a token whose key is unknown.
	keyReads = time.Second
)

// keyring holds the keys of all purposes. Its methods may be called by many goroutines.
type keyring struct {
	delay   time.Duration // keyDelay, or 0 where no other process checks tokens
	current atomic.Pointer[keySet]
	reading sync.Mutex // held while the keys are read, so that older ones never replace newer ones
	read    time.Time  // when they were last read for a token whose key is unknown
}

// keySet is what the store said. It is never changed.
type keySet struct {
	keys  map[oauth.Purpose][]oauth.Key
	seals []*oauth.TokenKey // of oauth.TokenKeys, in the same order
	// signing has the keys of oauth.SigningPurposes, in the same order.
	signing map[oauth.Purpose][]*signingKey
}

// seal returns an access token that says t, or what it carries if it is to be a JWT.
func (k *keyring) seal(t *oauth.AccessToken, isJWT bool, now time.Time) string {
	set := k.current.Load()
	seal := set.seals[0]
	if len(set.seals) > 1 && now.Before(set.keys[oauth.TokenKeys][0].Made.Add(k.delay)) {
		seal = set.seals[1]
	}
	if isJWT {
		return seal.SealForJWT(t)
	}
	return seal.Seal(t)
}

// find returns the key with that number; nil when there is none.
func (k *keyring) find(number uint16) *oauth.TokenKey {
	for _, key := range k.current.Load().seals {
		if key.Number == number {
			return key
		}
	}
	return nil
}

// Keys returns the keys of a purpose, the current one first. They must not be changed.
func (s *Service) Keys(purpose oauth.Purpose) []oauth.Key {
	return s.keys.current.Load().keys[purpose]
}

// ListKeys describes all stored keys in the order of oauth.Purposes, the current one of each first.
func (s *Service) ListKeys(ctx context.Context) ([]oauth.KeyInfo, error) {
	return s.config.Tokens.ListKeys(ctx)
}

// readKeys reads all keys.
func (s *Service) readKeys(ctx context.Context) error {
	s.keys.reading.Lock()
	defer s.keys.reading.Unlock()
	return s.replaceKeys(ctx)
}

// replaceKeys is readKeys for a caller that holds s.keys.reading.
func (s *Service) replaceKeys(ctx context.Context) error {
	all, err := s.config.Tokens.Keys(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	set := &keySet{keys: map[oauth.Purpose][]oauth.Key{}}
	for _, key := range all {
		set.keys[key.Purpose] = append(set.keys[key.Purpose], key)
	}
	for _, purpose := range oauth.Purposes {
		if len(set.keys[purpose]) == 0 {
			return fmt.Errorf("read keys: the store has none for %s", purpose)
		}
	}
	for i := range set.keys[oauth.TokenKeys] {
		set.seals = append(set.seals, oauth.NewTokenKey(&set.keys[oauth.TokenKeys][i]))
	}
	before := s.keys.current.Load()
	if set.signing, err = signingKeys(all, before); err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	s.keys.current.Store(set)
	s.ended.version.Add(1) // a key may be gone
	if before == nil {
		return nil
	}
	for _, purpose := range oauth.Purposes {
		if made := newest(set.keys[purpose]); made.Number > newest(before.keys[purpose]).Number {
			s.config.Logger.Info("there is a new key", slog.String("purpose", string(purpose)),
				slog.Time("made", made.Made), slog.Time("in_use", cmp.Or(made.Starts, made.Made)))
		}
	}
	return nil
}

// newest returns the first of keys, or the zero Key.
func newest(keys []oauth.Key) (k oauth.Key) {
	if len(keys) > 0 {
		k = keys[0]
	}
	return k
}

// openToken opens an access token, expired or not. ok is false if the token was not sealed with one
// of the keys.
func (s *Service) openToken(token string, number uint16) (t oauth.AccessToken, ok bool) {
	if !oauth.IsJWT(token) {
		return s.openSealed(token, number)
	}
	sealed, id, ok := s.openJWT(token)
	if !ok {
		return t, false
	}
	t, ok = s.openSealed(sealed, number)
	return t, ok && t.ID.String() == id
}

// openSealed is openToken for a token that is no JWT.
func (s *Service) openSealed(token string, number uint16) (t oauth.AccessToken, ok bool) {
	key := s.keys.find(number)
	if key == nil && s.config.OtherWriters {
		key = s.findKeyAgain(number)
	}
	if key == nil {
		return t, false
	}
	return key.Open(token)
}

// findKeyAgain returns a key that another process may just have made. It reads the keys unless that
// was done less than keyReads ago.
func (s *Service) findKeyAgain(number uint16) *oauth.TokenKey {
	s.keys.reading.Lock()
	defer s.keys.reading.Unlock()
	key := s.keys.find(number)
	if key != nil || time.Since(s.keys.read) < keyReads || !s.inflight.Enter() {
		return key
	}
	defer s.inflight.Leave()
	ctx, cancel := context.WithTimeout(s.lifetime, loadTimeout)
	defer cancel()
	err := s.replaceKeys(ctx)
	s.keys.read = time.Now()
	if err != nil {
		s.config.Logger.Warn("an access token could not be checked", "error", err)
	}
	return s.keys.find(number)
}

// RotateKeys makes a new key of a purpose. What was made with the key before stays valid until it
// expires. Unless atOnce is set, the error is oauth.ErrKeysInUse while a former key is needed.
// atOnce ends all former keys with what they made. RotateKeys returns when the next rotation is
// possible.
//
// A new signing key is used a day later, and former ones do not refuse the next rotation. With
// atOnce it is used as soon as all processes know it, and former ones verify as otherwise.
//
// No rotation ends former keys that are kept (oauth.Purpose.IsKept): seal again what they seal.
func (s *Service) RotateKeys(
	ctx context.Context, purpose oauth.Purpose, atOnce bool, now time.Time,
) (again time.Time, err error) {
	if !s.inflight.Enter() {
		return again, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	rotation := oauth.KeyRotation{
		Purpose: purpose, Now: now, Drop: atOnce && !purpose.IsKept(), Needed: s.needOf(purpose),
		Expires: now.Add(s.needOf(purpose)),
	}
	again = now
	if purpose.IsSigning() {
		if rotation, err = s.signingRotation(purpose, atOnce, now); err != nil {
			return again, err
		}
	}
	var details []string
	if atOnce {
		details = []string{"now"}
	}
	err = s.config.Tokens.RotateKeys(keysRotated(ctx, purpose, details...), rotation)
	// Read them also after an error, which may hide that they were rotated, and when ctx has ended.
	reading, cancel := context.WithTimeout(s.lifetime, loadTimeout)
	defer cancel()
	failed := s.readKeys(reading)
	switch {
	case errors.Is(err, oauth.ErrKeysInUse):
		return s.nextRotation(purpose), err
	case err != nil:
		return again, fmt.Errorf("rotate keys: %w", err)
	case failed != nil:
		return again, failed
	}
	if err := s.confirm(); err != nil {
		return again, err
	}
	switch {
	case purpose.IsKept():
	case !rotation.Drop:
		again = s.nextRotation(purpose)
	default:
		s.config.Logger.Warn("all former keys were dropped", slog.String("purpose", string(purpose)))
	}
	return again, nil
}

// nextRotation returns when a rotation is no longer refused.
func (s *Service) nextRotation(purpose oauth.Purpose) (again time.Time) {
	switch known := s.Keys(purpose); {
	case purpose.IsSigning():
		again = newest(known).Starts
	case len(known) > 1:
		again = known[1].Expires
	}
	return again
}

// keysRotated returns a context whose next write records a new key.
func keysRotated(ctx context.Context, purpose oauth.Purpose, details ...string) context.Context {
	return audit.With(ctx, audit.Event{Action: audit.KeysRotated, Target: string(purpose),
		Details: details})
}

// needKeys has the keys kept for as long as what this process makes with them is valid, also when
// another process with shorter lifetimes replaces them.
func (s *Service) needKeys(ctx context.Context) {
	needed := map[oauth.Purpose]time.Duration{}
	for _, purpose := range oauth.Purposes {
		if keys := s.Keys(purpose); len(keys) > 0 && keys[0].Needed < s.needOf(purpose) {
			needed[purpose] = s.needOf(purpose)
		}
	}
	if len(needed) == 0 {
		return
	}
	err := s.config.Tokens.NeedKeys(ctx, needed)
	if err == nil {
		err = s.readKeys(ctx)
	}
	if err != nil {
		s.config.Logger.Warn("the lifetimes of what is made with the keys could not be noted: "+
			"rotate no key after they are shortened", "error", err)
	}
}

// accessLifetime returns the longest lifetime of an access token that may be valid.
func (s *Service) accessLifetime() time.Duration {
	longest := s.config.Lifetimes.AccessToken
	for _, key := range s.Keys(oauth.TokenKeys) {
		longest = max(longest, key.Needed-keyDelay)
	}
	return longest
}

// needOf returns how long a key is needed after its successor is in use.
func (s *Service) needOf(purpose oauth.Purpose) time.Duration {
	return s.lifetimeOf(purpose) + keyDelay
}

// lifetimeOf returns how long what is made with a key is valid.
func (s *Service) lifetimeOf(purpose oauth.Purpose) time.Duration {
	switch purpose {
	case oauth.FormKeys:
		return oauth.FormLifetime
	case oauth.BrowserKeys:
		return oauth.BrowserLifetime
	case oauth.ClusterKeys:
		return oauth.ClusterLifetime
	case oauth.RS256Keys, oauth.ES256Keys:
		return max(s.config.Lifetimes.AccessToken, s.config.HintLifetime)
	}
	return s.config.Lifetimes.AccessToken
}
