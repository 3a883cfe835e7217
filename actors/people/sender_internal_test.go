package people

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// sendFunc is a messenger.
type sendFunc func(context.Context, account.Message) error

// Send implements account.CodeSender.
func (send sendFunc) Send(ctx context.Context, m account.Message) error { return send(ctx, m) }

// senderFixture is a sender with its log and metrics.
type senderFixture struct {
	*sender
	t        *testing.T
	registry *prometheus.Registry
	log      *bytes.Buffer
}

func newSenderFixture(t *testing.T, send sendFunc) senderFixture {
	t.Helper()
	registry := prometheus.NewRegistry()
	metrics, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	return senderFixture{newSender(send, metrics, logger, noDrop), t, registry, log}
}

// noDrop does nothing after a message that was not sent.
func noDrop(context.Context, account.Message) error { return nil }

// wantCount checks the number of messages with a result, of all channels and kinds.
func (f senderFixture) wantCount(result string, want int) {
	f.t.Helper()
	if got := f.sum("gatehouse_messages_total", result); got != float64(want) {
		f.t.Errorf("got %v messages %s, want %d", got, result, want)
	}
}

// sum adds up the counters of a name. It counts only those whose last label, the result, is result;
// "" counts all.
func (f senderFixture) sum(name, result string) float64 {
	f.t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := metric.GetLabel()
			if family.GetName() == name &&
				(result == "" || labels[len(labels)-1].GetValue() == result) {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// enqueueAll enqueues n messages of a channel.
func (f senderFixture) enqueueAll(n int, channel account.Channel) {
	f.t.Helper()
	for range n {
		err := f.enqueue(account.Message{Channel: channel, To: "+12025550123",
			Kind: account.ChangeCode, Code: "271828"})
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

// stopWithin stops the sender with a timeout.
func (f senderFixture) stopWithin(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return f.stop(ctx)
}

// hang is a sendFunc that waits until its context ends.
func hang(ctx context.Context, _ account.Message) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestSenderSendsMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []account.Message
		f := newSenderFixture(t, func(_ context.Context, m account.Message) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m)
			return nil
		})
		want := account.Message{
			Channel: account.Email,
			To:      "ada@example.com",
			Kind:    account.RegisterCode,
			Code:    "271828",
		}
		if err := f.enqueue(want); err != nil {
			t.Fatal(err)
		}
		if err := f.stopWithin(time.Second); err != nil {
			t.Error(err)
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("got %v sent, want %v once", got, want)
		}
		f.wantCount(messageSent, 1)
	})
}

func TestEnqueueDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSenderFixture(t, hang)
		began := time.Now()
		f.enqueueAll(100, account.SMS)
		if took := time.Since(began); took != 0 {
			t.Errorf("got enqueued after %v, want no wait", took)
		}
		if err := f.stopWithin(0); err == nil {
			t.Error("got nil, want an error about messages that were not sent")
		}
	})
}

func TestSendTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSenderFixture(t, hang)
		f.enqueueAll(1, account.SMS)
		time.Sleep(30*time.Second - time.Nanosecond)
		f.wantCount(messageFailed, 0)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		f.wantCount(messageFailed, 1)
		if err := f.stopWithin(time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestFullQueueRefusesMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSenderFixture(t, hang)
		f.enqueueAll(4, account.SMS)
		synctest.Wait()
		f.enqueueAll(1000, account.SMS)
		err := f.enqueue(account.Message{Channel: account.SMS, Kind: account.PhoneCode})
		if !errors.Is(err, oauth.ErrBusy) {
			t.Errorf("got %v of message 1005, want ErrBusy", err)
		}
		f.wantCount(messageRefused, 1)
		err = f.enqueue(account.Message{Channel: account.Email, Kind: account.ResetCode})
		if err != nil {
			t.Errorf("got %v by the other channel, want nil", err)
		}
		if err := f.stopWithin(0); err == nil || !strings.Contains(err.Error(), "1000 of them") {
			t.Errorf("got %v, want 1000 messages left", err)
		}
		f.wantCount(messageFailed, 1005)
	})
}

func TestSlowChannelDoesNotDelayOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSenderFixture(t, func(ctx context.Context, m account.Message) error {
			if m.Channel == account.SMS {
				return hang(ctx, m)
			}
			return nil
		})
		f.enqueueAll(50, account.SMS)
		f.enqueueAll(50, account.Email)
		synctest.Wait()
		f.wantCount(messageSent, 50)
		if err := f.stopWithin(0); err == nil {
			t.Error("got nil, want an error about messages that were not sent")
		}
	})
}

func TestSenderConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		f := newSenderFixture(t, func(context.Context, account.Message) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			now--
			return nil
		})
		f.enqueueAll(40, account.Email)
		if err := f.stopWithin(11 * time.Second); err != nil {
			t.Error(err)
		}
		if most != 4 {
			t.Errorf("got %d at once, want 4", most)
		}
		f.wantCount(messageSent, 40)
	})
}

// TestStaleMessageIsDropped enqueues messages behind sends that take 30 s each.
func TestStaleMessageIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSenderFixture(t, hang)
		f.enqueueAll(44, account.SMS)
		time.Sleep(10*time.Minute + 1)
		synctest.Wait()
		f.wantCount(messageFailed, 40)
		f.wantCount(messageStale, 4)
		if err := f.stopWithin(time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestStopSendsQueuedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSenderFixture(t, func(ctx context.Context, _ account.Message) error {
			time.Sleep(time.Second)
			return ctx.Err()
		})
		f.enqueueAll(12, account.Email)
		if err := f.stopWithin(4 * time.Second); err != nil {
			t.Errorf("got %v, want all sent in 4 seconds", err)
		}
		f.wantCount(messageSent, 12)
		err := f.enqueue(account.Message{Channel: account.Email})
		if !errors.Is(err, mailbox.ErrStopped) {
			t.Errorf("got %v after the stop, want mailbox.ErrStopped", err)
		}
	})
}

func TestStopTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSenderFixture(t, hang)
		f.enqueueAll(12, account.Email)
		synctest.Wait()
		began := time.Now()
		err := f.stopWithin(3 * time.Second)
		if !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "8 of them") {
			t.Errorf("got %v, want 8 messages left", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("got %v to stop, want 3s", took)
		}
		f.wantCount(messageFailed, 12)
	})
}

func TestMessengerPanicFailsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSenderFixture(t, func(_ context.Context, m account.Message) error {
			if m.Kind == account.ChangeCode {
				panic(m.Code)
			}
			return nil
		})
		f.enqueueAll(8, account.SMS)
		err := f.enqueue(account.Message{Channel: account.SMS, Kind: account.PhoneCode})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.stopWithin(time.Second); err != nil {
			t.Error(err)
		}
		f.wantCount(messageFailed, 8)
		f.wantCount(messageSent, 1)
		if got := f.sum("gatehouse_messenger_panics_total", ""); got != 8 {
			t.Errorf("got %v panics counted, want 8", got)
		}
		if strings.Contains(f.log.String(), "271828") {
			t.Errorf("got log\n%s\nwant no code in it", f.log)
		}
	})
}

func TestFailureLogHidesCodeAndAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSenderFixture(t,
			func(context.Context, account.Message) error { return errors.New("status 500") })
		f.enqueueAll(1, account.SMS)
		if err := f.stopWithin(time.Second); err != nil {
			t.Error(err)
		}
		log := f.log.String()
		if !strings.Contains(log, "channel=sms kind=change_code error=\"status 500\"") {
			t.Errorf("got log\n%s\nwant channel, kind and error", log)
		}
		if strings.Contains(log, "271828") || strings.Contains(log, "2025550123") {
			t.Errorf("got log\n%s\nwant neither code nor number", log)
		}
	})
}

func TestEnqueueWithoutMessenger(t *testing.T) {
	metrics, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	f := newSender(nil, metrics, slog.New(slog.DiscardHandler), noDrop)
	if err := f.enqueue(account.Message{Channel: account.SMS}); !errors.Is(err, errNoMessenger) {
		t.Errorf("got %v, want errNoMessenger", err)
	}
	if err := f.stop(t.Context()); err != nil {
		t.Error(err)
	}
}
