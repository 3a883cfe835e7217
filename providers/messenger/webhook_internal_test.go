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
)

// answering stands for the receiver of a webhook, so that time can be the test's: the tries, and what each is answered.
type answering struct {
	t       *testing.T
	answers []answer // the last one for ever
	at      []time.Duration
	ids     []string
	bodies  []string
	signed  []string
	began   time.Time
}

// answer is a status, or an error of the network; a zero one is no answer at all.
type answer struct {
	status     int
	err        error
	retryAfter string
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	a.at = append(a.at, time.Since(a.began))
	a.ids = append(a.ids, r.Header.Get("Idempotency-Key"))
	a.signed = append(a.signed, r.Header.Get(signatureHeader))
	a.bodies = append(a.bodies, string(body))
	next := a.answers[min(len(a.at), len(a.answers))-1]
	switch {
	case next.err != nil:
		return nil, next.err
	case next.status == 0:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	header := http.Header{"Retry-After": {next.retryAfter}}
	return &http.Response{StatusCode: next.status, Header: header, Body: io.NopCloser(strings.NewReader("text")), Request: r}, nil
}

// sentTo sends a message to a receiver with those answers, with 30 seconds for it.
func sentTo(t *testing.T, answers ...answer) (*answering, error) {
	t.Helper()
	a := &answering{t: t, answers: answers, began: time.Now()}
	w := newWebhook("https://sms.example.com/", strings.Repeat("k", 32), "id.example.com")
	w.http.Transport = a
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := w.Send(ctx, account.Message{Channel: account.SMS, To: "+12025550123", Kind: account.PhoneCode, Code: "271828"})
	return a, err
}

func TestWebhookTries(t *testing.T) {
	broken := answer{err: errors.New("connection reset")}
	for _, test := range []struct {
		name    string
		answers []answer
		tries   int
		want    string // part of the error; "" = none
	}{
		{"taken", []answer{{status: 200}}, 1, ""},
		{"accepted", []answer{{status: 202}}, 1, ""},
		{"taken after a 503", []answer{{status: 503}, {status: 200}}, 2, ""},
		{"taken after a 429", []answer{{status: 429}, {status: 200}}, 2, ""},
		{"taken after a network error", []answer{broken, broken, {status: 200}}, 3, ""},
		{"taken after no answer", []answer{{}, {status: 200}}, 2, ""},
		{"always 500", []answer{{status: 500}}, 5, "status 500"},
		{"always broken", []answer{broken}, 5, "broke off"},
		{"never an answer", []answer{{}}, 5, "webhook: "},
		{"refused", []answer{{status: 400}}, 1, "status 400"},
		{"gone", []answer{{status: 410}}, 1, "status 410"},
		{"moved", []answer{{status: 307}}, 1, "status 307"},
		{"refused after a 500", []answer{{status: 500}, {status: 403}}, 2, "status 403"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, err := sentTo(t, test.answers...)
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if len(a.at) != test.tries {
					t.Errorf("got %d tries, want %d", len(a.at), test.tries)
				}
			})
		})
	}
}

// TestWaitsBetweenTriesGrow looks at the waits of a receiver that is always down: each is the longest of its step, or up to half less.
func TestWaitsBetweenTriesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := map[time.Duration]bool{}
		for range 10 {
			a, _ := sentTo(t, answer{status: 503})
			for i, longest := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
				if wait := a.at[i+1] - a.at[i]; wait < longest/2 || wait > longest {
					t.Errorf("got %v before try %d, want %v to %v", wait, i+2, longest/2, longest)
				}
			}
			first[a.at[1]] = true
		}
		if len(first) < 5 {
			t.Errorf("got first waits %v, want them by chance", first)
		}
	})
}

func TestTriesAreOneMessageSignedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := sentTo(t, answer{status: 503})
		for i := range a.ids {
			if a.ids[i] != a.ids[0] || a.bodies[i] != a.bodies[0] {
				t.Errorf("got id %s and body %s in try %d, want those of the first", a.ids[i], a.bodies[i], i+1)
			}
		}
		if a.signed[4] == a.signed[0] {
			t.Error("got the signature of the first try in the last, want one of its time")
		}
		b, _ := sentTo(t, answer{status: 200})
		if a.ids[0] == b.ids[0] {
			t.Error("got the same id for two messages, want two")
		}
	})
}

func TestReceiverAsksForTime(t *testing.T) {
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
			a, err := sentTo(t, answer{status: 429, retryAfter: test.retryAfter}, answer{status: 200})
			if err != nil {
				t.Fatal(err)
			}
			if wait := a.at[1]; wait < test.least || wait > test.most {
				t.Errorf("got %v after Retry-After %q, want %v to %v", wait, test.retryAfter, test.least, test.most)
			}
		})
	}
}

// TestSendEndsInTime has a receiver that needs all of each try's time.
func TestSendEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a, err := sentTo(t, answer{})
		if took := time.Since(began); err == nil || took > 30*time.Second {
			t.Errorf("got %v after %v, want an error within 30s", err, took)
		}
		if second := a.at[1]; second < 5*time.Second || second > 6*time.Second {
			t.Errorf("got the second try after %v, want it when the 5s of the first were over", second)
		}
	})
}
