package adminapi_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// A client's name cannot look like that of another. A client that has such a name already can
// still be disabled and changed.
func TestClientNamesAreVisible(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	const body = `{"name":"%s","redirect_uris":["https://a.example/"]}`
	for name, ok := range map[string]bool{
		"Shop": true, "Mağaza": true, "می\u200cخواهم": true, "👩\u200d💻": true, "متجر": true,
		"Shop\u202epohs": false, "Sh\u2066op": false, "Sh\u200bop": false, "\u200eShop": false,
		"\ufeffShop": false, "Sh\u00adop": false, "\u3164": false, "Shop\U000e0041": false,
		"Shop\u2028": false, "Shop\u115f": false,
	} {
		if ok {
			o.Do(201, "POST", "/clients", fmt.Sprintf(body, name))
			continue
		}
		o.Do(400, "POST", "/clients", fmt.Sprintf(body, name)).Refused(t, "invalid_request",
			"name")
		c := st.NewClient(t, func(c *oauth.Client) { c.Name = name })
		o.Do(200, "POST", "/clients/"+c.ID+"/disable", "")
		o.Do(200, "PATCH", "/clients/"+c.ID, `{"client_uri":"https://a.example/"}`)
		o.Do(400, "PATCH", "/clients/"+c.ID, `{"name":"`+name+`2"}`).Refused(t,
			"invalid_request", "name")
		o.Do(200, "PATCH", "/clients/"+c.ID, `{"name":"Shop"}`)
	}
}

func TestAdminAPIIsForOperators(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c, u := st.NewClient(t, nil), st.NewUser(t, "Ada", "ada@example.com")
	users, _ := st.NewToken(t, c, u.ID, oauth.UserScopes)
	api := st.NewClient(t, func(c *oauth.Client) { c.IntrospectAny = true })
	own, _ := st.PostToken(t, stacktest.Values(api.Credentials()...)).Object(t)["access_token"].(string)
	paths := []string{"GET /clients", "POST /clients", "GET /clients/" + c.ID,
		"DELETE /clients/" + c.ID, "POST /clients/" + c.ID + "/approve",
		"POST /clients/" + c.ID + "/secrets", "GET /users", "POST /users", "PATCH /users/1",
		"DELETE /users/1", "POST /users/1/reset-password", "GET /keys", "POST /keys/rotate"}
	for _, row := range paths {
		method, path, _ := strings.Cut(row, " ")
		for _, test := range []struct {
			name, authorization string
			status              int
			challenge           string
		}{
			{"no token", "", 401, `Bearer realm="gatehouse"`},
			{"garbage", "Bearer garbage", 401, `error="invalid_token"`},
			{"client credentials", stacktest.Basic(c.ID, c.Secret), 401, `Bearer realm="gatehouse"`},
			{"a user's token", "Bearer " + users, 403, `scope="server-operations"`},
			{"a resource server's token", "Bearer " + own, 403, `scope="server-operations"`},
		} {
			a := st.Send(t, method, st.AdminURL+"/admin/v1"+path, `{"name":"x"}`,
				"Authorization", test.authorization, "Content-Type", "application/json")
			if a.Status != test.status ||
				!strings.Contains(a.Header.Get("WWW-Authenticate"), test.challenge) {
				t.Errorf("%s with %s: got %d %s %s, want %d and %s", row, test.name, a.Status,
					a.Body, a.Header.Get("WWW-Authenticate"), test.status, test.challenge)
			}
		}
	}
	o := st.NewOperator(t)
	for _, path := range []string{"/admin/v1/clients", "/metrics"} {
		if a := st.Get(t, path, "Authorization", "Bearer "+o.Token); a.Status != 404 {
			t.Errorf("got %d for %s on the public listener, want 404", a.Status, path)
		}
	}
	o.Do(200, "GET", "/clients/"+c.ID, "")
	for range 200 { // no rate window
		o.Do(200, "GET", "/users/1", "")
	}
	a := st.Send(t, "PUT", st.AdminURL+"/admin/v1/clients", "")
	if a.Status != 405 || a.Header.Get("Allow") != "GET, HEAD, POST, OPTIONS" {
		t.Errorf("got %d and Allow %q, want 405 and GET, HEAD, POST, OPTIONS", a.Status,
			a.Header.Get("Allow"))
	}
}

