// Package token is the token service: it authenticates clients, issues, admits, introspects and
// revokes their tokens, and keeps the register of clients. Service is the only way in.
//
// Who owns what, and what a restart loses:
//
//   - The stores own clients, codes, refresh tokens and what has ended. They decide whatever two
//     requests could ask for at once. What a response has acknowledged is durable: a restart loses
//     nothing of it.
//   - Access tokens are sealed and stored nowhere. What ends one before it expires is in memory,
//     read at the start: the token or its family in ends, and the epochs of its client and user.
//   - The records of clients and users in use are in memory, shared by all their tokens. A
//     change of one makes every request read it again.
//   - Processes that share a database follow each other's changes. One that cannot refuses tokens.
//   - A client actor, one for each client in use, hands the store the operations on the client's
//     codes and tokens in the order of its messages. It owns the window of the client's quota, and
//     counts the tokens that were issued. A restart begins a new window and counts from 0.
//   - A token actor, one for each access token in use, owns its rate limits. A restart begins new
//     windows.
//   - The throttle of wrong client secrets is in memory. A restart forgets the failed attempts.
//   - The keys of clients, and the limit of their assertions, are in memory. The store knows which
//     assertions were used, but for those of clients that await a consent.
//   - The limits of device codes, of their polls, and of guesses of user codes are
//     in memory. A restart forgets them.
package token

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"gatehouse/actors/account"
	"gatehouse/actors/fair"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// DefaultMaxActive is how many access tokens may be in use by default.
const DefaultMaxActive = 2_000_000

// Config is what a Service is made of. Fields are required unless they say otherwise.
type Config struct {
	Tokens    oauth.Store
	Accounts  account.Store
	Lifetimes oauth.Lifetimes
	// Issuer is the URL that clients know the service by, as id_tokens name it.
	Issuer string
	// Terms and Privacy are URLs of pages for people; optional.
	Terms, Privacy string
	Languages      []string // of pages (BCP 47); optional
	// ClientMetadata accepts a client_id that is the URL of a metadata document; optional.
	ClientMetadata bool
	// IDJAG issues ID-JAGs, and tokens for them; optional. ProviderKeys are required then.
	IDJAG        bool
	ProviderKeys ProviderKeys
	// RedirectSchemes are private-use schemes without a dot that clients which register or describe
	// themselves may have, beside those that every service allows; optional.
	RedirectSchemes []string
	// Registration says who may register clients (RFC 7591); optional. RegistrationToken is the
	// initial access token, required with oauth.RegistrationToken.
	Registration      oauth.RegistrationMode
	RegistrationToken string
	// RegistrationPerHour is how many clients that registered themselves within an hour from one
	// address may await a consent with oauth.RegistrationOpen; optional: 0 =
	// DefaultRegistrationPerHour.
	RegistrationPerHour int
	// Fetcher fetches metadata documents, and the keys of clients with a jwks_uri. It is required
	// with ClientMetadata; nil = clients with a jwks_uri cannot authenticate.
	Fetcher Fetcher
	// CheckURL returns an error for people to read if the Fetcher is known to reach no address of a
	// URL's host. With lookup it resolves a name. Optional.
	CheckURL func(ctx context.Context, url string, lookup bool) error
	// OtherWriters says that other processes write to the same stores; optional.
	OtherWriters bool
	// Stale is how long tokens are admitted after changes by other processes could not be read for
	// 2 seconds; optional.
	Stale time.Duration
	// Peers are the other nodes of a cluster; optional. Then OtherWriters must be set.
	Peers Peers
	// MaxActive is how many access tokens may be in use, each with an actor in memory. One client
	// may have an eighth of them, and one user a 64th, but 100 at least. Optional: 0 =
	// DefaultMaxActive.
	MaxActive int
	// SigningKeyAge is how long a signing key is in use before its successor; optional: 0 =
	// DefaultSigningKeyAge. At least two days.
	SigningKeyAge time.Duration
	// HintLifetime is how long former signing keys verify JWTs that come back as hints; optional.
	HintLifetime time.Duration
	// Nodes are the nodes of a cluster, which count wrong client secrets together; nil = this one.
	Nodes   ratelimit.Nodes
	Actors  *actor.ActorSystem // outlives the Service
	Logger  *slog.Logger
	Trail   Recorder // gets failed requests of clients; optional
	Metrics prometheus.Registerer
}

// Wrong client secrets that one address may send: a burst at once and then one a second. Right ones
// are never delayed.
const (
	wrongSecrets       = 20
	wrongSecretsEvery  = time.Second
	wrongSecretCallers = 10_000
)

