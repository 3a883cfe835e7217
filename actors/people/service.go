// Package people is the service for people and their accounts: sign-in, registration, password
// reset, sessions, consents, and what operators do with users. All calls go through Service. The
// package has no actors: requests run on their own goroutines, and the database orders them.
//
// Who owns which state, and what a restart loses:
//
//   - The store owns users, sessions, consents and challenges, and counts the codes sent to each
//     recipient. A restart loses none of it.
//   - The store counts wrong passwords with the account. A restart loses none of them.
//   - Failed attempts and code requests of each caller, and the budgets of text messages, are
//     counted in memory. A restart forgets them.
//   - The store owns notices and their links. A restart loses none of them.
//   - The sender owns the queued codes. A restart loses them, and people request another one.
//
// credentials.go has the one way for all changes of how a person signs in.
package people

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// Config configures a Service. Messenger, Channels, Hasher, HashSlots, Trail, Issuer and those
// after Metrics are optional, all others required.
type Config struct {
	Store  account.Store
	Tokens Tokens
	Keys   func() []oauth.Key // keys for oauth.BrowserKeys, the current one first
	// FactorKeys are the keys for oauth.FactorKeys, the current one first.
	FactorKeys func() []oauth.Key
	Session    time.Duration // lifetime of a session after its last use
	// SessionMax is the lifetime of a session after its sign-in, however often it is used.
	SessionMax time.Duration
	Messenger  account.CodeSender // sends messages to people; nil = no messages
	Channels   account.Channels   // channels of Messenger
	Hasher     *account.Hasher    // of passwords and codes; nil = one at account.DefaultCost
	HashSlots  int                // hashes at once; 0 = one a core
	Trail      Trail              // gets the failed sign-ins; nil = no trail
	Issuer     string             // base URL for links in messages, without a slash at the end
	// PasskeyDomain is the relying party ID of passkeys, as of account.PasskeyDomain; "" = there are no
	// passkeys. It needs Issuer.
	PasskeyDomain string
	Name          string // of the service, in authenticator apps; "" = the host of Issuer
	Logger        *slog.Logger
	Metrics       prometheus.Registerer

	// RequireSecondFactor has everybody set up a second factor.
	RequireSecondFactor bool
	// PhoneReplacesPassword lets people choose that a code to their phone replaces the password.
	PhoneReplacesPassword bool
	// Accounts says who may make accounts; optional: "" = account.OpenAccounts.
	Accounts account.Accounts
	// SMSCountries are the countries (ISO 3166 codes) to which text messages are sent; nil = all.
	SMSCountries []string
	// SMSPerHour limits the text messages with codes an hour that callers may cause who are not
	// known to an account; SMSPerCountry limits those to one country. 0 = no limit.
	SMSPerHour, SMSPerCountry int
	// Providers keeps the providers with which people sign in, and ProviderClient asks them. Both or
	// none.
	Providers      oauth.ProviderStore
	ProviderClient oauth.ProviderClient
	// Nodes are the nodes of a cluster, which count the attempts of callers and text messages
	// together; nil = this one.
	Nodes ratelimit.Nodes
}

// Tokens is the part of the token service that Service needs.
type Tokens interface {
	// Client returns a client, disabled or not, or oauth.ErrNotFound. It must not be changed.
	Client(ctx context.Context, id string) (*oauth.Client, error)
	// RevokeAll revokes what op names. It is refused from the return on. Unless ctx has events for
	// the audit trail, RevokeAll adds one.
	RevokeAll(ctx context.Context, op *oauth.Revoke) error
	// UserChanged makes every request read the user again, with the epoch that ends access tokens.
	// Service calls it with the error of the store's write, and before it returns. It returns that
	// error, or why it is not known that every server applies the change.
	UserChanged(id int64, err error) error
	// FamiliesEnded makes every server refuse the access tokens of families that a write has ended.
	// Service calls it with the error of that write, and before it returns. It returns that error,
	// or why it is not known that every server applies the end.
	FamiliesEnded(err error) error
	// ClaimsChanged makes every server read again what attributes people may have. It is called as
	// FamiliesEnded is.
	ClaimsChanged(err error) error
}

