package adminapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// TestGroups creates groups, puts people into them, and takes them out again.
func TestGroups(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	u := st.NewUser(t, "Ada", "ada@example.com")
	o.Do(201, "POST", "/groups", `{"name":"sales"}`).Has(t, "Location", "/admin/v1/groups/sales")
	o.Do(409, "POST", "/groups", `{"name":"sales"}`).Refused(t, "conflict")
	for _, name := range []string{"", "Sales", "a b", strings.Repeat("a", 65), "gatehouse-operators"} {
		o.Do(400, "POST", "/groups", fmt.Sprintf(`{"name":%q}`, name)).Refused(t, "invalid_request", "name")
	}
	member := fmt.Sprintf("/groups/sales/members/%d", u.ID)
	for range 2 { // who is in it stays in it
		o.Do(204, "PUT", member, "")
	}
	o.Do(204, "PUT", fmt.Sprintf("/groups/gatehouse-operators/members/%d", u.ID), "")
	got := o.Do(200, "GET", fmt.Sprintf("/users/%d", u.ID), "").Object(t)
	if want := "[gatehouse-operators sales]"; fmt.Sprint(got["groups"]) != want {
		t.Errorf("got %v, want %s", got["groups"], want)
	}
	if got := string(o.Do(200, "GET", "/groups", "").Body); got != `{"groups":[{"name":"gatehouse-operators",`+
		`"members":1},{"name":"sales","members":1}],"next":""}` {
		t.Errorf("got %s", got)
	}
	if got := string(o.Do(200, "GET", "/groups/sales/members", "").Body); got != fmt.Sprintf(
		`{"users":[{"id":%d,"name":"Ada","email":"ada@example.com","disabled":false}],"next":""}`, u.ID) {
		t.Errorf("got %s", got)
	}
	for range 2 {
		o.Do(204, "DELETE", member, "")
	}
	o.Do(404, "PUT", "/groups/none/members/1", "").Refused(t, "not_found")
	o.Do(404, "PUT", "/groups/sales/members/4711", "").Refused(t, "not_found")
	o.Do(404, "GET", "/groups/none", "").Refused(t, "not_found")
	o.Do(400, "DELETE", "/groups/gatehouse-operators", "").Refused(t, "invalid_request", "name")
	o.Do(400, "PUT", "/groups/gatehouse-operators", "{}").Refused(t, "invalid_request", "name")
	o.Do(204, "PUT", member, "")
	o.Do(204, "DELETE", "/groups/sales", "")
	o.Do(404, "DELETE", "/groups/sales", "").Refused(t, "not_found")
	events := string(o.Do(200, "GET", fmt.Sprintf("/audit?user=%d", u.ID), "").Body)
	for _, action := range []string{"member_added", "member_removed"} {
		if n := strings.Count(events, action); n < 2 {
			t.Errorf("got %d events %s, want 2 or more", n, action)
		}
	}
}

