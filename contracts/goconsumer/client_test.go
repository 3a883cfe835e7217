package greeter

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/pact-foundation/pact-go/v2/consumer"
	"github.com/pact-foundation/pact-go/v2/matchers"
	"github.com/pact-foundation/pact-go/v2/models"
)

func TestMain(m *testing.M) {
	if err := os.RemoveAll("pacts"); err != nil { // a test adds to an existing pact
		panic(err)
	}
	os.Exit(m.Run())
}

func newPact(t *testing.T) *consumer.V4HTTPMockProvider {
	t.Helper()
	pact, err := consumer.NewV4Pact(consumer.MockHTTPProviderConfig{Consumer: "greeter",
		Provider: "gatehouse", PactDir: "pacts"})
	if err != nil {
		t.Fatal(err)
	}
	return pact
}

func state(name string, parameters map[string]any) models.ProviderState {
	return models.ProviderState{Name: name, Parameters: parameters}
}

func client(server consumer.MockServerConfig) *Client {
	return &Client{Base: fmt.Sprintf("http://%s:%d", server.Host, server.Port)}
}

// During verification, the value of the state "an access token" replaces the example.
var bearer = matchers.FromProviderState("Bearer ${access_token}", "Bearer gtat_example")

var isJSON = matchers.Regex("application/json", "^application/json.*") // a charset may follow

func TestProfile(t *testing.T) {
	err := newPact(t).AddInteraction().
		GivenWithParameter(state("a user", map[string]any{"name": "Ada Lovelace"})).
		GivenWithParameter(state("an access token", nil)).
		UponReceiving("a request for a profile").
		WithRequest("GET", "/api/user", func(b *consumer.V4RequestBuilder) {
			b.Header("Authorization", bearer).Header("Accept", matchers.S("application/json"))
		}).
		WillRespondWith(200, func(b *consumer.V4ResponseBuilder) {
			b.Header("Content-Type", isJSON).JSONBody(map[string]any{"name": "Ada Lovelace",
				"email": matchers.Like("ada@mail.example")})
		}).
		ExecuteTest(t, func(server consumer.MockServerConfig) error {
			got, err := client(server).Profile(t.Context(), "gtat_example")
			if err == nil && got.Name != "Ada Lovelace" {
				t.Errorf("got %+v, want Ada Lovelace", got)
			}
			return err
		})
	if err != nil {
		t.Error(err)
	}
}

func TestExpiredToken(t *testing.T) {
	err := newPact(t).AddInteraction().
		GivenWithParameter(state("an access token", map[string]any{"kind": "expired"})).
		UponReceiving("a request for a profile with an expired token").
		WithRequest("GET", "/api/user", func(b *consumer.V4RequestBuilder) {
			b.Header("Authorization", bearer).Header("Accept", matchers.S("application/json"))
		}).
		WillRespondWith(401, func(b *consumer.V4ResponseBuilder) {
			b.Header("Content-Type", isJSON).JSONBody(map[string]any{"error": "token_expired",
				"message": matchers.Like("It has expired.")})
		}).
		ExecuteTest(t, func(server consumer.MockServerConfig) error {
			_, err := client(server).Profile(t.Context(), "gtat_example")
			if failure := new(Error); !errors.As(err, &failure) || failure.Code != "token_expired" {
				t.Errorf("got %v, want token_expired", err)
			}
			return nil
		})
	if err != nil {
		t.Error(err)
	}
}

func TestLookup(t *testing.T) {
	err := newPact(t).AddInteraction().
		GivenWithParameter(state("the upstream knows a query", map[string]any{"query": "8.8.8.8"})).
		UponReceiving("a lookup").
		WithRequest("GET", "/api/lookup", func(b *consumer.V4RequestBuilder) {
			b.Query("q", matchers.S("8.8.8.8")).Header("Accept", matchers.S("application/json"))
		}).
		WillRespondWith(200, func(b *consumer.V4ResponseBuilder) {
			b.Header("Content-Type", isJSON).JSONBody(map[string]any{"ok": true,
				"location": map[string]any{"country": matchers.Like("United States"),
					"lat": number(39.03), "lon": number(-77.5)}})
		}).
		ExecuteTest(t, func(server consumer.MockServerConfig) error {
			got, err := client(server).Lookup(t.Context(), "8.8.8.8")
			if err == nil && got.Location.Country != "United States" {
				t.Errorf("got %+v, want the United States", got)
			}
			return err
		})
	if err != nil {
		t.Error(err)
	}
}

// number matches 39 as well as 39.03. matchers.Decimal matches only the latter.
func number(example float64) any {
	return map[string]any{"pact:matcher:type": "number", "value": example}
}

func TestPrivateAddress(t *testing.T) {
	err := newPact(t).AddInteraction().
		UponReceiving("a lookup of a private address").
		WithRequest("GET", "/api/lookup", func(b *consumer.V4RequestBuilder) {
			b.Query("q", matchers.S("10.0.0.1")).Header("Accept", matchers.S("application/json"))
		}).
		WillRespondWith(400, func(b *consumer.V4ResponseBuilder) {
			b.Header("Content-Type", isJSON).JSONBody(map[string]any{"error": "invalid_query",
				"reason": "private_range", "message": matchers.Like("Try another.")})
		}).
		ExecuteTest(t, func(server consumer.MockServerConfig) error {
			_, err := client(server).Lookup(t.Context(), "10.0.0.1")
			if failure := new(Error); !errors.As(err, &failure) ||
				failure.Reason != "private_range" {
				t.Errorf("got %v, want private_range", err)
			}
			return nil
		})
	if err != nil {
		t.Error(err)
	}
}
