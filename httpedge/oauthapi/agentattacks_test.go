package oauthapi_test

import (
	"net/url"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// TestAttacksOnAgents has one agent use what another one got, and agents ask for what they did not get.
func TestAttacksOnAgents(t *testing.T) {
	r := newReplay(t)
	r.st.NewOperator(t).Do(201, "POST", "/resources", `{"uri":"https://mail.example/mcp","scopes":["mail"]}`)
	r.agent.Authorize = "response_type"
	const web, scheme, mail = "https://a.example/cb", "cursor://anysphere.cursor-mcp/oauth/callback", "https://mail.example/mcp"
	sent := map[string]any{"redirect_uris": []any{web, scheme}, "grant_types": []any{"authorization_code", "refresh_token"}}
	mine, _, _ := r.registered(t, sent)
	other, _, _ := r.registered(t, sent)
	redeem := func(id, code, resource string) stacktest.Response {
		return r.posted(t, "", "none", id, "", stacktest.Values("grant_type", "authorization_code", "code", code,
			"redirect_uri", web, "code_verifier", stacktest.Verifier, "resource", resource))
	}
	refresh := func(id string, token any, more ...string) stacktest.Response {
		return r.posted(t, "", "none", id, "", stacktest.Values(append([]string{"grant_type", "refresh_token",
			"refresh_token", token.(string)}, more...)...))
	}
	asked := r.asked(mine, web)
	asked.Set("scope", "mcp-access")
	code := r.answered(t, asked, "allow").Get("code")
	redeem(other, code, agentsAPI).FailsAs(t, 400, "invalid_grant")
	redeem(mine, code, mail).FailsAs(t, 400, "invalid_target")
	redeem(mine, code, r.st.URL).FailsAs(t, 400, "invalid_target")
	tokens := redeem(mine, code, agentsAPI).Object(t)
	token := tokens["refresh_token"]
	refresh(other, token).FailsAs(t, 400, "invalid_grant")
	for _, resource := range []string{mail, r.st.URL, agentsAPI + "/", agentsAPI + "#x", agentsAPI + "?",
		"https://mcp.example/MCP", "https://mcp.example/%6dcp", "https://mcp.example./mcp",
		"https://a@mcp.example/mcp", "https://mcp.example:8443/mcp", "mcp.example/mcp", "x"} {
		refresh(mine, token, "resource", resource).FailsAs(t, 400, "invalid_target")
	}
	for _, resource := range []string{"HTTPS://mcp.EXAMPLE/mcp", "https://mcp.example:443/mcp"} { // the same
		tokens = refresh(mine, token, "resource", resource, "scope", "mcp-access mail view-user offline_access").Object(t)
		token = tokens["refresh_token"]
		said := r.st.Introspect(t, r.api, tokens["access_token"])
		if audience(said) != `["`+agentsAPI+`"]` || said["scope"] != "mcp-access" {
			t.Errorf("%s: got %v, want the audience and the scope of the grant", resource, said)
		}
	}
	for _, q := range []url.Values{r.asked(other, web), r.asked(mine, scheme)} { // the person does not see it
		q.Set("prompt", "none")
		if p := r.b.Authorize(q); strings.Contains(p.Location, "code=") {
			t.Errorf("got %s without the person", p.Location)
		}
	}
	for _, redirect := range []string{"https://a.example/cb/", "https://a.example/cb?x", "https://A.example/cb",
		"https://a.example:443/cb", "https://a.example/x/../cb", "cursor://anysphere.cursor-mcp/oauth/callback/",
		"Cursor://anysphere.cursor-mcp/oauth/callback", "http://127.0.0.1/cb", web + "&" + scheme} {
		if p := r.b.Authorize(r.asked(mine, redirect)); p.Status != 400 || p.Location != "" {
			t.Errorf("%s: got %d to %q, want a page", redirect, p.Status, p.Location)
		}
	}
	repeated := r.asked(mine, web)
	repeated.Add("redirect_uri", "https://evil.example/cb")
	if p := r.b.Authorize(repeated); p.Status != 400 || p.Location != "" {
		t.Errorf("got %d to %q for two redirect URIs, want a page", p.Status, p.Location)
	}
}
