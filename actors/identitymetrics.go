package actors

import (
	"errors"
	"runtime/debug"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// identityMetrics are the Identity's counters, as the admin listener shows them.
type identityMetrics struct {
	tokenRequests  *prometheus.CounterVec
	messages       *prometheus.CounterVec
	overloads      prometheus.Counter
	panics         prometheus.Counter
	mailboxRejects atomic.Uint64
}

func newIdentityMetrics(registry prometheus.Registerer) (*identityMetrics, error) {
	m := &identityMetrics{
		tokenRequests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_token_requests_total",
			Help: "Well-formed token requests by grant type and outcome: ok or the error code.",
		}, []string{"grant", "outcome"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_messages_total",
			Help: "Messages to people by channel, kind and result: sent, failed, refused for lack of room, or stale after a long wait.",
		}, []string{"channel", "kind", "result"}),
		overloads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_identity_overloads_total",
			Help: "Requests to the token, revocation and introspection endpoints that were refused for lack of room or time.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_identity_panics_total",
			Help: "Panics in the identity service's actors and messengers; each is logged with its stack.",
		}),
	}
	rejects := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "gatehouse_identity_mailbox_rejects_total",
		Help: "Messages refused because the mailbox of an identity actor was full.",
	}, func() float64 { return float64(m.mailboxRejects.Load()) })
	var err error
	for _, c := range []prometheus.Collector{m.tokenRequests, m.messages, m.overloads, m.panics, rejects} {
		err = errors.Join(err, registry.Register(c))
	}
	return m, err
}

// answered counts an answer to a token request; a nil fault is a success.
func (m *identityMetrics) answered(grant oauth.GrantTypes, fault *oauth.Error) {
	outcome := "ok"
	if fault != nil {
		outcome = string(fault.Code)
	}
	m.tokenRequests.WithLabelValues(grant.String(), outcome).Inc()
}

// What became of a message to a person.
const (
	sentMessage    = "sent"    // whoever delivers it has taken it over
	failedMessage  = "failed"  // or the process stopped first
	refusedMessage = "refused" // the queue was full
	staleMessage   = "stale"   // it waited until its code had ended
)

// messageKinds are what people are sent by each channel.
var messageKinds = map[account.Channel][]account.Kind{
	account.SMS:   {account.PhoneCode, account.ChangeCode, account.AccountExists, account.AddressLeft},
	account.Email: {account.RegisterCode, account.ResetCode, account.ChangeCode, account.AccountExists, account.NoAccount, account.AddressLeft},
}

// showMessages makes the counters of messages visible before the first, so that its rise is seen.
func (m *identityMetrics) showMessages() {
	for channel, kinds := range messageKinds {
		for _, kind := range kinds {
			for _, result := range []string{sentMessage, failedMessage, refusedMessage, staleMessage} {
				m.messages.WithLabelValues(string(channel), string(kind), result)
			}
		}
	}
}

// delivered counts a message by what became of it.
func (m *identityMetrics) delivered(message account.Message, result string) {
	m.messages.WithLabelValues(string(message.Channel), string(message.Kind), result).Inc()
}

// props describes an actor that keeps its state over a panic. Its mailbox holds limit messages.
func (s *Identity) props(a actor.Actor, limit int) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return a },
		actor.WithMailbox(bounded(limit, &s.metrics.mailboxRejects)),
		actor.WithReceiverMiddleware(s.recovered))
}

// recovered is the middleware that refuses the asker of a message that made an actor panic; the next is served.
func (s *Identity) recovered(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		defer func() {
			if reason := recover(); reason != nil {
				s.metrics.panics.Inc()
				s.config.Logger.Error("actor panicked", "stack", string(debug.Stack()))
				if r, ok := envelope.Message.(rejecter); ok {
					r.reject()
				}
			}
		}()
		next(ctx, envelope)
	}
}
