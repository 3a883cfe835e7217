package actors

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/oauth"
)

// loadsAtOnce bounds how many sessions are read from the stores at the same time.
const loadsAtOnce = 64

// limits are the access tokens in use: the directory of their actors and what these share.
type limits struct {
	identity  *Identity
	shared    bool
	started   time.Time
	directory *directory
	users     *userStates
	props     *actor.Props
	asks      sync.Pool     // of *admitAsk
	slots     chan struct{} // one for each load under way

	lifetime context.Context // of loads, which several requests may wait for
	end      context.CancelFunc
	stopped  atomic.Bool
	swept    chan struct{} // closed when the sweeper has ended
}

// newLimits starts the limits of s. stop ends them.
func newLimits(s *Identity) (*limits, error) {
	l := &limits{
		identity:  s,
		shared:    s.config.Shared,
		started:   time.Now(),
		directory: newDirectory(),
		users:     newUserStates(s.config.Accounts),
		slots:     make(chan struct{}, loadsAtOnce),
		swept:     make(chan struct{}),
	}
	l.lifetime, l.end = context.WithCancel(context.Background())
	l.asks.New = func() any { return newAdmitAsk() }
	policy := &callPolicy{
		full: func() { s.metrics.mailboxRejects.Add(1) },
		panicked: func() {
			s.metrics.panics.Inc()
			s.config.Logger.Error("actor panicked", "stack", string(debug.Stack()))
		},
	}
	l.props = actor.PropsFromProducer(func() actor.Actor { return &limitActor{limits: l} },
		actor.WithMailbox(func() actor.Mailbox { return &callMailbox{calls: policy} }))
	s.actors.EventStream.Subscribe(rejectDeadLetter)
	err := s.config.Metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_limit_actors",
		Help: "Access tokens in use, each with an actor in memory.",
	}, func() float64 { return float64(l.directory.size.Load()) }))
	if err != nil {
		l.end()
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	go l.sweep()
	return l, nil
}

// stop refuses new requests and ends the sweeper, before the actor system is shut down.
func (l *limits) stop(ctx context.Context) error {
	l.stopped.Store(true)
	l.end()
	select {
	case <-l.swept:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the sweeper: %w", ctx.Err())
	}
}

// clock returns how long after the start of the limits t is, which no setting of the clock moves.
func (l *limits) clock(t time.Time) time.Duration { return t.Sub(l.started) }

// rejectDeadLetter rejects a message that was sent to an actor after it left.
func rejectDeadLetter(event any) {
	if letter, ok := event.(*actor.DeadLetterEvent); ok {
		if r, ok := letter.Message.(rejecter); ok {
			r.reject()
		}
	}
}

// forget makes sure, after the store has ended these access tokens and before anybody is told so, that no actor honours them.
func (s *Identity) forget(hashes []oauth.Hash) {
	if len(hashes) == 0 {
		return
	}
	for _, a := range s.limits.directory.take(hashes) {
		s.root.Stop(a.mailbox.self())
	}
}

// ask asks an actor about a request.
func (l *limits) ask(a *limitActor, endpoint Endpoint, now time.Time) askReply {
	if reply, answered := a.answerNow(endpoint, now); answered {
		return reply
	}
	ask := l.asks.Get().(*admitAsk)
	ask.endpoint, ask.now = endpoint, now
	ask.state.Store(askOpen)
	a.mailbox.postAsk(ask)
	if !ask.wait() {
		return askReply{outcome: askFailed}
	}
	reply := ask.reply
	ask.reply = askReply{}
	l.asks.Put(ask)
	return reply
}