// TestAttributes declares attributes and sets those of a user.
func TestAttributes(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	path := fmt.Sprintf("/users/%d", st.NewUser(t, "Ada", "ada@example.com").ID)
	o.Do(400, "PATCH", path, `{"attributes":{"department":"sales"}}`).Refused(t, "invalid_request", "attributes.department")
	for name, body := range map[string]string{"department": `{}`, "floor": `{"type":"number"}`,
		"remote": `{"type":"boolean","change":"person"}`, "skills": `{"type":"strings"}`} {
		o.Do(200, "PUT", "/attributes/"+name+"?dry_run=true", body)
		o.Do(201, "PUT", "/attributes/"+name, body)
		o.Do(200, "PUT", "/attributes/"+name, body)
	}
	o.Do(400, "PUT", "/attributes/Floor", `{}`).Refused(t, "invalid_request", "name")
	o.Do(400, "PUT", "/attributes/floor", `{"type":"date"}`).Refused(t, "invalid_request", "type")
	o.Do(400, "PUT", "/attributes/floor", `{"change":"anybody"}`).Refused(t, "invalid_request", "change")
	got := o.Do(200, "PATCH", path, `{"attributes":{"department":"sales","floor":3,"remote":true,"skills":["go"]}}`)
	if !strings.Contains(string(got.Body), `"attributes":{"department":"sales","floor":3,"remote":true,"skills":["go"]}`) {
		t.Errorf("got %s", got.Body)
	}
	for _, wrong := range []string{`{"floor":"3"}`, `{"floor":{}}`, `{"remote":"yes"}`, `{"skills":"go"}`,
		`{"skills":[1]}`, `{"skills":[null]}`, `{"department":3}`} {
		o.Do(400, "PATCH", path, `{"attributes":`+wrong+`}`)
	}
	o.Do(400, "PATCH", path, `{"attributes":{"department":"`+strings.Repeat("x", 4<<10)+`"}}`).
		Refused(t, "invalid_request", "attributes")
	got = o.Do(200, "PATCH", path, `{"attributes":{"floor":null},"name":"Ada L."}`)
	if !strings.Contains(string(got.Body), `"attributes":{"department":"sales","remote":true,"skills":["go"]}`) {
		t.Errorf("got %s", got.Body)
	}
	o.Do(201, "PUT", "/claims/department", `{"from":"attributes.department"}`)
	o.Do(400, "DELETE", "/attributes/department", "").Refused(t, "invalid_request", "name")
	o.Do(400, "PUT", "/claims/team", `{"from":"attributes.team"}`).Refused(t, "invalid_request", "from")
	o.Do(400, "PUT", "/claims/team", `{"from":"department"}`).Refused(t, "invalid_request", "from")
	o.Do(400, "PUT", "/claims/team", `{"from":"attributes.department","scope":"view-user"}`).
		Refused(t, "invalid_request", "scope")
	for _, name := range []string{"sub", "Sub", "email", "groups", "scope", "client_id", "roles", "given_name",
		"gatehouse", "nbf", "act", "sid", "username"} {
		o.Do(400, "PUT", "/claims/"+name, `{"from":"attributes.department"}`).Refused(t, "invalid_request", "name")
	}
	o.Do(204, "DELETE", "/claims/department", "")
	o.Do(204, "DELETE", "/attributes/department", "")
}

// TestClaimsFollowTheUser: an opaque token shows groups and attributes as they are, to userinfo and
// introspection, and to unverified clients neither.
func TestClaimsFollowTheUser(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	u := st.NewUser(t, "Ada", "ada@example.com")
	c := st.NewClient(t, func(c *oauth.Client) { c.Scopes = oauth.GrantableScopes })
	access, _ := st.NewToken(t, c, u.ID, oauth.OpenID|oauth.Profile|oauth.Groups)
	few, _ := st.NewToken(t, c, u.ID, oauth.OpenID|oauth.Email)
	info := func(token string) map[string]any {
		return st.Get(t, "/oauth/userinfo", "Authorization", "Bearer "+token).Object(t)
	}
	introspect := func(token string) map[string]any {
		return st.Send(t, "POST", st.URL+"/oauth/introspect", stacktest.Values("token", token, "client_id", c.ID,
			"client_secret", c.Secret).Encode(), "Content-Type", "application/x-www-form-urlencoded").Object(t)
	}
	check := func(step, groups, department string) {
		t.Helper()
		for name, got := range map[string]map[string]any{"userinfo": info(access), "introspection": introspect(access)} {
			if fmt.Sprint(got["groups"]) != groups || fmt.Sprint(got["dept"]) != department {
				t.Errorf("%s, %s: got %v and %v, want %s and %s", step, name, got["groups"], got["dept"], groups, department)
			}
		}
		for name, got := range map[string]map[string]any{"userinfo": info(few), "introspection": introspect(few)} {
			if got["groups"] != nil || got["dept"] != nil {
				t.Errorf("%s, %s: got %v without the scopes", step, name, got)
			}
		}
	}
	check("at first", "<nil>", "<nil>")
	o.Do(201, "POST", "/groups", `{"name":"sales"}`)
	o.Do(204, "PUT", fmt.Sprintf("/groups/sales/members/%d", u.ID), "")
	check("in a group", "[sales]", "<nil>")
	o.Do(201, "PUT", "/attributes/department", `{}`)
	o.Do(200, "PATCH", fmt.Sprintf("/users/%d", u.ID), `{"attributes":{"department":"sales <eu>"}}`)
	check("with an attribute", "[sales]", "<nil>")
	o.Do(201, "PUT", "/claims/dept", `{"from":"attributes.department"}`)
	check("with a claim", "[sales]", "sales <eu>")
	o.Do(200, "PUT", "/attributes/department", `{"type":"number"}`)
	check("with another type", "[sales]", "<nil>")
	o.Do(200, "PUT", "/attributes/department", `{}`)
	o.Do(200, "PUT", "/claims/dept", `{"from":"attributes.department","scope":"phone"}`)
	check("with another scope", "[sales]", "<nil>")
	o.Do(200, "PUT", "/claims/dept", `{"from":"attributes.department","scope":"groups"}`)
	check("with the scope groups", "[sales]", "sales <eu>")
	o.Do(204, "DELETE", fmt.Sprintf("/groups/sales/members/%d", u.ID), "")
	check("out of the group", "<nil>", "sales <eu>")
	for i := range 201 {
		o.Do(201, "POST", "/groups", fmt.Sprintf(`{"name":"g%d"}`, i))
		o.Do(204, "PUT", fmt.Sprintf("/groups/g%d/members/%d", i, u.ID), "")
	}
	if got := info(access); got["groups"] != nil || got["groups_truncated"] != true {
		t.Errorf("201 groups: got %v, want groups_truncated", got)
	}
	if got := introspect(access); got["groups"] != nil || got["groups_truncated"] != nil {
		t.Errorf("201 groups: got %v, want no groups", got)
	}
	o.Do(204, "DELETE", "/groups/g0", "")
	if got, _ := info(access)["groups"].([]any); len(got) != 200 || !slices.Contains(got, any("g200")) {
		t.Errorf("200 groups: got %v", got)
	}
}