// Trail is the part of audit.Store that Service needs, besides the events of its writes.
type Trail interface {
	// Record writes the events of ctx (see audit.With).
	Record(ctx context.Context) error
}

// Limits on wrong passwords and codes from one caller: a burst, then one for each interval.
const (
	wrongPasswords      = 20
	wrongPasswordsEvery = 6 * time.Second
)

// Limits on wrong passwords of one account from one caller: a burst, then one for each interval.
const (
	guesses      = 5
	guessesEvery = 10 * time.Second
	guessers     = 50_000 // pairs of account and caller that are remembered
)

// Limits on code requests from one caller, for any recipient: a burst, then one for each interval.
// Many people may share an address, so the limits of each recipient are narrower.
const (
	codeRequests      = 60
	codeRequestsEvery = 20 * time.Second
)

// limitedCallers is how many callers each limit remembers, for each width of their networks.
const limitedCallers = 10_000

// Service is the service for people. Its methods may be called by many goroutines.
type Service struct {
	config         Config
	origin         string // of the pages, for passkeys
	metrics        *metrics
	hasher         *hashScheduler
	guesses        ratelimit.Limiter[guesser]
	wrongPasswords ratelimit.Limiter[netip.Addr]
	codeRequests   ratelimit.Limiter[netip.Addr]
	attempts       ratelimit.Limiter[netip.Addr] // to sign in with a provider
	providersRead  atomic.Pointer[providerSet]   // those that were read last
	smsBudget      *smsBudget
	known          knownBrowsers
	sender         *sender
	inflight       mailbox.InFlight
}

// New starts a Service, which needs Stop.
func New(config Config) (*Service, error) {
	metrics, err := newMetrics(config.Metrics)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if config.Hasher == nil {
		config.Hasher = account.NewHasher(account.DefaultCost())
	}
	s := &Service{
		config:  config,
		origin:  originOf(config.Issuer),
		metrics: metrics,
		hasher:  newHashScheduler(config.Hasher, config.HashSlots),
		guesses: ratelimit.SharePacer(config.Nodes, "guesses",
			ratelimit.NewPacer[guesser](guesses, guessesEvery, guessers), guesser.encode, decodeGuesser),
		wrongPasswords: ratelimit.ShareThrottle(config.Nodes, "wrong_passwords",
			ratelimit.NewThrottle(wrongPasswords, wrongPasswordsEvery, limitedCallers)),
		codeRequests: ratelimit.ShareThrottle(config.Nodes, "code_requests",
			ratelimit.NewThrottle(codeRequests, codeRequestsEvery, limitedCallers)),
		attempts: ratelimit.ShareThrottle(config.Nodes, "provider_attempts",
			ratelimit.NewThrottle(attempts, attemptsEvery, limitedCallers)),
		smsBudget: newSMSBudget(&config, metrics),
		known:     knownBrowsers{keys: config.Keys},
	}
	if err := s.lookAtProviders(); err != nil {
		config.Logger.Warn("the providers cannot be read", "error", err)
	}
	s.hasher.spent = metrics.hashSeconds
	s.sender = newSender(config.Messenger, metrics, config.Logger, s.freeLongCode)
	return s, nil
}

// Stop refuses new requests, waits for those in flight and sends the queued messages, until ctx
// ends. Call it once, before the token service stops and the store is closed.
func (s *Service) Stop(ctx context.Context) error {
	return errors.Join(s.inflight.Close(ctx), s.sender.stop(ctx))
}

// CheckStore returns an error when the database cannot be read. It reads one row by its key.
func (s *Service) CheckStore(ctx context.Context) error {
	if _, err := s.config.Store.User(ctx, 0); err != nil && !errors.Is(err, account.ErrNotFound) {
		return fmt.Errorf("check database: %w", err)
	}
	return nil
}

// CheckWrites returns an error when the database cannot be written.
func (s *Service) CheckWrites(ctx context.Context) error {
	return s.config.Store.CheckWritable(ctx)
}
