package actors

import (
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// recovered is the middleware that keeps an actor and its state alive over a panic: the message's asker is refused, the
// panic is logged with its stack, and the next message is served.
func (s *System) recovered(next actor.ReceiverFunc) actor.ReceiverFunc {
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
