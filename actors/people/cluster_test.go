package people_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/people"
	"gatehouse/actors/ratelimit"
)

// counts are the limits that the holder of all keys counts, by name.
type counts map[string]func(request []byte, now time.Time) []byte

// holder and asker are the Nodes of two services that count together: the asker asks the holder.
type (
	holder struct{ counts counts }
	asker  struct {
		counts counts
		cut    *bool // the holder cannot be asked
	}
)

func (h holder) Serve(limit string, count func([]byte, time.Time) []byte) { h.counts[limit] = count }

func (h holder) Ask(string, []byte, []byte) ([]byte, bool) { return nil, false }

func (h holder) Tell(_ string, _, _ []byte, here func()) { here() }

func (a asker) Serve(string, func([]byte, time.Time) []byte) {}

func (a asker) Ask(limit string, _, request []byte) ([]byte, bool) {
	if *a.cut {
		return nil, false
	}
	return a.counts[limit](request, time.Now()), true
}

func (a asker) Tell(limit string, key, request []byte, here func()) {
	if _, ok := a.Ask(limit, key, request); !ok {
		here()
	}
}

// newNodes starts two services that count together, and have stores of their own. It returns what
// cuts them off from each other.
func newNodes(t *testing.T, change func(*people.Config)) (
	nodes [2]*codeFixture, trails [2]*auditedStore, cut *bool,
) {
	t.Helper()
	shared := counts{}
	cut = new(bool)
	for i, n := range []ratelimit.Nodes{holder{shared}, asker{shared, cut}} {
		nodes[i], trails[i], _ = newAudited(t, func(c *people.Config) {
			change(c)
			c.Nodes = n
		})
	}
	return nodes, trails, cut
}

// TestOneBudgetOfTextMessages requests codes at two nodes in turn.
func TestOneBudgetOfTextMessages(t *testing.T) {
	nodes, trails, cut := newNodes(t, func(c *people.Config) { c.SMSPerHour, c.SMSPerCountry = 10, 5 })
	begin := func(i int, number string) error {
		f := nodes[i%2]
		_, err := f.begin(t, i, number, "")
		if err == nil {
			<-f.messages
		}
		return err
	}
	for i := range 5 {
		if err := begin(i, fmt.Sprintf("+4915112345%03d", i)); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	for i := 5; i < 7; i++ {
		var limit *people.ThrottledError
		err := begin(i, fmt.Sprintf("+4915112345%03d", i))
		if !errors.As(err, &limit) || limit.RetryAfter > time.Hour {
			t.Errorf("message %d: got %v, want a limit", i, err)
		}
	}
	for i := 7; i < 12; i++ {
		if err := begin(i, fmt.Sprintf("+141555501%02d", i)); err != nil {
			t.Errorf("another country: %v", err)
		}
	}
	if err := begin(12, "+447911123456"); err == nil {
		t.Error("got an eleventh message in all")
	}
	var details []string
	for _, trail := range trails {
		for _, e := range trail.events {
			if e.Action == audit.BudgetReached {
				details = append(details, strings.Join(e.Details, " "))
			}
		}
	}
	if got, want := strings.Join(details, ", "), "sms DE, sms all, sms US"; got != want {
		t.Errorf("got events %q, want %q", got, want)
	}
	*cut = true
	if err := begin(13, "+447911123456"); err != nil {
		t.Errorf("at a node that is alone: %v", err)
	}
}

// TestFailedTextMessageIsTakenBack has the store fail at the node that asks.
func TestFailedTextMessageIsTakenBack(t *testing.T) {
	nodes, trails, _ := newNodes(t, func(c *people.Config) { c.SMSPerHour = 1 })
	trails[1].fail = errors.New("disk full")
	if _, err := nodes[1].begin(t, 1, "+4915112345001", ""); !errors.Is(err, trails[1].fail) {
		t.Fatalf("got %v, want %v", err, trails[1].fail)
	}
	if _, err := nodes[0].begin(t, 2, "+4915112345002", ""); err != nil {
		t.Errorf("got %v, want the message that the other node has not sent", err)
	}
}

// TestOneLimitOnGuesses guesses the password of an account at two nodes in turn, and then those of
// many accounts.
func TestOneLimitOnGuesses(t *testing.T) {
	nodes, _, cut := newNodes(t, func(*people.Config) {})
	guess := func(i int, email string) bool {
		_, err := nodes[i%2].SignIn(t.Context(), people.SignIn{
			Email: email, Password: "wrong", Caller: browser,
		}, nodes[i%2].now)
		var limit *people.ThrottledError
		if !errors.As(err, &limit) && !errors.Is(err, people.ErrWrongCredentials) {
			t.Fatalf("guess %d: got %v", i, err)
		}
		return limit == nil
	}
	allowed := 0
	for i := range 14 {
		if guess(i, "ann@example.com") {
			allowed++
		}
	}
	if allowed != 5 {
		t.Errorf("got %d guesses of one password, want 5", allowed)
	}
	for i := range 40 {
		if guess(i, fmt.Sprintf("user-%d@example.com", i)) {
			allowed++
		}
	}
	if allowed != 20 {
		t.Errorf("got %d guesses of one caller, want 20", allowed)
	}
	*cut = true
	if !guess(1, "eve@example.com") {
		t.Error("got a guess refused at a node that is alone")
	}
}

// TestSignInIsNoGuessAtAnyNode signs in often at both nodes with the right password.
func TestSignInIsNoGuessAtAnyNode(t *testing.T) {
	nodes, _, _ := newNodes(t, func(*people.Config) {})
	for _, f := range nodes {
		f.signUp(t, "ann@example.com")
	}
	for i := range 60 {
		f := nodes[i%2]
		in := people.SignIn{Email: "ann@example.com", Password: password, Caller: browser}
		if _, err := f.SignIn(t.Context(), in, f.now); err != nil {
			t.Fatalf("sign-in %d: %v", i, err)
		}
	}
}

// TestOneLimitOnCodeRequests requests codes at two nodes from one address.
func TestOneLimitOnCodeRequests(t *testing.T) {
	nodes, _, _ := newNodes(t, func(*people.Config) {})
	allowed := 0
	for i := range 80 {
		by := people.Browser{Caller: netip.MustParseAddr("203.0.113.5")}
		f := nodes[i%2]
		if _, err := f.BeginPhone(t.Context(), fmt.Sprintf("+4915112345%03d", i), by, f.now); err == nil {
			allowed++
			<-f.messages
		}
	}
	if allowed != 60 {
		t.Errorf("got %d code requests of one caller, want 60", allowed)
	}
}
