//go:build pact

package verify_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/gatehouse/ascode"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
	"gatehouse/contracts/report"
	"gatehouse/contracts/verify"
)

// TestCommittedPactsOfExportedClients verifies the pacts with clients that one server has exported
// and another, an empty one, has applied: they get the same responses.
func TestCommittedPactsOfExportedClients(t *testing.T) {
	from, to := stacktest.NewIdentity(t), stacktest.NewIdentity(t)
	exporter, applier := from.NewOperator(t), to.NewOperator(t)
	file, clients := filepath.Join(t.TempDir(), "export.yaml"), 0
	moved := func(ctx context.Context, c *oauth.Client) (*oauth.Client, error) {
		path := "/clients/" + c.ID
		if err := from.Store.CreateClient(ctx, c); err != nil {
			return nil, err
		}
		var record ascode.Record
		err := json.Unmarshal([]byte(exporter.Do(http.StatusOK, "GET", path, "").Body), &record)
		if err != nil {
			return nil, err
		}
		exporter.Do(http.StatusNoContent, "DELETE", path, "")
		text, err := ascode.Write(map[string][]ascode.Record{"clients": {record}})
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, err
		}
		sets, err := ascode.Read(file, nil, ascode.Secrets{})
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(sets[0].Objects[0].Body)
		if err != nil {
			return nil, err
		}
		applier.Do(http.StatusCreated, "PUT", path, string(body))
		applied, err := to.Store.Client(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		applier.Do(http.StatusNoContent, "DELETE", path, "")
		applied.Version = 0
		clients++
		return applied, nil
	}
	provider, err := contracts.Start(contracts.Config{Client: moved})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, pact := range gatehousePacts(t) {
		// An export leaves out what records say of their past: ids of secrets, who registered them.
		// Lookups have no clients.
		pact.Interactions = slices.DeleteFunc(slices.Clone(pact.Interactions),
			func(i contracts.Interaction) bool {
				return strings.HasPrefix(i.Path, "/admin/") || pact.Consumer == "bulk-lookup-client"
			})
		for _, i := range verifyWith(t, verify.New, verify.Of(provider), pact, false) {
			if i.Result != report.Verified {
				t.Errorf("%s: got %+v, want it verified", i.Description, i.Problems)
			}
		}
	}
	if clients == 0 {
		t.Error("got no client moved, want those of the states")
	}
}
