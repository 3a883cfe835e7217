//go:build pact

package verify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pact-foundation/pact-go/v2/models"
	"github.com/pact-foundation/pact-go/v2/provider"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
	"gatehouse/contracts/coverage"
)

// gatehousePacts returns the committed pacts with the provider gatehouse.
func gatehousePacts(t *testing.T) []*contracts.Pact {
	t.Helper()
	files, err := filepath.Glob("../pacts/*.json")
	stacktest.Must(t, err)
	var all []*contracts.Pact
	for _, file := range files {
		data, err := os.ReadFile(file)
		stacktest.Must(t, err)
		p, err := contracts.ReadPact(data, file)
		stacktest.Must(t, err)
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
func TestCommittedPacts(t *testing.T) { verifyCommitted(t, nil, 1) }

// verifyCommitted verifies every interaction of each pact whose number every divides.
func verifyCommitted(t *testing.T, cluster *contracts.Cluster, every int) {
	t.Helper()
	var checked atomic.Int64
	var p *contracts.Provider
	var err error
	wrap := func(service http.Handler) http.Handler {
		return coverage.Checked(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			checked.Add(1)
			service.ServeHTTP(w, r)
		}), func() map[string]any { return p.Values() }, func(err error) { t.Error(err) })
	}
	p, err = contracts.Start(contracts.Config{Wrap: wrap, Cluster: cluster})
	stacktest.Must(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	interactions := 0
	for _, pact := range gatehousePacts(t) {
		t.Run(pact.Consumer, func(t *testing.T) {
			stacktest.Must(t, pact.Check())
			prepared, err := pact.Prepared()
			stacktest.Must(t, err)
			prepared, n := some(t, prepared, every)
			interactions += n
			file := filepath.Join(t.TempDir(), "pact.json")
			stacktest.Must(t, os.WriteFile(file, prepared, 0o600))
			err = provider.NewVerifier().VerifyProvider(t, provider.VerifyRequest{
				Provider: pact.Provider, ProviderBaseURL: p.URL(), PactFiles: []string{file},
				FailIfNoPactsFound: true, RequestTimeout: time.Minute,
				StateHandlers: handlers(t, p), DisableColoredOutput: true,
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

// some returns a pact without the interactions whose number every does not divide, and how many it
// has. Of those of the admin API, which TestMutants verifies with our own engine, it
// has one of twenty.
func some(t *testing.T, pact []byte, every int) ([]byte, int) {
	t.Helper()
	var members map[string]json.RawMessage
	var all, kept []json.RawMessage
	err := json.Unmarshal(pact, &members)
	err = errors.Join(err, json.Unmarshal(members["interactions"], &all))
	for i, one := range all {
		n := every
		if bytes.Contains(one, []byte(`"path":"/admin/`)) {
			n *= 20
		}
		if i%n == 0 {
			kept = append(kept, one)
		}
	}
	interactions, failed := json.Marshal(kept)
	members["interactions"] = interactions
	text, err2 := json.Marshal(members)
	if err = errors.Join(err, failed, err2); err != nil {
		t.Fatal(err)
	}
	return text, len(kept)
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
