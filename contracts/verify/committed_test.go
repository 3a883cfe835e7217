//go:build pact

package verify_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/pact-foundation/pact-go/v2/models"
	"github.com/pact-foundation/pact-go/v2/provider"

	"gatehouse/contracts"
	"gatehouse/contracts/coverage"
)

// gatehousePacts returns the committed pacts with the provider gatehouse.
func gatehousePacts(t *testing.T) []*contracts.Pact {
	t.Helper()
	files, err := filepath.Glob("../pacts/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []*contracts.Pact
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := contracts.ReadPact(data, file)
		if err != nil {
			t.Fatal(err)
		}
		if p.Provider == "gatehouse" {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		t.Fatal("got no pacts, want those of two consumers")
	}
	return all
}

// TestCommittedPacts uses the verifier of pact-go, as the team of a provider would. It checks the
// relations between members on every response.
func TestCommittedPacts(t *testing.T) {
	var checked atomic.Int64
	p, err := contracts.Start(contracts.Config{Wrap: func(service http.Handler) http.Handler {
		return coverage.Checked(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			checked.Add(1)
			service.ServeHTTP(w, r)
		}), func(err error) { t.Error(err) })
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	interactions := 0
	for _, pact := range gatehousePacts(t) {
		interactions += len(pact.Interactions)
		t.Run(pact.Consumer, func(t *testing.T) {
			if err := pact.Check(); err != nil {
				t.Fatal(err)
			}
			prepared, err := pact.Prepared()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "pact.json")
			if err := os.WriteFile(file, prepared, 0o600); err != nil {
				t.Fatal(err)
			}
			err = provider.NewVerifier().VerifyProvider(t, provider.VerifyRequest{
				Provider: pact.Provider, ProviderBaseURL: p.URL(), PactFiles: []string{file},
				FailIfNoPactsFound: true,
				StateHandlers:      handlers(t, p), DisableColoredOutput: true,
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	if got := checked.Load(); got < int64(interactions) {
		t.Errorf("got %d responses checked, want those of %d interactions", got, interactions)
	}
}

// handlers returns the catalogue for pact-go.
func handlers(t *testing.T, p *contracts.Provider) models.StateHandlers {
	all := models.StateHandlers{}
	for _, s := range contracts.Catalogue() {
		all[s.Name] = func(setUp bool, state models.ProviderState) (models.ProviderStateResponse,
			error) {
			if !setUp {
				return nil, p.TearDown(t.Context())
			}
			values, err := p.SetUp(t.Context(), state.Name, state.Parameters)
			if err != nil {
				err = errors.Join(errors.New("state "+state.Name), err)
				t.Error(err)
			}
			return values, err
		}
	}
	return all
}
