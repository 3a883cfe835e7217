//go:build pact

package main

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/contracts/broker/brokertest"
)

func newBroker(t *testing.T, pending bool, interactions ...string) *brokertest.Broker {
	t.Helper()
	b := brokertest.New(t, "gatehouse")
	b.Add([]byte(pactText("gatehouse", interactions...)), pending)
	return b
}

var publishing = []string{"verify", "--publish", "--provider-version", "1.4.0", "--provider-branch",
	"main"}

func TestResultsArePublished(t *testing.T) {
	b := newBroker(t, false, good, bad)
	got := pactcheck(t, append(publishing, b.URL)...)
	if got.code != 1 || !strings.Contains(got.stdout, "published to the broker") {
		t.Errorf("got %+v, want a failure that is published", got)
	}
	told := b.Published()
	if len(told) != 1 || told[0].Body["success"] != false ||
		told[0].Body["providerApplicationVersion"] != "1.4.0" {
		t.Fatalf("got %v, want one failed result of version 1.4.0", told)
	}
	results := fmt.Sprint(told[0].Body["testResults"])
	if !strings.Contains(results, "interactionDescription:a lookup success:true") ||
		!strings.Contains(results, "planet") {
		t.Errorf("got %s, want both interactions and what is wrong", results)
	}
	if branches := b.Branches(); len(branches) != 1 || branches[0] != "main@1.4.0" {
		t.Errorf("got branches %q, want main@1.4.0", branches)
	}
}

func TestNothingIsPublishedWithoutFlag(t *testing.T) {
	b := newBroker(t, false, good)
	if got := pactcheck(t, "verify", "--provider-version", "1", b.URL); got.code != 0 ||
		len(b.Published()) != 0 {
		t.Errorf("got %+v and %v, want nothing published", got, b.Published())
	}
}

func TestFailedPublishIsAFailure(t *testing.T) {
	b := newBroker(t, false, good)
	b.Fail("/verification-results")
	if got := pactcheck(t, append(publishing, b.URL)...); got.code != 1 ||
		!strings.Contains(got.stdout, "the broker rejected the result") {
		t.Errorf("got %+v, want a failure", got)
	}
}

// TestPendingPactDoesNotFail verifies a pending pact. The published result is still a failure.
func TestPendingPactDoesNotFail(t *testing.T) {
	b := newBroker(t, true, bad)
	got := pactcheck(t, append(publishing, b.URL)...)
	if got.code != 0 || !strings.Contains(got.stdout, "~ a lookup of a planet") ||
		!strings.Contains(got.stdout, "1 pending") {
		t.Errorf("got %+v, want it pending", got)
	}
	if told := b.Published(); len(told) != 1 || told[0].Body["success"] != false {
		t.Errorf("got %v, want a failed result", told)
	}
	if got := pactcheck(t, append(publishing, "--no-pending", b.URL)...); got.code != 1 {
		t.Errorf("got %+v without pending, want a failure", got)
	}
}

func TestSelectors(t *testing.T) {
	for _, row := range []struct {
		args string
		want string
	}{
		{"", "[map[mainBranch:true] map[deployedOrReleased:true]]"},
		{"--main-branch", "[map[mainBranch:true]]"},
		{"--matching-branch --provider-branch x", "[map[matchingBranch:true]]"},
		{"--deployed-or-released", "[map[deployedOrReleased:true]]"},
		{"--environment production", "[map[deployedOrReleased:true environment:production]]"},
		{"--tag prod --branch b", "[map[branch:b] map[latest:true tag:prod]]"},
		{"--main-branch --consumer shop", "[map[consumer:shop mainBranch:true]]"},
	} {
		b := newBroker(t, false, good)
		got := pactcheck(t, append(append([]string{"verify"}, strings.Fields(row.args)...),
			b.URL)...)
		asked := b.Requests()
		if got.code != 0 || len(asked) != 1 ||
			fmt.Sprint(asked[0]["consumerVersionSelectors"]) != row.want {
			t.Errorf("%s: got %+v and %v, want %s", row.args, got, asked, row.want)
		}
	}
}

func TestWIPSince(t *testing.T) {
	b := newBroker(t, true, good)
	got := pactcheck(t, "verify", "--wip-since", "2026-11-01", "--provider-branch", "main", b.URL)
	asked := b.Requests()
	if got.code != 0 || len(asked) != 1 ||
		asked[0]["includeWipPactsSince"] != "2026-11-01T00:00:00Z" ||
		asked[0]["includePendingStatus"] != true {
		t.Errorf("got %+v and %v, want pacts since then", got, asked)
	}
}

// TestBrokerCredentials passes credentials by environment and by flag.
func TestBrokerCredentials(t *testing.T) {
	b := newBroker(t, false, good)
	b.WantToken("secret")
	if got := pactcheck(t, "verify", b.URL); got.code != 2 || !strings.Contains(got.stderr, "401") {
		t.Errorf("got %+v without a token, want 401", got)
	}
	t.Setenv("PACT_BROKER_TOKEN", "secret")
	if got := pactcheck(t, "verify", b.URL); got.code != 0 {
		t.Errorf("got %+v with a token", got)
	}
	b = newBroker(t, false, good)
	b.WantPassword("u", "p")
	t.Setenv("PACT_BROKER_TOKEN", "")
	t.Setenv("PACT_BROKER_USERNAME", "u")
	if got := pactcheck(t, "verify", "--broker-password", "p", b.URL); got.code != 0 {
		t.Errorf("got %+v with a password", got)
	}
}

func TestBrokerWithoutPacts(t *testing.T) {
	if got := pactcheck(t, "verify", brokertest.New(t, "gatehouse").URL); got.code != 2 {
		t.Errorf("got %+v, want nothing to verify", got)
	}
}
