//go:build programs

package programs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// conformanceChecks are the checks of the suite for authorization servers. A release that brings more
// fails the test, so that somebody reads what they are.
var conformanceChecks = []string{
	"authorization-server-metadata", "authorization-server-metadata-cimd", "authorization-code-grant",
}

// TestConformance runs the checks for authorization servers of the Model Context Protocol's own suite,
// with and without a resource. The suite waits for a person, who signs in and consents.
func TestConformance(t *testing.T) {
	for _, resource := range []string{"", "https://tasks.example/mcp"} {
		t.Run(resource, func(t *testing.T) {
			st := stacktest.NewIdentity(t, func(c *stack.Config) {
				c.Identity.ClientMetadata, c.Identity.Registration = true, oauth.RegistrationOpen
			})
			u := st.NewUser(t, "Rosa", "rosa@example.com")
			st.NewOperator(t).Do(201, "POST", "/resources", `{"uri":"https://tasks.example/mcp"}`)
			port, results := freePort(t), t.TempDir()
			back := fmt.Sprintf("http://127.0.0.1:%d/callback", port)
			c := st.NewClient(t, func(c *oauth.Client) { c.Public, c.RedirectURIs = true, []string{back} })
			command := []string{"conformance.mjs", "authorization",
				"--url", st.URL, "--client-id", c.ID, "--port", strconv.Itoa(port), "--output-dir", results}
			if resource != "" {
				command = append(command, "--resource", resource)
			}
			suite := exec.Command("node", command...)
			suite.Dir = "apps"
			printed := start(t, "Waiting up to", suite)
			b := st.NewBrowser(t)
			login := b.Get("/oauth/authorize?" + between(printed.String(), "/oauth/authorize?", "\n"))
			consent := b.Send(login, "email", u.Email, "password", stacktest.Password)
			response, err := http.Get(b.Send(consent, "decision", "allow").Location)
			stacktest.Must(t, err)
			response.Body.Close()
			for begin := time.Now(); !strings.Contains(printed.String(), "Total:"); time.Sleep(10 * time.Millisecond) {
				if time.Since(begin) > timeout {
					t.Fatal("the suite does not end")
				}
			}
			passed := map[string]string{}
			files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
			stacktest.Must(t, err)
			for _, file := range files {
				var checks []struct{ ID, Status, ErrorMessage string }
				text, err := os.ReadFile(file)
				if err == nil {
					err = json.Unmarshal(text, &checks)
				}
				stacktest.Must(t, err)
				for _, check := range checks {
					passed[check.ID] = check.Status
					if check.Status != "SUCCESS" {
						t.Errorf("%s: got %s, %s", check.ID, check.Status, check.ErrorMessage)
					}
				}
			}
			for _, id := range conformanceChecks {
				if passed[id] == "" {
					t.Errorf("got no check %s", id)
				}
				delete(passed, id)
			}
			if len(passed) > 0 {
				t.Errorf("got the new checks %v, want them in conformanceChecks", passed)
			}
		})
	}
}
