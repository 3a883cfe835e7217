//go:build pact

package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/pact-foundation/pact-go/v2/models"
	"github.com/pact-foundation/pact-go/v2/provider"

	"gatehouse/contracts/pacttest"
	"gatehouse/providers/sim"
)

const pactFile = "../pacts/gatehouse-ip-api.json"

// TestSimulatorFulfilsThePact verifies the simulator with what the client relies on.
func TestSimulatorFulfilsThePact(t *testing.T) {
	s := startSimulator(t)
	handlers := s.handlers(t)
	for _, name := range stateNames(t) {
		if handlers[name] == nil {
			t.Fatalf("got the state %q in %s, without a handler", name, pactFile)
		}
	}
	err := provider.NewVerifier().VerifyProvider(t, provider.VerifyRequest{
		Provider: "ip-api", ProviderBaseURL: s.base, PactFiles: []string{pactFile},
		FailIfNoPactsFound: true,
		StateHandlers:      handlers, DisableColoredOutput: true,
	})
	if err != nil {
		t.Error(err)
	}
}

// stateNames returns the provider states of the pact. The verifier only warns about unknown ones.
func stateNames(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(pactFile)
	pacttest.Must(t, err)
	var pact struct {
		Interactions []struct {
			ProviderStates []struct{ Name string }
		}
	}
	pacttest.Must(t, json.Unmarshal(content, &pact))
	var names []string
	for _, i := range pact.Interactions {
		for _, s := range i.ProviderStates {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("got no states in %s, want some", pactFile)
	}
	return names
}

// simulator is a running simulator. Its states are set through its admin interface.
type simulator struct{ base string }

func startSimulator(t *testing.T) *simulator {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	pacttest.Must(t, err)
	server := sim.New(sim.Config{Key: key})
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Errorf("got %v, want the simulator to stop", err)
		}
		if err := <-served; err != nil {
			t.Errorf("got %v, want the simulator to end in order", err)
		}
	})
	return &simulator{"http://" + ln.Addr().String()}
}

// handlers returns functions that set up the states of the pact, and reset the simulator
// afterwards.
func (s *simulator) handlers(t *testing.T) models.StateHandlers {
	state := func(setUp func(models.ProviderState) error) models.StateHandler {
		return func(starts bool, state models.ProviderState) (models.ProviderStateResponse, error) {
			if !starts {
				return nil, s.send(t, http.MethodPost, "/_sim/reset", nil, http.StatusOK)
			}
			return nil, setUp(state)
		}
	}
	settings := func(changed string) func(models.ProviderState) error {
		return func(models.ProviderState) error {
			return s.send(t, http.MethodPut, "/_sim", []byte(changed), http.StatusOK)
		}
	}
	return models.StateHandlers{
		"":             state(func(models.ProviderState) error { return nil }),
		freeTier:       state(settings(`{"tier":"free"}`)),
		commercialTier: state(settings(`{"tier":"pro"}`)),
		usedUp: state(func(models.ProviderState) error {
			if err := s.send(t, http.MethodPut, "/_sim",
				[]byte(`{"tier":"free","singles_per_window":1,"batches_per_window":1}`),
				http.StatusOK); err != nil {
				return err
			}
			if err := s.send(t, http.MethodGet, "/json/9.9.9.9", nil, http.StatusOK); err != nil {
				return err
			}
			return s.send(t, http.MethodPost, "/batch", []byte(`["9.9.9.9"]`), http.StatusOK)
		}),
		failing: state(func(state models.ProviderState) error {
			parameters := state.Parameters
			if nested, ok := parameters["params"].(map[string]any); ok {
				parameters = nested
			}
			changed := fmt.Appendf(nil, `{"faults":[{"kind":"status","status":%v}]}`,
				parameters["status"])
			return s.send(t, http.MethodPut, "/_sim", changed, http.StatusOK)
		}),
	}
}

// send sends a request to the simulator. Another status than want is an error.
func (s *simulator) send(t *testing.T, method, path string, body []byte, want int) error {
	request, err := http.NewRequestWithContext(t.Context(), method, s.base+path,
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		return fmt.Errorf("%s %s: got status %d, want %d", method, path, response.StatusCode, want)
	}
	return nil
}
