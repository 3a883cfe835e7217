package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"gatehouse/contracts/broker/brokertest"
)

func newBroker(t *testing.T, pending bool, interactions ...string) *brokertest.Broker {
	t.Helper()
	b := brokertest.New(t)
	b.Publish([]byte(pactText("gatehouse", interactions...)), "c1", "main")
	if !pending {
		b.Verify("gatehouse", "1.3.0", "main")
	}
	return b
}

// pactOf returns the pact of a consumer. members are further members, such as metadata.
func pactOf(consumer, members string, interactions ...string) []byte {
	if !strings.Contains(members, "metadata") {
		members += `"metadata":{"pactSpecification":{"version":"4.0"}},`
	}
	return []byte(`{"consumer":{"name":"` + consumer + `"},"provider":{"name":"gatehouse"},` +
		members + `"interactions":[` + strings.Join(interactions, ",") + `]}`)
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
	if !strings.Contains(results, "success:true") {
		t.Errorf("got %s, want a good one", results)
	}
	if !strings.Contains(results, "interactionDescription:a lookup interactionId:") ||
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
		b := brokertest.New(t)
		b.Publish([]byte(pactText("gatehouse", good)), "c1", "main")
		tagged := strings.Replace(good, "a lookup", "another lookup", 1)
		b.Publish([]byte(pactText("gatehouse", tagged)), "c2", "b")
		b.Publish([]byte(pactText("gatehouse", good)), "c3", "x")
		b.Deploy("shop", "c1", "production")
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
	b.Publish(pactOf("feature", "", bad), "c9", "feat/planet")
	got := pactcheck(t, "verify", "--wip-since", "2026-11-01", "--provider-branch", "main", b.URL)
	asked := b.Requests()
	if got.code != 0 || len(asked) != 1 || !strings.Contains(got.stdout, "1 pending") ||
		!strings.Contains(got.stdout, "note: The pact at ") ||
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

// TestBrokerWithoutPacts asks a broker that does not know the provider, and one without a match.
func TestBrokerWithoutPacts(t *testing.T) {
	if got := pactcheck(t, "verify", brokertest.New(t).URL); got.code != 2 ||
		!strings.Contains(got.stderr, "No provider with name 'gatehouse' found") {
		t.Errorf("got %+v, want the broker's reason", got)
	}
	if got := pactcheck(t, "verify", "--branch", "x",
		newBroker(t, false, good).URL); got.code != 2 ||
		!strings.Contains(got.stderr, "nothing to verify") {
		t.Errorf("got %+v, want nothing to verify", got)
	}
	if got := pactcheck(t, "verify", "--environment", "moon",
		newBroker(t, false, good).URL); got.code != 2 ||
		!strings.Contains(got.stderr, "environment with name 'moon' does not exist") {
		t.Errorf("got %+v, want the broker's reason", got)
	}
}

// TestPendingTeam adds the first pact of a consumer, with a state that does not exist, to a pact
// that was verified before. It may not stop the provider's pipeline.
func TestPendingTeam(t *testing.T) {
	b := brokertest.New(t)
	b.Publish(pactOf("beginner", "", interaction("a lookup on the moon", "the moon is full", "{}"),
		good), "b0", "feature") // before the others, so that its results come first
	b.Publish(pactOf("shop", "", good), "c1", "main")
	b.Verify("gatehouse", "1.3.0", "main")
	b.Publish(pactOf("beginner", "", good,
		interaction("a lookup on the moon", "the moon is full", "{}")), "b1", "main")
	got := pactcheck(t, append(publishing, b.URL)...)
	if got.code != 0 || got.stderr != "" ||
		!strings.Contains(got.stdout, `~ a lookup on the moon  [GET /api/lookup]
      state: state "the moon is full": there is no such state`) ||
		!strings.Contains(got.stdout, "3 interactions of 2 pacts: 2 verified, 0 failed, 1 pending") {
		t.Errorf("got %+v, want it pending with its reason, and all else verified", got)
	}
	success := map[string]any{}
	for _, one := range b.Published() {
		success[one.Consumer] = one.Body["success"]
	}
	if len(success) != 2 || success["shop"] != true || success["beginner"] != false {
		t.Errorf("got %v, want a good result and a failure", success)
	}
	for _, one := range b.Published() {
		for _, result := range one.Body["testResults"].([]any) {
			if id, _ := result.(map[string]any)["interactionId"].(string); len(id) != 40 {
				t.Errorf("got %v, want the broker's id of the interaction", result)
			}
		}
	}
}

// TestWhatCannotBeTriedChangesNothingElse puts pacts that cannot be tried between two good ones.
// Each is a failure, also of a run in which it is not pending.
func TestWhatCannotBeTriedChangesNothingElse(t *testing.T) {
	plugin := strings.Replace(good, `"description":"a lookup"`,
		`"description":"a lookup as CSV","pluginConfiguration":{"csv":{}}`, 1)
	message := `{"type":"Asynchronous/Messages","description":"an event","contents":{"content":"x"}}`
	unknown := strings.Replace(good, `"request":{`,
		`"request":{"generators":{"header":{"Authorization":{"type":"ProviderState","expression":"${no_such}"}}},`, 1)
	for _, row := range []struct {
		name, pact, want string
		verified         int
	}{
		{"a plugin", string(pactOf("middle", `"metadata":{"plugins":[{"name":"csv","version":"0.0.6"}],"pactSpecification":{"version":"4.0"}},`,
			good, plugin)), "it needs the plugin csv", 3},
		{"a message", string(pactOf("middle", "", message)), "no messages", 2},
		{"a string as status", string(pactOf("middle", "",
			strings.Replace(good, `"status":200`, `"status":"200"`, 1))), `the status is "200"`, 2},
		{"no response", string(pactOf("middle", "",
			`{"description":"x","request":{"method":"GET","path":"/"}}`)), "it has no response", 2},
		{"an unknown value", string(pactOf("middle", "", unknown)), `the value "no_such"`, 2},
		{"a broken rule", string(pactOf("middle", "", strings.Replace(good, `"status":200`,
			`"status":200,"matchingRules":{"body":{"$.ok":{"matchers":[{"match":"x"}]}}}`, 1))),
			`the matching rule "body": "$.ok": there is no matcher "x"`, 2},
		{"no interactions", string(pactOf("middle", `"messages":5,`, good)),
			"messages is no array", 2},
	} {
		for _, pending := range []bool{true, false} {
			b := brokertest.New(t)
			b.Publish(pactOf("first", "", good), "c1", "main")
			b.Publish([]byte(row.pact), "c1", "main")
			b.Publish(pactOf("last", "", good), "c1", "main")
			code, mark := 1, "✗"
			if pending {
				code, mark = 0, "~"
			} else {
				b.Verify("gatehouse", "1.3.0", "main")
			}
			got := pactcheck(t, append(publishing, b.URL)...)
			if got.code != code || got.stderr != "" || !strings.Contains(got.stdout, row.want) ||
				!strings.Contains(got.stdout, fmt.Sprintf(": %d verified, ", row.verified)) ||
				strings.Count(got.stdout, mark) != 1 {
				t.Errorf("%s, pending %v: got %+v, want one failure and %d verified", row.name,
					pending, got, row.verified)
			}
			success := ""
			for _, one := range b.Published() {
				success += fmt.Sprintf("%s %v ", one.Consumer, one.Body["success"])
			}
			if success != "first true middle false last true " {
				t.Errorf("%s: got %s, want a result of each pact", row.name, success)
			}
		}
	}
}

// TestNobodyThere verifies a service that does not exist. That says nothing about the contract.
func TestNobodyThere(t *testing.T) {
	const absent = "http://127.0.0.1:1" // no test gets this port by chance
	s := serve(t)
	for _, args := range [][]string{
		{"--base-url", absent},
		{"--base-url", absent, "--state-url", s.StateURL},
		{"--base-url", s.URL, "--state-url", absent + "/_pact/state"},
		{"--base-url", strings.Replace(s.URL, "http:", "https:", 1)},
	} {
		b := newBroker(t, false, good, bad)
		got := pactcheck(t, append(append(slices.Clone(publishing), args...), b.URL)...)
		if got.code != 2 || len(b.Published()) != 0 ||
			!strings.Contains(got.stderr, "there is no service at ") ||
			strings.Contains(got.stdout, "✗") {
			t.Errorf("%q: got %+v and %v published, want 2 and nothing", args, got, b.Published())
		}
	}
}

// TestConnectionThatEnds verifies a service that ends connections: that is a failure of it.
func TestConnectionThatEnds(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer broken.Close()
	b := newBroker(t, false, good)
	got := pactcheck(t, append(slices.Clone(publishing), "--base-url", broken.URL, b.URL)...)
	if got.code != 1 || len(b.Published()) != 1 {
		t.Errorf("got %+v, want a failure that is published", got)
	}
}
