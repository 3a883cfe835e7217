package messenger

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/account"
	"gatehouse/providers/messenger/webhook"
)

// fakeReceiver is a webhook receiver without a network, for tests with a fake clock. It records the
// attempts.
type fakeReceiver struct {
	t         *testing.T
	responses []response // the last one repeats
	at        []time.Duration
	ids       []string
	bodies    []string
	signed    []string
	began     time.Time
}

// response is a status or a network error. The zero value is no response.
type response struct {
	status     int
	err        error
	retryAfter string
}

func (a *fakeReceiver) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	a.at = append(a.at, time.Since(a.began))
	a.ids = append(a.ids, r.Header.Get("Idempotency-Key"))
	a.signed = append(a.signed, r.Header.Get(webhook.SignatureHeader))
	a.bodies = append(a.bodies, string(body))
	next := a.responses[min(len(a.at), len(a.responses))-1]
	switch {
	case next.err != nil:
		return nil, next.err
	case next.status == 0:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	header := http.Header{"Retry-After": {next.retryAfter}}
	return &http.Response{StatusCode: next.status, Header: header,
		Body: io.NopCloser(strings.NewReader("text")), Request: r}, nil
}

// sentTo sends a message to a receiver with these responses, within 30 seconds.
func sentTo(t *testing.T, responses ...response) (*fakeReceiver, error) {
	t.Helper()
	a := &fakeReceiver{t: t, responses: responses, began: time.Now()}
	w := newWebhook("https://sms.example.com/", strings.Repeat("k", 32), Config{Brand: atlas})
	w.HTTP.Transport = a
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := w.Send(ctx, account.Message{Channel: account.SMS, To: "+12025550123",
		Kind: account.PhoneCode, Code: "271828"})
	return a, err
}

func TestWebhookRetries(t *testing.T) {
	broken := response{err: errors.New("connection reset")}
	for _, test := range []struct {
		name      string
		responses []response
		attempts  int
		want      string // part of the error; "" = no error
	}{
		{"200", []response{{status: 200}}, 1, ""},
		{"202", []response{{status: 202}}, 1, ""},
		{"200 after 503", []response{{status: 503}, {status: 200}}, 2, ""},
		{"200 after 429", []response{{status: 429}, {status: 200}}, 2, ""},
		{"200 after network errors", []response{broken, broken, {status: 200}}, 3, ""},
		{"200 after a timeout", []response{{}, {status: 200}}, 2, ""},
		{"always 500", []response{{status: 500}}, 5, "status 500"},
		{"always a network error", []response{broken}, 5, "connection broke"},
		{"always a timeout", []response{{}}, 5, "webhook: "},
		{"400", []response{{status: 400}}, 1, "status 400"},
		{"410", []response{{status: 410}}, 1, "status 410"},
		{"307", []response{{status: 307}}, 1, "status 307"},
		{"403 after 500", []response{{status: 500}, {status: 403}}, 2, "status 403"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, err := sentTo(t, test.responses...)
				if test.want == "" && err != nil || test.want != "" &&
					(err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if len(a.at) != test.attempts {
					t.Errorf("got %d attempts, want %d", len(a.at), test.attempts)
				}
			})
		})
	}
}

// TestWebhookBackoff checks the waits between attempts: they double, with jitter of up to half.
func TestWebhookBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := map[time.Duration]bool{}
		for range 10 {
			a, _ := sentTo(t, response{status: 503})
			for i, longest := range []time.Duration{500 * time.Millisecond, time.Second,
				2 * time.Second, 4 * time.Second} {
				if wait := a.at[i+1] - a.at[i]; wait < longest/2 || wait > longest {
					t.Errorf("got %v before attempt %d, want %v to %v", wait, i+2, longest/2,
						longest)
				}
			}
			first[a.at[1]] = true
		}
		if len(first) < 5 {
			t.Errorf("got first waits %v, want jitter", first)
		}
	})
}

func TestRetryHasSameIDAndNewSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := sentTo(t, response{status: 503})
		for i := range a.ids {
			if a.ids[i] != a.ids[0] || a.bodies[i] != a.bodies[0] {
				t.Errorf("got ID %s and body %s in attempt %d, want those of the first", a.ids[i],
					a.bodies[i], i+1)
			}
		}
		if a.signed[4] == a.signed[0] {
			t.Error("got the same signature in the first and last attempt, want a new one")
		}
		b, _ := sentTo(t, response{status: 200})
		if a.ids[0] == b.ids[0] {
			t.Error("got the same ID for two messages, want two")
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		retryAfter  string
		least, most time.Duration
	}{
		{"3", 3 * time.Second, 3 * time.Second},
		{"3600", 10 * time.Second, 10 * time.Second},
		{"0", 250 * time.Millisecond, 500 * time.Millisecond},
		{"-1", 250 * time.Millisecond, 500 * time.Millisecond},
		{"Sat, 21 Nov 2026 11:00:00 GMT", 250 * time.Millisecond, 500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, err := sentTo(t, response{status: 429, retryAfter: test.retryAfter},
				response{status: 200})
			if err != nil {
				t.Fatal(err)
			}
			if wait := a.at[1]; wait < test.least || wait > test.most {
				t.Errorf("got %v after Retry-After %q, want %v to %v", wait, test.retryAfter,
					test.least, test.most)
			}
		})
	}
}

// TestWebhookStopsAtDeadline sends to a receiver that never responds.
func TestWebhookStopsAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a, err := sentTo(t, response{})
		if took := time.Since(began); err == nil || took > 30*time.Second {
			t.Errorf("got %v after %v, want an error within 30s", err, took)
		}
		if second := a.at[1]; second < 5*time.Second || second > 6*time.Second {
			t.Errorf("got the second attempt after %v, want it after the first one's timeout of 5s",
				second)
		}
	})
}