func TestOperatorManagesClients(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	o := st.NewOperator(t)
	a := o.Do(201, "POST", "/clients",
		`{"name":"Shop","redirect_uris":["https://shop.example/back"],"scopes":["view-user","detail-user"],"grants":["authorization_code","client_credentials"]}`)
	made := a.Object(t)
	id, first := made["client_id"].(string), made["client_secret"].(string)
	a.Has(t, "Location", "/admin/v1/clients/"+id)
	works := func(secret string) bool {
		return st.PostToken(t, stacktest.Values("grant_type", "client_credentials", "client_id", id,
			"client_secret", secret)).Status == 200
	}
	if !works(first) || works("gtcs_wrong") {
		t.Error("got a secret that does not work, or a wrong one that does")
	}
	if got := o.Do(200, "GET", "/clients/"+id, "").Body; strings.Contains(got, "client_secret") ||
		strings.Contains(got, first) {
		t.Errorf("got %s, want no secret in it", got)
	}

	rotated := o.Do(201, "POST", "/clients/"+id+"/secrets", "").Object(t)
	second := rotated["client_secret"].(string)
	if !works(first) || !works(second) {
		t.Error("got a secret refused after a rotation, want both to work")
	}
	o.Do(409, "POST", "/clients/"+id+"/secrets", "").Refused(t, "conflict")
	secrets := o.Do(200, "GET", "/clients/"+id, "").Object(t)["secrets"].([]any)
	older := secrets[0].(map[string]any)["id"].(string)
	if len(secrets) != 2 || secrets[1].(map[string]any)["id"] != rotated["secret_id"] {
		t.Errorf("got secrets %v, want the new one last", secrets)
	}
	o.Do(404, "DELETE", "/clients/"+id+"/secrets/nothing1", "")
	o.Do(200, "DELETE", "/clients/"+id+"/secrets/"+older, "")
	if works(first) || !works(second) {
		t.Error("got the older secret accepted or the newer refused after a revocation")
	}
	o.Do(409, "DELETE", "/clients/"+id+"/secrets/"+rotated["secret_id"].(string), "").Refused(t,
		"conflict")

	o.Do(200, "PATCH", "/clients/"+id,
		`{"name":"The Shop","redirect_uris":["https://shop.example/b","https://shop.example/c"]}`)
	got := o.Do(200, "GET", "/clients/"+id, "").Object(t)
	if got["name"] != "The Shop" ||
		fmt.Sprint(got["redirect_uris"]) != "[https://shop.example/b https://shop.example/c]" ||
		fmt.Sprint(got["scopes"]) != "[view-user detail-user]" {
		t.Errorf("got %v, want the changes and the rest as before", got)
	}
	if got["tokens_per_minute"] != 0.0 {
		t.Errorf("got quota %v, want none", got["tokens_per_minute"])
	}
	for _, quota := range []float64{1_000_000, 7, 0} {
		got := o.Do(200, "PATCH", "/clients/"+id, fmt.Sprintf(`{"tokens_per_minute":%.0f}`, quota))
		if got.Object(t)["tokens_per_minute"] != quota {
			t.Errorf("got %s, want quota %.0f", got.Body, quota)
		}
	}
	for _, change := range [][2]string{{`"https://shop.example/about"`,
		"https://shop.example/about"}, {`""`, "<nil>"},
		{`"http://localhost:8080/"`, "http://localhost:8080/"}, {"null", "<nil>"}} {
		got := o.Do(200, "PATCH", "/clients/"+id, `{"client_uri":`+change[0]+`}`)
		if uri := fmt.Sprint(got.Object(t)["client_uri"]); uri != change[1] {
			t.Errorf("client_uri after %s: got %s, want %s", change[0], uri, change[1])
		}
	}
	o.Do(200, "POST", "/clients/"+id+"/disable", "")
	if works(second) {
		t.Error("got a token for a disabled client, want none")
	}
	o.Do(200, "POST", "/clients/"+id+"/enable", "{}")
	if !works(second) {
		t.Error("got no token for an enabled client, want one")
	}
	o.Do(204, "DELETE", "/clients/"+id, "")
	o.Do(404, "DELETE", "/clients/"+id, "").Refused(t, "not_found")
	if works(second) {
		t.Error("got a token for a deleted client, want none")
	}
	if log := st.Log.String(); strings.Contains(log, first) || strings.Contains(log, second) ||
		strings.Contains(log, o.Token) {
		t.Error("got a secret or a token in the log")
	}
	d.Covers("POST /admin/v1/clients 201", "GET /admin/v1/clients/{id} 200",
		"POST /admin/v1/clients/{id}/secrets 201",
		"DELETE /admin/v1/clients/{id}/secrets/{secret} 200", "PATCH /admin/v1/clients/{id} 200",
		"DELETE /admin/v1/clients/{id} 204")
}

