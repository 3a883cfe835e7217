package mailbox

import (
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
)

// A system keeps its actors in 1,024 maps of the library, and each would have 32 parts. Making all
// those would be most of the start of a service.
func init() { cmap.SHARD_COUNT = 1 }

// NewSystem returns the actor system of a process. It logs nothing, since it would print messages,
// which hold secrets and queries. Shut it down once, after the services have stopped.
func NewSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

// Spawner starts the actors of one service. Its methods may be called by many goroutines.
type Spawner struct {
	root      *actor.RootContext
	props     *actor.Props
	full      func()
	panicked  func()
	envelopes sync.Pool // those not in use, so that a busy actor allocates nothing

	mu    sync.Mutex
	actor Actor // being spawned
}

// NewSpawner returns a Spawner. full is called for each ask that gets ErrFull, panicked for each
// panic of an actor, on the goroutine that panicked and before its stack is gone.
func NewSpawner(system *actor.ActorSystem, full, panicked func()) *Spawner {
	s := &Spawner{root: system.Root, full: full, panicked: panicked}
	s.envelopes.New = func() any { return &envelope{handled: make(chan error, 1)} }
	s.props = actor.PropsFromProducer(func() actor.Actor { return s.actor },
		actor.WithMailbox(func() actor.Mailbox {
			m := s.actor.Self()
			m.actor, m.spawner = s.actor, s
			return m
		}))
	return s
}

// Spawn starts a. a must not spawn another actor when it is started. The props are shared by all
// actors, because a set of them is larger than most actors are.
func (s *Spawner) Spawn(a Actor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actor = a
	s.root.Spawn(s.props)
}
