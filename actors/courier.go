package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

const (
	courierQueue   = 1000                 // messages that wait, for each channel
	courierWorkers = 4                    // messages of a channel that are sent at once
	sendTime       = 30 * time.Second     // the longest time that one may take
	stale          = account.CodeLifetime // a message that has waited so long is not sent
)

// errNoMessenger says that nothing was configured that could bring a message to people.
var errNoMessenger = errors.New("no messenger")

// courier brings messages to people on goroutines of its own, because how long it takes to send one, and whether one is sent at
// all, would tell a stranger who has an account. Each channel has a queue, so that one that hangs does not hold up the
// other. What waits is lost when the process dies: people ask for another code. Its methods may be called by many
// goroutines.
type courier struct {
	sender  account.CodeSender
	metrics *identityMetrics
	logger  *slog.Logger
	lanes   map[account.Channel]chan parcel // empty without a sender
	ctx     context.Context                 // of everything that is being sent
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu     sync.RWMutex // held for reading while something is put in a queue
	closed bool
}

// parcel is a message in a queue.
type parcel struct {
	account.Message
	posted time.Time
}

// newCourier returns a courier that sends with sender; nil = every message is refused. stop ends it.
func newCourier(sender account.CodeSender, metrics *identityMetrics, logger *slog.Logger) *courier {
	c := &courier{sender: sender, metrics: metrics, logger: logger, lanes: map[account.Channel]chan parcel{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if sender == nil {
		return c
	}
	metrics.showMessages()
	for _, channel := range []account.Channel{account.SMS, account.Email} {
		lane := make(chan parcel, courierQueue)
		c.lanes[channel] = lane
		for range courierWorkers {
			c.workers.Go(func() { c.work(lane) })
		}
	}
	return c
}

// post queues m and does not wait. Its error is oauth.ErrBusy when the queue is full, errStopped or errNoMessenger.
func (c *courier) post(m account.Message) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	lane, ok := c.lanes[m.Channel]
	switch {
	case c.closed:
		return errStopped
	case !ok:
		return fmt.Errorf("send by %s: %w", m.Channel, errNoMessenger)
	}
	select {
	case lane <- parcel{m, time.Now()}:
		return nil
	default:
		c.metrics.delivered(m, refusedMessage)
		return fmt.Errorf("send by %s: %w", m.Channel, oauth.ErrBusy)
	}
}

// stop refuses new messages and sends those that wait until ctx ends; those left then are given up, and the error says how many. It must be
// called once.
func (c *courier) stop(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for _, lane := range c.lanes {
		close(lane)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.workers.Wait()
	}()
	defer c.cancel()
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
	}
	left := 0
	for _, lane := range c.lanes {
		left += len(lane)
	}
	c.cancel()
	<-sent
	return fmt.Errorf("stop sending messages with %d of them waiting: %w", left, ctx.Err())
}

func (c *courier) work(lane <-chan parcel) {
	for p := range lane {
		switch {
		case c.ctx.Err() != nil:
			c.metrics.delivered(p.Message, failedMessage)
		case time.Since(p.posted) >= stale:
			c.metrics.delivered(p.Message, staleMessage)
		default:
			c.send(p.Message)
		}
	}
}

// send sends m. A sender that panics fails with this one message.
func (c *courier) send(m account.Message) {
	ctx, cancel := context.WithTimeout(c.ctx, sendTime)
	defer cancel()
	defer func() {
		if reason := recover(); reason != nil {
			c.metrics.panics.Inc()
			c.metrics.delivered(m, failedMessage)
			c.logger.Error("messenger panicked", "stack", string(debug.Stack()))
		}
	}()
	if err := c.sender.Send(ctx, m); err != nil {
		c.metrics.delivered(m, failedMessage)
		c.logger.Warn("a message was not sent", "channel", string(m.Channel), "kind", string(m.Kind), "error", err)
		return
	}
	c.metrics.delivered(m, sentMessage)
}
