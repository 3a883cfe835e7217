package actors

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// Wrong passwords that one address may send: a burst at once and then one for each interval.
const (
	wrongPasswords       = 20
	wrongPasswordsEvery  = 6 * time.Second
	wrongPasswordCallers = 10_000
	passwordsWaiting     = 64 // that may wait to be hashed
)

// Codes that one address may ask for, whoever they are for: a burst at once and then one for each interval. Many people may share the
// address, so the limits of each recipient are the narrow ones.
const (
	codesAsked       = 60
	codesAskedEvery  = 20 * time.Second
	codesAskedCaller = 10_000
)

// people is what sign-ins and changes of users share.
type people struct {
	hasher  *account.Hasher
	guard   *guard
	callers *throttle
	asking  *throttle // who asks for codes
	known   knownBrowsers
	change  chan struct{} // holds a token while a user is being changed
	metrics *peopleMetrics
}

// newPeople makes a hasher unless there is one. It leaves at least half of the processors to everything but passwords, if
// there are two.
func newPeople(keys oauth.Keys, hasher *account.Hasher, registry prometheus.Registerer) (*people, error) {
	if hasher == nil {
		hasher = account.NewHasher(max(1, runtime.GOMAXPROCS(0)/2), passwordsWaiting, account.DefaultCost())
	}
	metrics, err := newPeopleMetrics(registry)
	return &people{
		hasher:  hasher,
		guard:   newGuard(),
		callers: newThrottle(wrongPasswords, wrongPasswordsEvery, wrongPasswordCallers),
		asking:  newThrottle(codesAsked, codesAskedEvery, codesAskedCaller),
		known:   newKnownBrowsers(keys),
		change:  make(chan struct{}, 1),
		metrics: metrics,
	}, err
}

// beginUserChange waits until no other change of users is under way in this process, so that none that reads a record and writes it
// back undoes another.
func (s *Identity) beginUserChange(ctx context.Context) (release func(), err error) {
	if !s.inflight.enter() {
		return nil, errStopped
	}
	select {
	case s.people.change <- struct{}{}:
		return func() { <-s.people.change; s.inflight.leave() }, nil
	case <-ctx.Done():
		s.inflight.leave()
		return nil, fmt.Errorf("wait for another change: %w", ctx.Err())
	}
}
