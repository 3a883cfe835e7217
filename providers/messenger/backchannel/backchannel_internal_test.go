package backchannel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/providers/messenger/leased"
)

// store is a Store in memory. Its clients have the URI https://ID.example/.
type store struct {
	mu     sync.Mutex
	all    map[string]*queued
	holder string
	until  time.Time
	events []audit.Event
}

type queued struct {
	account.Logout
	due time.Time
}

func (s *store) lock() func() { s.mu.Lock(); return s.mu.Unlock }

func (s *store) add(client string, ids ...string) {
	defer s.lock()()
	if s.all == nil {
		s.all = map[string]*queued{}
	}
	for _, id := range ids {
		s.all[id] = &queued{account.Logout{ID: id, ClientID: client, UserID: 7, SID: "sid " + id,
			Created: time.Now()}, time.Now()}
	}
}

func (s *store) LogoutQueues(context.Context) (queues []account.LogoutQueue, err error) {
	defer s.lock()()
	byClient := map[string]*account.LogoutQueue{}
	for _, l := range s.all {
		q := byClient[l.ClientID]
		if q == nil {
			q = &account.LogoutQueue{ClientID: l.ClientID, Due: l.due}
			byClient[l.ClientID] = q
		}
		q.Waiting++
		if l.due.Before(q.Due) {
			q.Due = l.due
		}
	}
	for _, q := range byClient {
		queues = append(queues, *q)
	}
	return queues, nil
}

func (s *store) Logouts(_ context.Context, clientID string, now time.Time, limit int) (
	all []account.Logout, err error) {
	defer s.lock()()
	for _, l := range s.all {
		if l.ClientID == clientID && !l.due.After(now) {
			all = append(all, l.Logout)
		}
	}
	slices.SortFunc(all, func(a, b account.Logout) int { return strings.Compare(a.ID, b.ID) })
	return all[:min(limit, len(all))], nil
}

func (s *store) DelayLogout(_ context.Context, id string, due time.Time) error {
	defer s.lock()()
	s.all[id].Attempts++
	s.all[id].due = due
	return nil
}

func (s *store) EndLogout(ctx context.Context, id string) error {
	defer s.lock()()
	delete(s.all, id)
	s.events = append(s.events, audit.Recorded(ctx)...)
	return nil
}

func (s *store) Record(context.Context) error { return nil }

func (s *store) Client(_ context.Context, id string) (*oauth.Client, error) {
	c := &oauth.Client{ID: id}
	c.Options.BackchannelLogoutURI = "https://" + id + ".example/"
	c.Options.SelfRegistered = id == "stranger"
	return c, nil
}

func (s *store) TakeLease(_ context.Context, _, holder string, now, until time.Time) (bool, error) {
	defer s.lock()()
	if s.holder != holder && now.Before(s.until) {
		return false, nil
	}
	s.holder, s.until = holder, until
	return true, nil
}

func (s *store) EndLease(_ context.Context, _, holder string, now time.Time) error {
	defer s.lock()()
	if s.holder == holder {
		s.until = now
	}
	return nil
}

// clients answer requests by their host.
type clients struct {
	mu      sync.Mutex
	answers map[string]func(*http.Request) (int, error)
	got     map[string][]time.Duration // when, since the start
	open    map[string]int
	most    map[string]int
	began   time.Time
}

func (c *clients) RoundTrip(r *http.Request) (*http.Response, error) {
	host, _, _ := strings.Cut(r.URL.Host, ".")
	c.mu.Lock()
	c.got[host] = append(c.got[host], time.Since(c.began))
	c.open[host]++
	c.most[host] = max(c.most[host], c.open[host])
	answer := c.answers[host]
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[host]--
	}()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("logout_token") == "" || r.Method != http.MethodPost {
		return nil, fmt.Errorf("got %s %q, want a logout token", r.Method, body)
	}
	status, err := answer(r)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	header.Set("Location", "https://elsewhere.example/")
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: r}, nil
}

func hang(r *http.Request) (int, error) { <-r.Context().Done(); return 0, r.Context().Err() }

func status(codes ...int) func(*http.Request) (int, error) {
	var mu sync.Mutex
	return func(*http.Request) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		code := codes[0]
		if len(codes) > 1 {
			codes = codes[1:]
		}
		return code, nil
	}
}

// sender starts a Sender, to stop at the end of the test.
func sender(t *testing.T, s *store, answers map[string]func(*http.Request) (int, error)) (*Sender, *clients) {
	t.Helper()
	c := &clients{answers: answers, got: map[string][]time.Duration{}, open: map[string]int{},
		most: map[string]int{}, began: time.Now()}
	made, err := newSender(Config{Issuer: "https://id.example", Store: s, Dial: (&net.Dialer{}).DialContext,
		Sign: func(alg, typ string, _ any) (string, error) {
			if alg != "RS256" || typ != "logout+jwt" {
				return "", errors.New("unexpected token")
			}
			return "a.b.c", nil
		},
		Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	made.http.Transport = c
	made.leased.Start(made.run)
	return made, c
}

func (c *clients) count(host string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got[host])
}

// left returns how many logouts there are, and the attempts to send the first one.
func (s *store) left() (n, attempts int) {
	defer s.lock()()
	for _, l := range s.all {
		attempts = l.Attempts
	}
	return len(s.all), attempts
}

func ids(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%04d", prefix, i))
	}
	return all
}

func TestHangingClientDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		sender, c := sender(t, s, map[string]func(*http.Request) (int, error){"hangs": hang,
			"broken": status(503), "good": status(204)})
		defer sender.Stop()
		s.add("hangs", ids("h", 500)...)
		s.add("broken", ids("b", 500)...)
		s.add("good", ids("g", 100)...)
		time.Sleep(5 * time.Second)
		if got := c.count("good"); got != 100 {
			t.Errorf("got %d logouts sent to the good client after 5 s, want 100", got)
		}
		time.Sleep(5 * time.Minute)
		for host, most := range map[string]int{"hangs": 20, "broken": 25, "good": 100} {
			if got := c.count(host); got > most || got < 4 {
				t.Errorf("got %d requests to the %s client, want at most %d", got, host, most)
			}
			c.mu.Lock()
			got := c.most[host]
			c.mu.Unlock()
			if got > perClient {
				t.Errorf("got %d requests to the %s client at once, want at most %d", got, host, perClient)
			}
		}
		if c.count("elsewhere") != 0 {
			t.Error("got a redirect followed, want none")
		}
	})
}

func TestRetriesUntilAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		sender, c := sender(t, s, map[string]func(*http.Request) (int, error){
			"late": status(500, 302, 400, 429, 200)})
		defer sender.Stop()
		s.add("late", "one")
		time.Sleep(2 * time.Minute)
		left, _ := s.left()
		if got := c.count("late"); got != 5 || left != 0 {
			t.Errorf("got %d requests and %d logouts left, want 5 and none", got, left)
		}
		synctest.Wait()
		for i, at := range c.got["late"] {
			if i > 0 && at-c.got["late"][i-1] < 400*time.Millisecond {
				t.Errorf("got requests at %v, want time between them", c.got["late"])
			}
		}
	})
}

func TestGivesUpAfterMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		sender, c := sender(t, s, map[string]func(*http.Request) (int, error){"dead": status(503),
			"stranger": status(200)})
		defer sender.Stop()
		s.add("dead", "one")
		s.add("stranger", "two")
		time.Sleep(MaxAge - 2*leased.MaxBackoff)
		left, _ := s.left()
		if got := c.count("dead"); left != 1 || got < 20 || got > 60 {
			t.Errorf("got %d requests and %d logouts left, want 20 to 60 and one", got, left)
		}
		time.Sleep(3 * leased.MaxBackoff) // the last attempt may come a backoff late
		want := audit.Event{Action: audit.LogoutLost, Outcome: audit.Failed,
			Subject: audit.OfUser(7), Target: "dead"}
		left, _ = s.left()
		s.mu.Lock()
		events := s.events
		s.mu.Unlock()
		if left != 0 || len(events) != 1 || events[0].Action != want.Action ||
			events[0].Subject != want.Subject || events[0].Target != want.Target {
			t.Errorf("got %d logouts left and events %+v, want none and %+v", left, events, want)
		}
		if got := c.count("stranger"); got != 0 {
			t.Errorf("got %d requests to a client that registered itself, want none", got)
		}
	})
}

func TestOneOfTwoSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		answers := map[string]func(*http.Request) (int, error){"good": status(200)}
		first, a := sender(t, s, answers)
		s.add("good", ids("a", 20)...)
		time.Sleep(time.Second) // the first takes the lease
		second, b := sender(t, s, answers)
		defer second.Stop()
		s.add("good", ids("c", 20)...)
		time.Sleep(10 * time.Second)
		if a.count("good") != 40 || b.count("good") != 0 {
			t.Errorf("got %d and %d requests, want all by the first", a.count("good"), b.count("good"))
		}
		first.Stop()
		s.add("good", ids("b", 20)...)
		time.Sleep(10 * time.Second)
		if b.count("good") != 20 {
			t.Errorf("got %d requests by the second, want 20", b.count("good"))
		}
	})
}

// TestStopKeepsWhatIsOnTheWay stops while a client hangs. The next Sender sends it again.
func TestStopKeepsWhatIsOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		first, _ := sender(t, s, map[string]func(*http.Request) (int, error){"slow": hang})
		s.add("slow", "one")
		time.Sleep(time.Second)
		first.Stop()
		if left, attempts := s.left(); left != 1 || attempts != 0 {
			t.Fatalf("got %d logouts and %d attempts, want one without an attempt", left, attempts)
		}
		second, c := sender(t, s, map[string]func(*http.Request) (int, error){"slow": status(200)})
		defer second.Stop()
		time.Sleep(time.Second)
		if left, _ := s.left(); c.count("slow") != 1 || left != 0 {
			t.Errorf("got %d requests, want one", c.count("slow"))
		}
	})
}