// TestUnverifiedClientsGetNoGroups: those that registered themselves get groups and declared claims
// only when an operator has verified them.
func TestUnverifiedClientsGetNoGroups(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	u := st.NewUser(t, "Ada", "ada@example.com")
	c := st.NewClient(t, func(c *oauth.Client) {
		c.Scopes, c.Options.SelfRegistered = oauth.GrantableScopes, true
	})
	o.Do(201, "POST", "/groups", `{"name":"sales"}`)
	o.Do(204, "PUT", fmt.Sprintf("/groups/sales/members/%d", u.ID), "")
	access, _ := st.NewToken(t, c, u.ID, oauth.OpenID|oauth.Groups)
	for step, want := range map[string]string{"unverify": "<nil>", "verify": "[sales]"} {
		o.Do(200, "POST", "/clients/"+c.ID+"/"+step, "")
		got := st.Get(t, "/oauth/userinfo", "Authorization", "Bearer "+access).Object(t)["groups"]
		if fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want %s", step, got, want)
		}
	}
}

// TestLeavingAGroupEndsAccess: tokens of a client that needs a group end when the person leaves it,
// unless the person is in another one that will do.
func TestLeavingAGroupEndsAccess(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	u := st.NewUser(t, "Ada", "ada@example.com")
	for _, name := range []string{"sales", "staff"} {
		o.Do(201, "POST", "/groups", `{"name":"`+name+`"}`)
		o.Do(204, "PUT", fmt.Sprintf("/groups/%s/members/%d", name, u.ID), "")
	}
	c := st.NewClient(t, func(c *oauth.Client) { c.Options.RequireGroups = []string{"sales", "staff"} })
	free := st.NewClient(t, nil)
	access, refresh := st.NewToken(t, c, u.ID, oauth.ViewUser)
	other, _ := st.NewToken(t, free, u.ID, oauth.ViewUser)
	profile := func(step, token string, want int) {
		t.Helper()
		if got := st.Get(t, "/api/user", "Authorization", "Bearer "+token).Status; got != want {
			t.Errorf("%s: got %d, want %d", step, got, want)
		}
	}
	profile("in both", access, 200)
	o.Do(204, "DELETE", fmt.Sprintf("/groups/staff/members/%d", u.ID), "")
	profile("in one", access, 200)
	o.Do(204, "DELETE", "/groups/sales", "")
	profile("in none", access, 401)
	profile("a client for all", other, 200)
	o.Do(204, "PUT", fmt.Sprintf("/groups/staff/members/%d", u.ID), "")
	profile("again in one", access, 401)
	got := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id", c.ID,
		"client_secret", c.Secret, "refresh_token", refresh)).Object(t)["error"]
	if got != "invalid_grant" {
		t.Errorf("refresh: got %v, want invalid_grant", got)
	}
	// A client that gets its groups later refuses the refresh of who is in none.
	_, refresh = st.NewToken(t, free, u.ID, oauth.ViewUser)
	o.Do(200, "PATCH", "/clients/"+free.ID, `{"require_groups":["sales"]}`)
	got = st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id", free.ID,
		"client_secret", free.Secret, "refresh_token", refresh)).Object(t)["error"]
	if got != "invalid_grant" {
		t.Errorf("refresh of an outsider: got %v, want invalid_grant", got)
	}
	o.Do(400, "PATCH", "/clients/"+free.ID, `{"require_groups":["No Group"]}`).
		Refused(t, "invalid_request", "require_groups")
}