// Service is the running token service. Its methods may be called by many goroutines. Those that
// take a context return when it ends, or when a write that has begun by then has ended.
type Service struct {
	config       Config
	started      time.Time
	metrics      *metrics
	keys         keyring
	signer       *signer
	spawner      *mailbox.Spawner
	clients      records[string, oauth.Client]
	users        records[int64, user]
	clientActors clientActors
	changing     chan struct{} // holds a token while the record of a client is being changed
	wrongSecrets ratelimit.Limiter[netip.Addr]
	devices      deviceLimits
	prover       *prover

	logos     *lru.Cache[string, *oauth.Logo] // by what identifies them
	exchanges *lru.Cache[exchanged, struct{}]
	resources resourceCache
	claims    atomic.Pointer[[]oauth.Claim] // that operators have declared
	fetches   ratelimit.Limiter[int64]      // of metadata documents, by user

	failures failures

	directory *directory
	ended     endedTokens
	asks      sync.Pool // of *admission
	issuances sync.Pool // of *issuance

	followed struct {
		mu     sync.Mutex   // held while changes are read and applied
		number int64        // of the last change that is known
		at     atomic.Int64 // when it was the last one, by clock
	}

	inflight mailbox.InFlight
	opening  atomic.Int64       // tokens that are being opened for other nodes
	closing  singleflight.Group // windows whose allowances are being closed
	stopped  atomic.Bool        // no request is admitted
	tasks    sync.WaitGroup     // what goes on without a caller
	lifetime context.Context    // of tasks, and of reads for requests
	end      context.CancelFunc // ends lifetime
}

// New starts a Service. Stop ends it.
func New(ctx context.Context, config Config) (*Service, error) {
	s := &Service{
		config:   config,
		started:  time.Now(),
		changing: make(chan struct{}, 1),
		wrongSecrets: ratelimit.ShareThrottle(config.Nodes, "wrong_secrets",
			ratelimit.NewThrottle(wrongSecrets, wrongSecretsEvery, wrongSecretCallers)),
		devices:   newDeviceLimits(config.Nodes),
		prover:    newProver(config.Nodes),
		signer:    newSigner(),
		ended:     endedTokens{clients: fair.Slots[string]{Share: endLimit}},
		directory: newDirectory(cmp.Or(config.MaxActive, DefaultMaxActive)),
	}
	s.config.SigningKeyAge = cmp.Or(config.SigningKeyAge, DefaultSigningKeyAge)
	s.fetches = newFetchLimit(config.Nodes)
	s.config.RegistrationPerHour = cmp.Or(config.RegistrationPerHour, DefaultRegistrationPerHour)
	s.clients.read = s.readClient
	s.users.read = s.readUser
	s.asks.New = s.newAdmission
	s.issuances.New = func() any { return &issuance{} }
	err := s.readAll(ctx)
	if err != nil {
		return nil, err
	}
	if s.logos, err = lru.New[string, *oauth.Logo](keptLogos); err != nil {
		return nil, err
	}
	if s.exchanges, err = lru.New[exchanged, struct{}](keptExchanges); err != nil {
		return nil, err
	}
	s.needKeys(ctx)
	if s.metrics, err = newMetrics(s, config.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.spawner = mailbox.NewSpawner(config.Actors,
		func() { s.metrics.mailboxRejects.Inc() },
		func() {
			s.metrics.panics.Inc()
			config.Logger.Error("actor panicked", "stack", string(debug.Stack()))
		})
	s.lifetime, s.end = context.WithCancel(context.Background())
	s.tasks.Go(s.sweep)
	s.tasks.Go(s.watchSigningKeys)
	s.tasks.Go(s.endClients)
	if config.Trail != nil {
		s.tasks.Go(s.recordFailures)
	}
	if config.Peers != nil {
		view := config.Peers.View() // what changes from now on is noticed
		s.tasks.Go(func() { s.reportToHolders(view) })
	}
	if config.OtherWriters {
		s.keys.delay = keyDelay
		s.tasks.Go(s.follow)
	}
	return s, nil
}

// Stop refuses new requests and lets those in flight end until ctx does. Call it once, before the
// stores are closed and the actor system is shut down.
func (s *Service) Stop(ctx context.Context) error {
	s.stopped.Store(true)
	err := s.inflight.Close(ctx)
	s.end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.tasks.Wait()
	}()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("wait for background tasks: %w", ctx.Err()))
	}
}

// clock returns the time from the start of the Service to t, which no change of the system clock
// moves.
func (s *Service) clock(t time.Time) time.Duration { return t.Sub(s.started) }
