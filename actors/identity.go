package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// IdentityConfig is what an Identity is made of. All fields are required but Shared, Messenger and Channels.
type IdentityConfig struct {
	Tokens    oauth.Store
	Accounts  account.Store
	Lifetimes oauth.Lifetimes
	Session   time.Duration      // how long a browser's sign-in lasts
	Shared    bool               // other processes write to the same stores: what is held in memory is read again after a second
	Messenger account.CodeSender // brings codes to people; nil = nobody can be reached
	Channels  account.Channels   // that Messenger has
	Hasher    *account.Hasher    // of passwords and codes; nil = one at account.DefaultCost
	Logger    *slog.Logger
	Metrics   prometheus.Registerer
}

// Identity is the running identity service behind the edge. Its methods may be called by many goroutines; those that take a
// context return when it ends, or when a write that has begun by then has ended.
//
// Who owns what, and what a restart loses:
//
//   - The stores own clients, codes, tokens, users, sessions and consents, and decide what two could ask for at once. What was
//     answered is durable: a restart loses nothing.
//   - A client's record is in memory from its first use on, in a clientState to which its actor and the sessions of its
//     tokens point. Operators' changes replace it; no actor writes it.
//   - A clientActor, one a client, hands the store the operations on its codes and tokens in the order of its messages. It holds no
//     state that could be lost.
//   - A limitActor, one an access token in use, owns its windows. A restart begins new ones.
//   - The throttles of failed attempts, and of callers who ask for codes, are in memory. A restart forgets the attempts. Codes and
//     how many were sent to whom are the store's.
//   - The courier owns the messages that wait to be sent. A restart loses them, and people ask for another code.
type Identity struct {
	config       IdentityConfig
	keys         keyring
	metrics      *identityMetrics
	actors       *actor.ActorSystem
	root         *actor.RootContext
	clients      *clients
	wrongSecrets *throttle
	limits       *limits
	people       *people
	courier      *courier
	inflight     inflight
	tasks        sync.WaitGroup     // what goes on after its caller has left, or without one
	end          context.CancelFunc // of tasks without a caller
}

// errStopped says that the Identity does no more.
var errStopped = errors.New("the identity service has stopped")

// NewIdentity starts an Identity. Stop ends it.
func NewIdentity(ctx context.Context, config IdentityConfig) (*Identity, error) {
	s := &Identity{
		config:       config,
		clients:      newClients(),
		wrongSecrets: newThrottle(wrongSecrets, wrongSecretsEvery, wrongSecretCallers),
	}
	keys, err := config.Tokens.AccessTokenKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the keys of access tokens: %w", err)
	}
	if s.metrics, err = newIdentityMetrics(config.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if s.people, err = newPeople(keys, config.Hasher, config.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.adopt(keys)
	s.actors = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler) // it prints messages, which hold secrets
	}))
	s.root = s.actors.Root
	if s.limits, err = newLimits(s); err != nil {
		s.actors.Shutdown()
		return nil, fmt.Errorf("start the limits: %w", err)
	}
	s.courier = newCourier(config.Messenger, s.metrics, config.Logger)
	lifetime, end := context.WithCancel(context.Background())
	s.end = end
	if config.Shared {
		s.keys.delay = keyDelay
		s.tasks.Go(func() { s.followKeys(lifetime) })
	}
	return s, nil
}

// Stop refuses new work, lets what is under way end until ctx does, and sends the messages that wait. It must be called once, before the
// stores are closed.
func (s *Identity) Stop(ctx context.Context) error {
	s.end()
	err := s.inflight.close(ctx)
	err = errors.Join(err, s.limits.stop(ctx))
	s.tasks.Wait() // nobody sends to an actor from here on, and none of them has a goroutine of its own
	s.actors.Shutdown()
	return errors.Join(err, s.courier.stop(ctx))
}
