package broker_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/contracts/broker"
	"gatehouse/contracts/broker/brokertest"
)

const pact = `{"consumer":{"name":"web shop"},"provider":{"name":"gatehouse"},"interactions":[],"metadata":{"pactSpecification":{"version":"4.0"}}}`

func client(t *testing.T, config broker.Config) *broker.Client {
	t.Helper()
	c, err := broker.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newBroker returns a broker with the pact of a main branch, which no version has verified.
func newBroker(t *testing.T) *brokertest.Broker {
	t.Helper()
	b := brokertest.New(t)
	b.Publish([]byte(pact), "c1", "main")
	return b
}

func TestSelectorsAreSent(t *testing.T) {
	b := newBroker(t)
	got, err := client(t, broker.Config{URL: b.URL}).Pacts(t.Context(),
		broker.Query{Provider: "gatehouse", Branch: "feature", Tags: []string{"dev"},
			Selectors: []broker.Selector{{MainBranch: true},
				{DeployedOrReleased: true, Consumer: "web shop"}}, Pending: true,
			WIPSince: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil || len(got) != 1 || !got[0].Pending ||
		!strings.Contains(string(got[0].Content), "web shop") {
		t.Fatalf("got %v and error %v, want the pending pact", got, err)
	}
	if len(got[0].Notices) != 2 ||
		!strings.Contains(got[0].Notices[0], "latest version from the main branch 'main'") ||
		!strings.Contains(got[0].Notices[1], "pending state") || got[0].Consumer != "web shop" {
		t.Errorf("got %q, want those of the time before", got[0].Notices)
	}
	want := "map[consumerVersionSelectors:[map[mainBranch:true] map[consumer:web shop deployedOrReleased:true]] includePendingStatus:true " +
		"includeWipPactsSince:2026-11-01T00:00:00Z providerVersionBranch:feature providerVersionTags:[dev]]"
	if asked := b.Requests(); len(asked) != 1 || fmt.Sprint(asked[0]) != want {
		t.Errorf("got %v, want %s", asked, want)
	}
}

func TestNoPacts(t *testing.T) {
	b := newBroker(t)
	got, err := client(t, broker.Config{URL: b.URL}).Pacts(t.Context(),
		broker.Query{Provider: "gatehouse", Selectors: []broker.Selector{{Branch: "other"}}})
	if err != nil || len(got) != 0 {
		t.Errorf("got %v and error %v, want nothing", got, err)
	}
}

func TestResultIsPublishedWithBranchAndTags(t *testing.T) {
	b := newBroker(t)
	c := client(t, broker.Config{URL: b.URL})
	pacts, err := c.Pacts(t.Context(), broker.Query{Provider: "gatehouse"})
	if err != nil {
		t.Fatal(err)
	}
	v := broker.Version{Number: "1.0/7", Branch: "feat/x", Tags: []string{"dev"},
		BuildURL: "https://ci.example/7"}
	err = c.Publish(t.Context(), pacts[0], v, false,
		[]broker.Result{{Description: "a",
			Problems: []broker.Problem{{Attribute: "body", Description: "b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Branches(); !slices.Equal(got, []string{"feat/x@1.0/7"}) {
		t.Errorf("got branches %q", got)
	}
	if got := b.Tags(); !slices.Equal(got, []string{"dev@1.0/7"}) {
		t.Errorf("got tags %q", got)
	}
	want := "[{web shop map[buildUrl:https://ci.example/7 providerApplicationVersion:1.0/7 success:false " +
		"testResults:[map[interactionDescription:a mismatches:[map[attribute:body description:b]] success:false]] verifiedBy:map[implementation:gatehouse pactcheck version:1]]}]"
	if got := fmt.Sprint(b.Published()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRejectedResultIsAnError uses a broker that fails at one step of publishing.
func TestRejectedResultIsAnError(t *testing.T) {
	for _, failing := range []string{"/verification-results", "/branches/main/versions/1",
		"/tags/dev", "/pacticipants/gatehouse"} {
		b := newBroker(t)
		b.Fail(failing)
		c := client(t, broker.Config{URL: b.URL, Pause: time.Millisecond})
		pacts, err := c.Pacts(t.Context(), broker.Query{Provider: "gatehouse"})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Publish(t.Context(), pacts[0],
			broker.Version{Number: "1", Branch: "main", Tags: []string{"dev"}}, true, nil)
		if err == nil || !strings.Contains(err.Error(), "500") ||
			!strings.Contains(err.Error(), "logged") {
			t.Errorf("%s: got %v, want the broker's error", failing, err)
		}
	}
}

// TestAttempts asks a broker that fails some times.
func TestAttempts(t *testing.T) {
	for _, row := range []struct {
		name         string
		status       int // 0 = the broker ends the connection
		retryAfter   string
		fails, asked int
		want         string // of the error; "" = none
	}{
		{"busy", 503, "0", 2, 3, ""},
		{"an end of the connection", 0, "", 2, 3, ""},
		{"limited", 429, "Mon, 02 Jan 2006 15:04:05 GMT", 1, 2, ""},
		{"broken", 500, "soon", 9, 3, "/x with 500; attempts"},
		{"no access", 401, "", 9, 1, "/x with 401; set PACT_BROKER_TOKEN, or PACT_BROKER_USERNAME"},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked > row.fails {
				_, _ = io.WriteString(w, pact)
				return
			}
			if row.status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Retry-After", row.retryAfter)
			w.WriteHeader(row.status)
		}))
		_, err := client(t, broker.Config{URL: server.URL + "/x", Pause: time.Millisecond}).Pacts(
			t.Context(), broker.Query{Provider: "gatehouse"})
		server.Close()
		want := strings.Replace(row.want, "; attempts", " (3 attempts)", 1)
		if asked != row.asked || (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), server.URL+want) {
			t.Errorf("%s: got %d requests and error %v, want %d and %q", row.name, asked, err,
				row.asked, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	for _, row := range []struct {
		name         string
		wanted       broker.Config // of the broker
		config       broker.Config
		wantRejected bool
	}{
		{"token", broker.Config{Token: "t"}, broker.Config{Token: "t"}, false},
		{"wrong token", broker.Config{Token: "t"}, broker.Config{Token: "u"}, true},
		{"password", broker.Config{Username: "u", Password: "p"},
			broker.Config{Username: "u", Password: "p"}, false},
		{"none", broker.Config{Username: "u", Password: "p"}, broker.Config{}, true},
	} {
		b := newBroker(t)
		b.WantToken(row.wanted.Token)
		b.WantPassword(row.wanted.Username, row.wanted.Password)
		row.config.URL = b.URL
		_, err := client(t, row.config).Pacts(t.Context(), broker.Query{Provider: "gatehouse"})
		if rejected := err != nil &&
			strings.Contains(err.Error(), "401"); rejected != row.wantRejected || err != nil &&
			!rejected {
			t.Errorf("%s: got %v, want rejected=%v", row.name, err, row.wantRejected)
		}
	}
}

func TestInvalidAddresses(t *testing.T) {
	for _, config := range []broker.Config{{URL: "ftp://x"}, {URL: "http://"},
		{URL: "http://u:p@x"}, {URL: "http://x", Username: "u"}} {
		if _, err := broker.New(config); err == nil {
			t.Errorf("%v: got no error", config.URL)
		}
	}
}

// TestPactByAddress reads a pact by its own address, as a webhook names it, and publishes its
// result.
func TestPactByAddress(t *testing.T) {
	b := newBroker(t)
	c := client(t, broker.Config{URL: b.URL +
		"/pacts/provider/gatehouse/consumer/web%20shop/version/c1"})
	pacts, err := c.Pacts(t.Context(), broker.Query{Provider: "gatehouse"})
	if err != nil || len(pacts) != 1 {
		t.Fatalf("got %v and error %v, want the pact", pacts, err)
	}
	if err := c.Publish(t.Context(), pacts[0], broker.Version{Number: "1"}, true,
		nil); err != nil || len(b.Published()) != 1 {
		t.Errorf("got %v and %v, want a result", err, b.Published())
	}
}

// TestBrokerSaysWhatIsWrong asks for an unknown provider and an unknown environment.
func TestBrokerSaysWhatIsWrong(t *testing.T) {
	b := newBroker(t)
	for _, row := range []struct {
		query broker.Query
		want  string
	}{
		{broker.Query{Provider: "nope"}, "404: \"No provider with name 'nope' found\""},
		{broker.Query{Provider: "gatehouse", Selectors: []broker.Selector{{Environment: "moon"}}},
			"environment with name 'moon' does not exist (at index 0)"},
	} {
		if _, err := client(t, broker.Config{URL: b.URL}).Pacts(t.Context(),
			row.query); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %s", err, row.want)
		}
	}
}
