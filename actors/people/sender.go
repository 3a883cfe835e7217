package people

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

const (
	queueSize   = 1000                 // queued messages of each channel
	sendWorkers = 4                    // concurrent sends of each channel
	sendTimeout = 30 * time.Second     // of one message
	dropTimeout = 5 * time.Second      // of the note that a message was not sent
	staleTime   = account.CodeLifetime // a message queued for longer is dropped, but no long code
)

// errNoMessenger says that no messenger is configured for the channel.
var errNoMessenger = errors.New("no messenger")

// sender sends messages to people asynchronously, so that response time does not reveal whether an
// account exists. Each channel has its own queue, so that a slow channel does not delay the other.
// A crash loses the queued messages, and people request another code. Its methods may be called by
// many goroutines.
type sender struct {
	messenger account.CodeSender
	metrics   *metrics
	logger    *slog.Logger
	dropped   func(context.Context, account.Message) error // called after a message was not sent
	queues    map[account.Channel]chan queued              // empty without a messenger
	ctx       context.Context                              // of all sends; cancel ends it
	cancel    context.CancelFunc
	workers   sync.WaitGroup

	mu     sync.RWMutex // held for reading while a message is enqueued
	closed bool
}

// queued is a message in a queue.
type queued struct {
	account.Message
	since time.Time
}

// newSender returns a sender, which needs stop. Without a messenger (nil) it refuses every message.
// It calls dropped for each message that it has accepted and could not send.
func newSender(
	messenger account.CodeSender, metrics *metrics, logger *slog.Logger,
	dropped func(context.Context, account.Message) error,
) *sender {
	s := &sender{
		messenger: messenger, metrics: metrics, logger: logger, dropped: dropped,
		queues: map[account.Channel]chan queued{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if messenger == nil {
		return s
	}
	metrics.createMessages()
	for _, channel := range []account.Channel{account.SMS, account.Email} {
		queue := make(chan queued, queueSize)
		s.queues[channel] = queue
		for range sendWorkers {
			s.workers.Go(func() { s.work(queue) })
		}
	}
	return s
}

// enqueue adds m to the queue of its channel and does not block. The error is oauth.ErrBusy when
// the queue is full, mailbox.ErrStopped or errNoMessenger.
func (s *sender) enqueue(m account.Message) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	queue, ok := s.queues[m.Channel]
	switch {
	case s.closed:
		return mailbox.ErrStopped
	case !ok:
		return fmt.Errorf("send by %s: %w", m.Channel, errNoMessenger)
	}
	select {
	case queue <- queued{m, time.Now()}:
		return nil
	default:
		s.metrics.message(m, messageRefused)
		return fmt.Errorf("send by %s: %w", m.Channel, oauth.ErrBusy)
	}
}

// stop refuses new messages and sends the queued ones until ctx ends. It drops the rest, and the
// error says how many. Call it once.
func (s *sender) stop(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, queue := range s.queues {
		close(queue)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.workers.Wait()
	}()
	defer s.cancel()
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
	}
	left := 0
	for _, queue := range s.queues {
		left += len(queue)
	}
	s.cancel()
	<-sent
	return fmt.Errorf("stop sending messages with %d of them queued: %w", left, ctx.Err())
}

// work sends the messages of a queue until the queue is closed.
func (s *sender) work(queue <-chan queued) {
	for m := range queue {
		switch {
		case s.ctx.Err() != nil:
			s.metrics.message(m.Message, messageFailed)
			s.drop(m.Message)
		case time.Since(m.since) >= staleTime && m.Kind != account.LongCode:
			s.metrics.message(m.Message, messageStale)
		default:
			s.send(m.Message)
		}
	}
}

// send sends m. A panic of the messenger fails this message only.
func (s *sender) send(m account.Message) {
	ctx, cancel := context.WithTimeout(s.ctx, sendTimeout)
	defer cancel()
	defer func() {
		if recover() != nil {
			s.metrics.panics.Inc()
			s.metrics.message(m, messageFailed)
			s.logger.Error("messenger panicked", "stack", string(debug.Stack()))
			s.drop(m)
		}
	}()
	if err := s.messenger.Send(ctx, m); err != nil {
		s.metrics.message(m, messageFailed)
		s.logFailure(m, err)
		s.drop(m)
		return
	}
	s.metrics.message(m, messageSent)
}

// drop tells that m was not sent, also while the sender stops.
func (s *sender) drop(m account.Message) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), dropTimeout)
	defer cancel()
	if err := s.dropped(ctx, m); err != nil {
		s.logger.Warn("a message that was not sent still counts", "error", err)
	}
}

func (s *sender) logFailure(m account.Message, err error) {
	s.logger.Warn("a message was not sent",
		"channel", string(m.Channel), "kind", string(m.Kind), "error", err)
}
