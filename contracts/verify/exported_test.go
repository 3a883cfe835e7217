//go:build pact

package verify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/gatehouse/ascode"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
	"gatehouse/contracts/report"
	"gatehouse/contracts/verify"
)

// TestCommittedPactsOfExportedClients verifies the pacts with clients that one server has exported
// and another, an empty one, has applied. The clients are the same, so an interaction whose states
// earlier ones had gets the same response.
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
		return applied, sameClient(c, applied)
	}
	provider, err := contracts.Start(contracts.Config{Client: moved})
	stacktest.Must(t, err)
	defer func() {
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	}()
	seen := map[string]bool{}
	for _, pact := range gatehousePacts(t) {
		// Lookups have no clients.
		pact.Interactions = slices.DeleteFunc(slices.Clone(pact.Interactions),
			func(i contracts.Interaction) bool {
				if strings.HasPrefix(i.Path, "/admin/") || pact.Consumer == "bulk-lookup-client" {
					return true
				}
				fresh := false
				for _, state := range i.States {
					use := fmt.Sprint(state.Name, state.Parameters)
					fresh, seen[use] = fresh || !seen[use], true
				}
				return !fresh
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

// sameClient returns an error unless the clients differ in nothing but what an export leaves out, times
// and ids of secrets; the set, which apply names; and the order of members in keys, which assertions
// show.
func sameClient(stored, applied *oauth.Client) error {
	var texts [2]string
	for i, c := range []oauth.Client{*stored, *applied} {
		c.Created, c.Version, c.Epoch, c.Secrets = time.Time{}, 0, 0, slices.Clone(c.Secrets)
		c.Options.Set, c.Options.JWKS = "", ""
		for i := range c.Secrets {
			c.Secrets[i].ID, c.Secrets[i].Created = "", time.Time{}
		}
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		return fmt.Errorf("got the client %s, want %s", texts[1], texts[0])
	}
	return nil
}
