// Package people is the service for people and their accounts: sign-in, registration, recovery,
// sessions, consents, and what operators do to users. Service is the only way in. There is no actor
// in it: the database decides, and requests run on their own goroutines.
//
// Who owns what, and what a restart loses:
//
//   - The store owns users, sessions, consents and codes, with how many codes were sent to whom. A
//     restart loses nothing of it.
//   - The throttles of failed attempts, and of callers who request codes, are in memory. A restart
//     forgets the attempts.
//   - The sender owns the messages that wait to be sent. A restart loses them, and people request
//     another code.
package people

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// Config is what a Service is made of. All fields are required but Messenger and Channels.
type Config struct {
	Store     account.Store
	Tokens    Tokens
	Keys      func() oauth.Keys  // those of access tokens now; marks of known browsers derive from them
	Session   time.Duration      // how long a browser's sign-in lasts
	Messenger account.CodeSender // sends codes to people; nil = nobody can be reached
	Channels  account.Channels   // that Messenger has
	Hasher    *account.Hasher    // of passwords and codes; nil = one at account.DefaultCost
	Logger    *slog.Logger
	Metrics   prometheus.Registerer
}

// Tokens is what people's changes need of the token service.
type Tokens interface {
	// Client returns a client, disabled or not, or oauth.ErrNotFound. It must not be changed.
	Client(ctx context.Context, id string) (*oauth.Client, error)
	// RevokeAll ends what op names. It is refused from the return on.
	RevokeAll(ctx context.Context, op *oauth.Revoke) error
	// UserChanged makes every request read a user again, and ends access tokens. It is called when
	// the store has acknowledged the change, before anybody is told of it.
	UserChanged(id int64, ended []oauth.Hash)
}

// Wrong passwords that one address may send: a burst at once and then one for each interval.
const (
	wrongPasswords       = 20
	wrongPasswordsEvery  = 6 * time.Second
	wrongPasswordCallers = 10_000
	passwordsWaiting     = 64 // that may wait to be hashed
)

// Codes that one address may request, whoever they are for: a burst at once and then one for each
// interval. Many people may share the address, so the limits of each recipient are the narrow ones.
const (
	codeRequests       = 60
	codeRequestsEvery  = 20 * time.Second
	codeRequestCallers = 10_000
)

// Service is the running service for people. Its methods may be called by many goroutines.
type Service struct {
	config         Config
	metrics        *metrics
	hasher         *account.Hasher
	guard          *guard
	wrongPasswords *ratelimit.Throttle
	codeRequests   *ratelimit.Throttle
	known          knownBrowsers
	sender         *sender
	changing       chan struct{} // holds a token while a user is being changed
	inflight       mailbox.InFlight
}

// New starts a Service. Stop ends it. Passwords are hashed on at most half of the processors, if
// there are two.
func New(config Config) (*Service, error) {
	metrics, err := newMetrics(config.Metrics)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if config.Hasher == nil {
		config.Hasher = account.NewHasher(max(1, runtime.GOMAXPROCS(0)/2), passwordsWaiting,
			account.DefaultCost())
	}
	return &Service{
		config:         config,
		metrics:        metrics,
		hasher:         config.Hasher,
		guard:          newGuard(),
		wrongPasswords: ratelimit.NewThrottle(wrongPasswords, wrongPasswordsEvery, wrongPasswordCallers),
		codeRequests:   ratelimit.NewThrottle(codeRequests, codeRequestsEvery, codeRequestCallers),
		known:          knownBrowsers{keys: config.Keys},
		sender:         newSender(config.Messenger, metrics, config.Logger),
		changing:       make(chan struct{}, 1),
	}, nil
}

// Stop refuses new requests, lets those in flight end until ctx does, and sends the messages that
// wait. Call it once, before the token service stops and the store is closed.
func (s *Service) Stop(ctx context.Context) error {
	return errors.Join(s.inflight.Close(ctx), s.sender.stop(ctx))
}

// CheckStore returns why the database cannot be read, or nil. It reads one row by its key.
func (s *Service) CheckStore(ctx context.Context) error {
	if _, err := s.config.Store.User(ctx, 0); err != nil && !errors.Is(err, account.ErrNotFound) {
		return fmt.Errorf("check database: %w", err)
	}
	return nil
}

// beginUserChange waits until no other change of users is under way in this process, so that none
// that reads a record and writes it back undoes another.
func (s *Service) beginUserChange(ctx context.Context) (release func(), err error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	select {
	case s.changing <- struct{}{}:
		return func() { <-s.changing; s.inflight.Leave() }, nil
	case <-ctx.Done():
		s.inflight.Leave()
		return nil, fmt.Errorf("wait for another change: %w", ctx.Err())
	}
}