func TestOperatorManagesUsers(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	o, c := st.NewOperator(t), st.NewClient(t, nil)
	a := o.Do(201, "POST", "/users",
		`{"name":"Ada","email":"ada@example.com","password":"`+stacktest.Password+`","bio":"x"}`)
	id := fmt.Sprint(a.Object(t)["id"])
	a.Has(t, "Location", "/admin/v1/users/"+id)
	if strings.Contains(a.Body, stacktest.Password) || strings.Contains(a.Body, "argon2") {
		t.Errorf("got %s, want no password in it", a.Body)
	}
	st.NewBrowser(t).SignIn(c.Request(), "ada@example.com").Shows(t, 200, "/consent")
	if got := a.Object(t); got["has_password"] != true || got["disabled"] != false {
		t.Errorf("got %v, want a password and not disabled", got)
	}
	o.Do(409, "POST", "/users",
		`{"name":"Eve","email":"ADA@example.com","password":"`+stacktest.Password+`"}`).Refused(t,
		"conflict")
	if got := o.Do(201, "POST", "/users",
		`{"name":"Grace","phone_number":"+12025550123"}`).Object(t); got["has_password"] != false ||
		got["email"] != nil {
		t.Errorf("got %v, want neither password nor address", got)
	}

	got := o.Do(200, "PATCH", "/users/"+id,
		`{"name":"Ada L.","username":"ada","bio":null,"date_of_birth":"1990-12-10"}`).Object(t)
	if got["name"] != "Ada L." || got["username"] != "ada" || got["bio"] != nil ||
		got["date_of_birth"] != "1990-12-10" || got["email"] != "ada@example.com" {
		t.Errorf("got %v, want the changes and the rest as before", got)
	}
	token, _ := st.NewToken(t, c, 1, oauth.ViewUser)
	if got := st.Get(t, "/api/user", "Authorization",
		"Bearer "+token).Object(t)["username"]; got != "ada" {
		t.Errorf("got username %v in the profile, want ada", got)
	}
	o.Do(200, "PATCH", "/users/"+id, `{"username":"countess"}`)
	if got := st.Get(t, "/api/user", "Authorization",
		"Bearer "+token).Object(t)["username"]; got != "countess" {
		t.Errorf("got username %v in the profile after a change, want countess", got)
	}

	o.Do(204, "POST", "/users/"+id+"/reset-password", `{"password":"another staple battery"}`)
	if got := st.Get(t, "/api/user", "Authorization", "Bearer "+token).Status; got != 401 {
		t.Errorf("got %d with a token from before the reset, want 401", got)
	}
	st.NewBrowser(t).SignIn(c.Request(), "ada@example.com").Shows(t, 422, "/login")
	o.Do(400, "POST", "/users/"+id+"/reset-password", `{"password":"short"}`).Refused(t,
		"invalid_request", "password")
	o.Do(200, "POST", "/users/"+id+"/disable", "")
	o.Do(200, "POST", "/users/"+id+"/enable", "")
	token, _ = st.NewToken(t, c, 1, oauth.ViewUser)
	st.Get(t, "/api/user", "Authorization", "Bearer "+token).Object(t)
	o.Do(204, "POST", "/users/"+id+"/revoke-tokens", "")
	if got := st.Get(t, "/api/user", "Authorization", "Bearer "+token).Status; got != 401 {
		t.Errorf("got %d with a revoked token, want 401", got)
	}
	o.Do(404, "POST", "/users/77/revoke-tokens", "").Refused(t, "not_found")
	o.Do(204, "DELETE", "/users/"+id, "")
	o.Do(404, "GET", "/users/"+id, "").Refused(t, "not_found")
	if log := st.Log.String(); strings.Contains(log, "ada@") || strings.Contains(log, "staple") ||
		strings.Contains(log, "2025550123") {
		t.Error("got an address, a number or a password in the log")
	}
	d.Covers("POST /admin/v1/users 201", "POST /admin/v1/users 409", "GET /admin/v1/users/{id} 404",
		"PATCH /admin/v1/users/{id} 200",
		"POST /admin/v1/users/{id}/disable 200", "POST /admin/v1/users/{id}/reset-password 204",
		"DELETE /admin/v1/users/{id} 204")
}

