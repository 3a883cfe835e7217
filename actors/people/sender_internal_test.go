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

func (f sendFunc) Send(ctx context.Context, m account.Message) error { return f(ctx, m) }

// senderFixture is a sender with its log and metrics.
type senderFixture struct {
	*sender
	t        *testing.T
	registry *prometheus.Registry
	text     *bytes.Buffer // the log
}

func newSenderFixture(t *testing.T, send sendFunc) senderFixture {
	t.Helper()
	registry := prometheus.NewRegistry()
	metrics, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	text := &bytes.Buffer{}
	return senderFixture{newSender(send, metrics, slog.New(slog.NewTextHandler(text, nil))), t, registry, text}
}

// counted checks how many messages had that result, of all channels and kinds.
func (c senderFixture) counted(result string, want int) {
	c.t.Helper()
	if got := c.sum("gatehouse_messages_total", result); got != float64(want) {
		c.t.Errorf("got %v messages %s, want %d", got, result, want)
	}
}

// sum adds up the counters by that name; those of messages only where the last label, which is the result, is that.
func (c senderFixture) sum(name, result string) float64 {
	c.t.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := metric.GetLabel()
			if family.GetName() == name && (result == "" || labels[len(labels)-1].GetValue() == result) {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// enqueueAll puts n messages in the queue of a channel.
func (c senderFixture) enqueueAll(n int, channel account.Channel) {
	c.t.Helper()
	for range n {
		if err := c.enqueue(account.Message{Channel: channel, To: "+12025550123", Kind: account.ChangeCode, Code: "271828"}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// stopped stops the sender, which has that long.
func (c senderFixture) stopped(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.stop(ctx)
}

// hang is a sender that waits for the end of its time.
func hang(ctx context.Context, _ account.Message) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestSenderSendsWhatIsPosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []account.Message
		c := newSenderFixture(t, func(_ context.Context, m account.Message) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m)
			return nil
		})
		want := account.Message{Channel: account.Email, To: "ada@example.com", Kind: account.RegisterCode, Code: "271828"}
		if err := c.enqueue(want); err != nil {
			t.Fatal(err)
		}
		if err := c.stopped(time.Second); err != nil {
			t.Error(err)
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("got %v sent, want %v once", got, want)
		}
		c.counted(messageSent, 1)
	})
}

func TestPostDoesNotWaitForTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSenderFixture(t, hang)
		began := time.Now()
		c.enqueueAll(100, account.SMS)
		if took := time.Since(began); took != 0 {
			t.Errorf("got %v to post, want no wait", took)
		}
		if err := c.stopped(0); err == nil {
			t.Error("got nil, want an error about messages that were not sent")
		}
	})
}

func TestSendHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSenderFixture(t, hang)
		c.enqueueAll(1, account.SMS)
		time.Sleep(30*time.Second - time.Nanosecond)
		c.counted(messageFailed, 0)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		c.counted(messageFailed, 1)
		if err := c.stopped(time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestFullQueueIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSenderFixture(t, hang)
		c.enqueueAll(4, account.SMS)
		synctest.Wait()
		c.enqueueAll(1000, account.SMS)
		err := c.enqueue(account.Message{Channel: account.SMS, Kind: account.PhoneCode})
		if !errors.Is(err, oauth.ErrBusy) {
			t.Errorf("got %v of message 1005, want ErrBusy", err)
		}
		c.counted(messageRefused, 1)
		if err := c.enqueue(account.Message{Channel: account.Email, Kind: account.ResetCode}); err != nil {
			t.Errorf("got %v by the other channel, want nil", err)
		}
		if err := c.stopped(0); err == nil || !strings.Contains(err.Error(), "1000 of them") {
			t.Errorf("got %v, want 1000 messages left", err)
		}
		c.counted(messageFailed, 1005)
	})
}

func TestChannelsDoNotHoldUpEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSenderFixture(t, func(ctx context.Context, m account.Message) error {
			if m.Channel == account.SMS {
				return hang(ctx, m)
			}
			return nil
		})
		c.enqueueAll(50, account.SMS)
		c.enqueueAll(50, account.Email)
		synctest.Wait()
		c.counted(messageSent, 50)
		if err := c.stopped(0); err == nil {
			t.Error("got nil, want an error about messages that were not sent")
		}
	})
}

func TestFourAreSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		c := newSenderFixture(t, func(context.Context, account.Message) error {
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
		c.enqueueAll(40, account.Email)
		if err := c.stopped(11 * time.Second); err != nil {
			t.Error(err)
		}
		if most != 4 {
			t.Errorf("got %d at once, want 4", most)
		}
		c.counted(messageSent, 40)
	})
}

// TestStaleMessageIsNotSent has the queue stand still behind senders that take 30 seconds each.
func TestStaleMessageIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSenderFixture(t, hang)
		c.enqueueAll(44, account.SMS)
		time.Sleep(10*time.Minute + 1)
		synctest.Wait()
		c.counted(messageFailed, 40)
		c.counted(messageStale, 4)
		if err := c.stopped(time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestStopSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSenderFixture(t, func(ctx context.Context, _ account.Message) error {
			time.Sleep(time.Second)
			return ctx.Err()
		})
		c.enqueueAll(12, account.Email)
		if err := c.stopped(4 * time.Second); err != nil {
			t.Errorf("got %v, want all sent in 4 seconds", err)
		}
		c.counted(messageSent, 12)
		if err := c.enqueue(account.Message{Channel: account.Email}); !errors.Is(err, mailbox.ErrStopped) {
			t.Errorf("got %v after the stop, want mailbox.ErrStopped", err)
		}
	})
}

func TestStopGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSenderFixture(t, hang)
		c.enqueueAll(12, account.Email)
		synctest.Wait()
		began := time.Now()
		err := c.stopped(3 * time.Second)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "8 of them") {
			t.Errorf("got %v, want 8 messages left", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("got %v to stop, want 3s", took)
		}
		c.counted(messageFailed, 12)
	})
}

func TestSenderThatPanicsFailsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSenderFixture(t, func(_ context.Context, m account.Message) error {
			if m.Kind == account.ChangeCode {
				panic(m.Code)
			}
			return nil
		})
		c.enqueueAll(8, account.SMS)
		if err := c.enqueue(account.Message{Channel: account.SMS, Kind: account.PhoneCode}); err != nil {
			t.Fatal(err)
		}
		if err := c.stopped(time.Second); err != nil {
			t.Error(err)
		}
		c.counted(messageFailed, 8)
		c.counted(messageSent, 1)
		if got := c.sum("gatehouse_messenger_panics_total", ""); got != 8 {
			t.Errorf("got %v panics counted, want 8", got)
		}
		if strings.Contains(c.text.String(), "271828") {
			t.Errorf("got log\n%s\nwant no code in it", c.text)
		}
	})
}

func TestFailureIsLoggedWithoutCodeAndAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSenderFixture(t, func(context.Context, account.Message) error { return errors.New("status 500") })
		c.enqueueAll(1, account.SMS)
		if err := c.stopped(time.Second); err != nil {
			t.Error(err)
		}
		log := c.text.String()
		if !strings.Contains(log, "channel=sms kind=change_code error=\"status 500\"") {
			t.Errorf("got log\n%s\nwant channel, kind and error", log)
		}
		if strings.Contains(log, "271828") || strings.Contains(log, "2025550123") {
			t.Errorf("got log\n%s\nwant neither code nor number", log)
		}
	})
}

func TestWithoutSenderNothingIsPosted(t *testing.T) {
	metrics, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	c := newSender(nil, metrics, slog.New(slog.DiscardHandler))
	if err := c.enqueue(account.Message{Channel: account.SMS}); !errors.Is(err, errNoMessenger) {
		t.Errorf("got %v, want errNoMessenger", err)
	}
	if err := c.stop(t.Context()); err != nil {
		t.Error(err)
	}
}