func TestInvalidAdminRequests(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.Describe(t)
	o, c := st.NewOperator(t), st.NewClient(t, nil)
	st.NewUser(t, "Ada", "ada@example.com")
	deep := strings.Repeat("[", 20000)
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		code                     string
		fields                   []string
	}{
		{"no body", "POST", "/clients", "", 400, "invalid_request", nil},
		{"no object", "POST", "/clients", `[]`, 400, "invalid_request", nil},
		{"half an object", "POST", "/clients", `{"name":"x"`, 400, "invalid_request", nil},
		{"two objects", "POST", "/clients", `{"name":"x"}{}`, 400, "invalid_request", nil},
		{"depth", "POST", "/clients", `{"name":` + deep, 400, "invalid_request", nil},
		{"no UTF-8", "POST", "/clients", "{\"name\":\"\xff\"}", 400, "invalid_request", nil},
		{"empty object", "POST", "/clients", `{}`, 400, "invalid_request", []string{"name"}},
		{"unknown members", "POST", "/clients",
			`{"name":"x","redirect_uri":"https://a.example/","clientid":"1"}`, 400,
			"invalid_request", []string{"redirect_uri", "clientid"}},
		{"another case", "POST", "/clients", `{"Name":"x"}`, 400, "invalid_request",
			[]string{"Name"}},
		{"member twice", "POST", "/clients", `{"name":"x","name":"y"}`, 400, "invalid_request",
			[]string{"name"}},
		{"quota below 0", "PATCH", "/clients/" + c.ID, `{"tokens_per_minute":-1}`, 400,
			"invalid_request", []string{"tokens_per_minute"}},
		{"quota too large", "PATCH", "/clients/" + c.ID, `{"tokens_per_minute":1000001}`, 400,
			"invalid_request", []string{"tokens_per_minute"}},
		{"half a token", "PATCH", "/clients/" + c.ID, `{"tokens_per_minute":0.5}`, 400,
			"invalid_request", []string{"tokens_per_minute"}},
		{"quota as text", "PATCH", "/clients/" + c.ID, `{"tokens_per_minute":"1"}`, 400,
			"invalid_request", []string{"tokens_per_minute"}},
		{"wrong types", "POST", "/clients",
			`{"name":1,"public":"yes","scopes":"view-user","redirect_uris":[1]}`, 400,
			"invalid_request", []string{"name", "public", "scopes", "redirect_uris"}},
		{"null", "POST", "/clients", `{"name":null,"redirect_uris":[null],"public":null}`, 400,
			"invalid_request", []string{"name", "redirect_uris", "public"}},
		{"unknown scope", "POST", "/clients", `{"name":"x","scopes":["fly"]}`, 400,
			"invalid_request", []string{"scopes"}},
		{"empty scope", "POST", "/clients", `{"name":"x","scopes":[""]}`, 400, "invalid_request",
			[]string{"scopes"}},
		{"unknown grant", "POST", "/clients", `{"name":"x","grants":["password"]}`, 400,
			"invalid_request", []string{"grants"}},
		{"no redirect URI", "POST", "/clients", `{"name":"x"}`, 400, "invalid_request",
			[]string{"redirect_uris"}},
		{"page about it on plain http", "POST", "/clients",
			`{"name":"x","redirect_uris":["https://a.example/"],"client_uri":"http://a.example/"}`,
			400, "invalid_request", []string{"client_uri"}},
		{"page about it that is a script", "PATCH", "/clients/" + c.ID,
			`{"client_uri":"javascript:alert(1)"}`, 400, "invalid_request", []string{"client_uri"}},
		{"wildcard", "POST", "/clients", `{"name":"x","redirect_uris":["https://*.example.com/"]}`,
			400, "invalid_request", []string{"redirect_uris"}},
		{"public operator", "POST", "/clients", `{"name":"x","public":true,"operator":true}`, 400,
			"invalid_request", []string{"operator"}},
		{"scope of operators", "POST", "/clients",
			`{"name":"x","redirect_uris":["https://a.example/"],"scopes":["server-operations"]}`,
			400, "invalid_request", []string{"scopes"}},
		{"change of kind", "PATCH", "/clients/" + c.ID, `{"public":true}`, 400, "invalid_request",
			[]string{"public"}},
		{"change to nothing", "PATCH", "/clients/" + c.ID, `{"redirect_uris":[]}`, 400,
			"invalid_request", []string{"redirect_uris"}},
		{"no client", "GET", "/clients/6ba7b810-9dad-11d1-80b4-00c04fd430c8", "", 404, "not_found",
			nil},
		{"no id", "GET", "/clients/x", "", 404, "not_found", nil},
		{"id in capitals", "GET", "/clients/" + strings.ToUpper(c.ID), "", 404, "not_found", nil},
		{"body with an action", "POST", "/clients/" + c.ID + "/approve", `{"approved":false}`, 400,
			"invalid_request", []string{"approved"}},
		{"limit 0", "GET", "/clients?limit=0", "", 400, "invalid_request", []string{"limit"}},
		{"limit 201", "GET", "/users?limit=201", "", 400, "invalid_request", []string{"limit"}},
		{"after what", "GET", "/users?after=x", "", 400, "invalid_request", []string{"after"}},
		{"after minus one", "GET", "/users?after=-1", "", 400, "invalid_request",
			[]string{"after"}},
		{"after no user", "GET", "/users?after=%00", "", 400, "invalid_request", []string{"after"}},
		{"after no client", "GET", "/clients?after=%00", "", 400, "invalid_request",
			[]string{"after"}},
		{"after what client", "GET", "/clients?after=zz", "", 400, "invalid_request",
			[]string{"after"}},
		{"after client minus one", "GET", "/clients?after=-1", "", 400, "invalid_request",
			[]string{"after"}},
		{"after no client id", "GET", "/clients?after=a:b",
			"", 400, "invalid_request", []string{"after"}},
		{"broken query", "GET", "/users?after=%zz", "", 400, "invalid_request", nil},
		{"user without name", "POST", "/users",
			`{"email":"a@example.com","password":"correct horse battery"}`, 400, "invalid_request",
			[]string{"name"}},
		{"user without address", "POST", "/users", `{"name":"A"}`, 400, "invalid_request",
			[]string{"email"}},
		{"several fields", "POST", "/users",
			`{"name":"A","email":"nowhere","phone_number":"12","date_of_birth":"1990-02-30"}`, 400,
			"invalid_request", []string{"email", "phone_number", "date_of_birth"}},
		{"service_id", "PATCH", "/users/1", `{"service_id":"x"}`, 400, "invalid_request",
			[]string{"service_id"}},
		{"name taken away", "PATCH", "/users/1", `{"name":""}`, 400, "invalid_request",
			[]string{"name"}},
		{"last address taken away", "PATCH", "/users/1", `{"email":null}`, 400, "invalid_request",
			[]string{"email"}},
		{"no user", "PATCH", "/users/77", `{"bio":"x"}`, 404, "not_found", nil},
		{"user 0", "GET", "/users/0", "", 404, "not_found", nil},
		{"user 01", "GET", "/users/01", "", 404, "not_found", nil},
		{"user beyond numbers", "GET", "/users/9223372036854775808", "", 404, "not_found", nil},
		{"password left out", "POST", "/users/1/reset-password", `{}`, 400, "invalid_request",
			[]string{"password"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			row := *o
			row.T = t
			row.Do(test.status, test.method, test.path, test.body).Refused(t, test.code,
				test.fields...)
		})
	}
	a := st.Send(t, "POST", st.AdminURL+"/admin/v1/clients", "name=x", "Authorization",
		"Bearer "+o.Token, "Content-Type", "application/x-www-form-urlencoded")
	if a.Status != 415 {
		t.Errorf("got %d %s for a form, want 415", a.Status, a.Body)
	}
	a = st.Send(t, "POST", st.AdminURL+"/admin/v1/clients", strings.Repeat(" ", 1<<17),
		"Authorization", "Bearer "+o.Token, "Content-Type", "application/json")
	if a.Status != 413 || strings.Contains(a.Body, `"ok"`) {
		t.Errorf("got %d %s for a large body, want 413 in the shape of the admin API", a.Status,
			a.Body)
	}
}

func TestAdminListsArePaged(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.Describe(t)
	o := st.NewOperator(t)
	for i := range 4 {
		st.NewClient(t, nil)
		st.NewUser(t, fmt.Sprint("User ", i), fmt.Sprintf("user%d@example.com", i))
	}
	for list, id := range map[string]string{"clients": "client_id", "users": "id"} {
		want := map[string]int{"clients": 5, "users": 4}[list]
		seen, after, pages := map[string]bool{}, "", 0
		for more := true; more; pages++ {
			page := o.Do(200, "GET", "/"+list+"?limit=2&after="+after, "").Object(t)
			for _, record := range page[list].([]any) {
				seen[fmt.Sprint(record.(map[string]any)[id])] = true
			}
			after = page["next"].(string)
			more = after != ""
		}
		if len(seen) != want || pages != 3 {
			t.Errorf("got %d %s in %d pages, want %d in 3", len(seen), list, pages, want)
		}
	}
}
