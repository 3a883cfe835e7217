//go:build pact

package oauthapp_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pact-foundation/pact-go/v2/matchers"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// The client with which the application's operators call the admin API.
const (
	operatorID    = "5f0e9d8c-7b6a-4958-8776-655443322110"
	operatorToken = "gtat_operator"
	operatorScope = "server-operations"
)

// operator returns the states with an operator's access token.
func operator(more ...state) []state {
	return append([]state{given("another client", "client_id", operatorID, "name", "Operations",
		"operator", true, "scope", operatorScope, "grants", "client_credentials", "redirect_uri", "",
		"detail_user_approved", false),
		given("an access token", "access_token", operatorToken, "scope", operatorScope, "user", false)},
		joined(more)...)
}

// did returns the state in which an operator has sent a request, such as "PUT groups/staff {}".
func did(request string) state {
	return given("an operator has sent requests", "requests", request)
}

// joined returns states with the requests of all operators in the last such state: the library
// merges states of the same name.
func joined(states []state) (all []state) {
	var requests []string
	for _, s := range states {
		if text, ok := s.Parameters["requests"].(string); ok {
			requests = append(requests, text)
			all = slices.DeleteFunc(all, func(s state) bool { return s.Parameters["requests"] != nil })
			s = given(s.Name, "requests", strings.Join(requests, "\n"))
		}
		all = append(all, s)
	}
	return all
}

// operation is one operation of the admin API.
type operation struct {
	name   string // after method and path; "" = it is the first of that operation
	method string
	path   string // below /admin/v1/; values of states are in it, as in users/${user_id}
	query  []string
	given  []state
	body   string // JSON; "" = none
	status int    // 0 = 200
	json   any
	header []any
	code   string
}

// samples are the values in paths in the tests of the consumer.
var samples = strings.NewReplacer("${user_id}", "17", "${session}", "nq7vkkd2sd0pgg5t",
	"${created}", "/admin/v1/invitations/Q2WLKTGHBXPA")

// when matches the times of the admin API.
var when = pacttest.Pattern("2026-05-03T12:00:00Z", `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// timed matches the times of imports and exports, which have fractions of seconds.
var timed = pacttest.Pattern("2026-05-03T12:00:00.5Z", `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)

// picture is that of a client.
const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>`

// hashed matches the hash of a secret.
var hashed = pacttest.Pattern("sha256:"+strings.Repeat("0f", 32), "^sha256:[0-9a-f]{64}$")

// registered returns the record of a client, with other members.
func registered(more object) object {
	return overlaid(object{"client_id": clientID, "name": "Contract", "client_uri": pacttest.Null(),
		"redirect_uris": []string{redirectURI}, "scopes": []string{"view-user", "detail-user"},
		"grants": []string{"authorization_code", "refresh_token", "client_credentials"},
		"public": false, "operator": false, "detail_user_approved": true, "loopback_any_port": false,
		"introspect_any": false, "tokens_per_minute": 0, "disabled": false,
		"secrets":    []any{object{"id": "Contract", "created_at": when, "hash": hashed}},
		"created_at": when, "tokens_issued": 0, "last_used_at": pacttest.Null(),
		"registered_by": "operator", "failures": 0, "last_failure_at": pacttest.Null(),
		"last_error": pacttest.Null()}, more)
}

func overlaid(o, more object) object {
	o = maps.Clone(o)
	maps.Copy(o, more)
	return o
}

// names returns an object that has no other members than those of o, all of which may be missing.
func names(o object) any {
	return pacttest.OnlyKeys(exampleOf(o).(object))
}

// exampleOf returns a value with the examples of its matchers.
func exampleOf(v any) any {
	switch v := v.(type) {
	case matchers.Null:
		return nil
	case object:
		if v["pact:matcher:type"] != nil {
			return exampleOf(v["value"])
		}
		all := object{}
		for name, member := range v {
			all[name] = exampleOf(member)
		}
		return all
	case []any:
		all := []any{}
		for _, element := range v {
			all = append(all, exampleOf(element))
		}
		return all
	}
	return v
}

// person returns the record of the user whose profile is complete.
func person(more object) object {
	return overlaid(object{"id": pacttest.Integer(17), "service_id": isUUID, "name": "Ada Lovelace",
		"email": "ada@example.com", "phone_number": "+12025550123", "username": "ada",
		"gender": "female", "bio": "Wrote the first program.", "place_of_birth": "London",
		"date_of_birth": "1990-12-10", "address": "12 St James's Square, London",
		"profile_picture": "https://example.com/ada.png", "has_password": false,
		"phone_sign_in": false, "second_factor": false, "recovery_codes": 0, "disabled": false,
		"created_at": when, "updated_at": when, "groups": []string{},
		"provider_groups": []any{}, "attributes": object{}}, more)
}

var isUUID = pacttest.Pattern("1f0e9d8c-7b6a-4958-8776-655443322110",
	"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")

// operations tests the admin API: what each operation does, and that it is for operators alone.
func operations(t *testing.T, p *pacttest.Pact) {
	all := slices.Concat(clientOperations(), userOperations(), groupOperations(), otherOperations(),
		events())
	seen := map[string]bool{} // paths
	for _, o := range all {
		o.run(t, p, operator(o.given...), "Bearer "+operatorToken)
		if o.name != "" {
			continue
		}
		if o.method == http.MethodGet {
			head := o
			head.method, head.json = http.MethodHead, nil
			head.run(t, p, operator(o.given...), "Bearer "+operatorToken)
		}
		o.given, o.path = nil, strings.TrimPrefix(samples.Replace(o.path), "/admin/v1/")
		o.refusals(t, p)
		if !seen[o.path] {
			seen[o.path] = true
			o.method, o.body, o.query = http.MethodPatch, "", nil
			switch o.path {
			case "clients/" + clientID, "users/17":
				o.method = http.MethodPost
			case "users/import", "users/export": // without it they could be the ids of users
				o.method = http.MethodPut
			}
			o.name, o.status, o.code = ", which it has not", 405, "method_not_allowed"
			o.header = []any{"Allow", pacttest.Matching("GET", "^[A-Z]+$")}
			o.json = refusal(o.code)
			o.run(t, p, operator(), "Bearer "+operatorToken)
		}
	}
	expired := operation{method: "GET", path: "clients", name: " with an expired token", status: 401,
		code: "token_expired", header: []any{"WWW-Authenticate", expiredChallenge},
		json: object{"error": "token_expired", "error_description": pacttest.NotEmpty("It has expired."),
			"message": pacttest.NotEmpty("Get another.")}}
	expired.run(t, p, []state{operator()[0], given("an access token", "access_token", operatorToken,
		"scope", operatorScope, "user", false, "kind", "expired")}, "Bearer "+operatorToken)
}

// refusals tests an operation without a token, and with one that is no operator's.
func (o operation) refusals(t *testing.T, p *pacttest.Pact) {
	const noToken = `Bearer realm="gatehouse"`
	o.name, o.status, o.header = " without a token", 401, []any{"WWW-Authenticate", noToken}
	o.json = object{"message": pacttest.NotEmpty("Send a token.")}
	o.run(t, p, nil, "")
	o.name, o.status, o.code = " without the scope", 403, "insufficient_scope"
	o.header = []any{"WWW-Authenticate", noToken + `, error="insufficient_scope", scope="server-operations"`}
	o.json = object{"error": o.code, "error_description": pacttest.NotEmpty("It lacks a scope."),
		"message": pacttest.NotEmpty("Ask for it.")}
	o.run(t, p, []state{public(), given("an access token", "access_token", accessToken)},
		"Bearer "+accessToken)
}

// refusal returns the body of an error of the admin API.
func refusal(code string) object {
	return object{"error": code, "message": pacttest.NotEmpty("This is wrong.")}
}

// run runs one request of an operator.
func (o operation) run(t *testing.T, p *pacttest.Pact, states []state, token string) {
	t.Helper()
	query := map[string][]any{}
	var pairs []string
	for i := 0; i+1 < len(o.query); i += 2 {
		query[o.query[i]] = []any{o.query[i+1]}
		pairs = append(pairs, o.query[i]+"="+o.query[i+1])
	}
	full := "/admin/v1/" + o.path
	if o.path == "${created}" {
		full = o.path
	}
	r := pacttest.Request{Method: o.method, Path: samples.Replace(full), Query: query,
		Header: map[string]any{"Accept": "application/json"}}
	if full != r.Path {
		r.PathFrom = full
	}
	sent := oauthapp.Request{Method: o.method, Path: r.Path, Body: o.body, Header: map[string]string{}}
	if len(pairs) > 0 {
		sent.Path += "?" + strings.Join(pairs, "&")
	}
	if token != "" {
		r.Header["Authorization"], sent.Header["Authorization"] = token, token
	}
	if o.body != "" && o.body[0] != '{' {
		kind := "text/plain"
		if o.body == picture {
			kind = "image/svg+xml"
		}
		r.Text = o.body
		sent.Header["Content-Type"], r.Header["Content-Type"] = kind, kind
	} else if o.body != "" {
		sent.Header["Content-Type"], r.Header["Content-Type"] = "application/json", "application/json"
		pacttest.Must(t, json.Unmarshal([]byte(o.body), &r.JSON))
	}
	response := pacttest.Response{Status: o.status, JSON: o.json,
		Header: header(append([]any{"Cache-Control", "no-store"}, o.header...)...)}
	if response.Status == 0 {
		response.Status = 200
	}
	if o.json == nil {
		delete(response.Header, "Content-Type")
	}
	name := o.method + " " + strings.NewReplacer(clientID, "{id}", "${", "{").Replace(full)
	run(t, p, []exchange{{name: name + o.name, given: states, request: r, response: response, code: o.code,
		call: func(ctx context.Context, a *oauthapp.App) error {
			_, err := a.Do(ctx, sent)
			return err
		}}})
}

// invalid returns an operation that is refused, with the members that are wrong.
func invalid(method, path, body string, query []string, fields ...string) operation {
	o := operation{method: method, path: path, body: body, query: query, status: 400,
		name: " with a wrong " + strings.Join(fields, " and "), code: "invalid_request"}
	wrong := object{}
	for _, f := range fields {
		wrong[f] = pacttest.NotEmpty("is wrong")
	}
	o.json = overlaid(refusal("invalid_request"), object{"fields": wrong})
	return o
}

// unknown returns an operation on a record that does not exist.
func unknown(method, path, body string) operation {
	return operation{method: method, path: path, body: body, name: " where there is none", status: 404,
		code: "not_found", json: refusal("not_found")}
}

func clientOperations() []operation {
	const one, whole = "clients/" + clientID, `{"name":"Notes","client_uri":"https://app.example/about",
"redirect_uris":["https://app.example/callback","http://127.0.0.1/"],"scopes":["view-user","openid"],"grants":["authorization_code"],
"loopback_any_port":true,"introspect_any":true,"tokens_per_minute":60,"id_token_alg":"ES256","claims_in_id_token":true,
"post_logout_redirect_uris":["https://app.example/bye"],"backchannel_logout_uri":"https://app.example/logout",
"require_pkce":true,"require_groups":["staff"],"require_second_factor":true,"access_token_format":"jwt",
"resources":["https://api.example/"]}`
	there := confidential()
	full := object{"name": "Notes", "client_uri": "https://app.example/about",
		"redirect_uris": []string{redirectURI, "http://127.0.0.1/"},
		"scopes":        []string{"view-user", "openid"}, "grants": []string{"authorization_code"},
		"loopback_any_port": true, "introspect_any": true, "tokens_per_minute": 60, "id_token_alg": "ES256",
		"claims_in_id_token": true, "post_logout_redirect_uris": []string{"https://app.example/bye"},
		"backchannel_logout_uri": "https://app.example/logout", "require_pkce": true,
		"require_groups": []string{"staff"}, "require_second_factor": true, "access_token_format": "jwt",
		"resources": []string{"https://api.example/"}}
	described := registered(object{"name": "Notes", "grants": []string{"authorization_code", "refresh_token"},
		"scopes": []string{"view-user"}, "detail_user_approved": false, "secrets": []any{}})
	fresh := overlaid(described, object{"client_secret": pacttest.Pattern(secret, "^gtcs_[0-9A-Za-z]{40,}$"),
		"secrets": []any{object{"id": pacttest.NotEmpty("a"), "created_at": when, "hash": hashed}}})
	used := registered(object{"tokens_issued": 1, "last_used_at": when, "failures": 1,
		"last_failure_at": when, "last_error": "invalid_client"})
	own := registered(object{"client_id": operatorID, "name": "Operations", "redirect_uris": []string{},
		"scopes": []string{operatorScope}, "grants": []string{"client_credentials"}, "operator": true,
		"detail_user_approved": false})
	var keys any
	if err := json.Unmarshal([]byte(clientKeys), &keys); err != nil {
		panic(err)
	}
	const basic = `"name":"Notes","redirect_uris":["https://app.example/callback"]`
	const trusted = `,"federated":{"issuer":"https://ci.example","subject":"main"}`
	created := []any{"Location", "/admin/v1/" + one}
	apis := did(`POST resources {"uri":"https://api.example/","scopes":["read"]}` + "\n" + `POST resources {"uri":"https://notes.example/","scopes":["write"]}`)
	pictured := registered(object{"logo": pacttest.NotEmpty("0f1e2d")})
	const jags = `{"grants":["authorization_code","client_credentials","urn:ietf:params:oauth:grant-type:jwt-bearer","urn:ietf:params:oauth:grant-type:token-exchange"],"id_jag":{"issuers":["https://login.example"],"audiences":["https://tasks.example"],"groups":["staff"]}}`
	assertions := object{"client_id": clientID, "id_jag": object{"issuers": []string{"https://login.example"},
		"audiences": []string{"https://tasks.example"}, "groups": []string{"staff"}}}
	const exchanges = `{"grants":["authorization_code","client_credentials","urn:ietf:params:oauth:grant-type:token-exchange"],"serves":["https://api.example/"],"exchange":[{"from":"https://api.example/","to":"https://notes.example/","scopes":["write"]}]}`
	exchanging := object{"client_id": clientID, "serves": []string{"https://api.example/"},
		"exchange": []any{object{"from": "https://api.example/", "to": "https://notes.example/", "scopes": []string{"write"}}}}
	ops := []operation{
		{method: "GET", path: "clients", query: []string{"after", "0-0", "limit", "4"},
			given: []state{there, given("the client has used its secret"), did(`POST clients {"client_id":"last",` + basic + trusted + `}`)},
			json: object{"clients": []any{used, own, overlaid(described, object{"client_id": "last",
				"federated": object{"issuer": "https://ci.example", "subject": "main"}})}, "next": ""}},
		{method: "GET", path: "clients", name: " with pages about them", given: []state{there,
			did("PATCH " + one + ` {"client_uri":"https://app.example/about"}`)},
			json: object{"clients": []any{registered(object{"client_uri": "https://app.example/about"}), own}, "next": ""}},
		{method: "GET", path: "clients", name: ", one page", query: []string{"limit", "1"}, given: []state{there},
			json: object{"clients": []any{registered(object{"client_uri": pacttest.Null()})}, "next": clientID}},
		{method: "POST", path: "clients", name: " in plain text", body: "name=Notes", status: 415,
			code: "unsupported_media_type", json: refusal("unsupported_media_type")},
		{method: "POST", path: "clients", name: " during overload", body: "{" + basic + "}", status: 503,
			given: []state{given("the identity service is busy")}, code: "temporarily_unavailable", json: refusal("temporarily_unavailable")},
		{method: "GET", path: "clients", name: " with a wrong limit, with only documented members", query: []string{"limit", "201"}, status: 400,
			code: "not_found", json: names(object{"error": "not_found", "message": "a", "fields": object{}})},
		invalid("GET", "clients", "", []string{"limit", "201"}, "limit"),
		{method: "POST", path: "clients", body: `{"client_id":"` + clientID + `",` + basic + `}`, status: 201,
			json: fresh, header: created},
		invalid("POST", "clients", `{"name":"Notes","redirect_uri":"x"}`, nil, "redirect_uri"),
		{method: "POST", path: "clients", name: " again", given: []state{there}, code: "conflict",
			body: `{"client_id":"` + clientID + `",` + basic + `}`, status: 409, json: refusal("conflict")},
		{method: "POST", path: "clients", name: " for the tokens of others", status: 201, header: created,
			body: `{"client_id":"` + clientID + `",` + basic + `,"federated":{"issuer":"https://ci.example","subject":"main","audience":"gatehouse","jwks":` + clientKeys + `}}`,
			json: overlaid(described, object{"federated": object{"issuer": "https://ci.example", "subject": "main",
				"audience": "gatehouse", "jwks": keys}})},
		{method: "POST", path: "clients", name: " for the tokens of others, with the default", status: 201, header: created,
			body: `{"client_id":"` + clientID + `",` + basic + trusted + "}",
			json: object{"federated": names(object{"issuer": "a", "subject": "a"})}},
		{method: "GET", path: one, given: []state{there}, json: registered(nil)},
		{method: "GET", path: one, name: ", with only documented members", given: []state{there},
			json: names(registered(nil))},
		{method: "GET", path: one, name: ", that has been used", json: used,
			given: []state{there, given("the client has used its secret")}},
		{method: "GET", path: one, name: ", that has registered itself", given: []state{confidential("registered_by", "itself")},
			json: registered(object{"registered_by": "itself", "self_registered": true, "awaits_consent_until": when})},
		{method: "GET", path: one, name: ", that a document describes", given: []state{confidential("registered_by", "document")},
			json: registered(object{"registered_by": "document", "metadata_url": "https://app.example/client.json"})},
		{method: "GET", path: one, name: ", that the files declare", json: object{"declared": true, "set": "files"},
			given: []state{given("the server's own files declare an object", "kind", "client", "id", clientID,
				"body", `{`+basic+`,"public":true,"set":"files"}`)}},
		unknown("GET", one, ""),
		{method: "PATCH", path: one, body: whole, json: registered(full),
			given: []state{there, did("PUT groups/staff {}"), did("POST resources " + `{"uri":"https://api.example/"}`)}},
		{method: "GET", path: one, name: ", with a picture", json: pictured, given: []state{there, did("PUT " + one + "/logo " + picture)}},
		{method: "PUT", path: one + "/logo", body: picture, given: []state{there}, json: pictured},
		{method: "DELETE", path: one + "/logo", given: []state{there, did("PUT " + one + "/logo " + picture)}, json: registered(nil)},
		{method: "PATCH", path: one, name: " for ID-JAGs", body: jags, given: []state{there},
			json: assertions},
		{method: "PATCH", path: one, name: " for ID-JAGs, with only documented members", body: jags, given: []state{there},
			json: object{"id_jag": names(object{"issuers": []any{}, "audiences": []any{}, "groups": []any{}})}},
		{method: "PATCH", path: one, name: " for ID-JAGs of a provider, with only documented members", given: []state{there},
			body: `{"grants":["urn:ietf:params:oauth:grant-type:jwt-bearer"],"id_jag":{"issuers":["https://login.example"]}}`,
			json: object{"id_jag": names(object{"issuers": []any{}})}},
		{method: "PATCH", path: one, name: " for ID-JAGs of this service, with only documented members", given: []state{there},
			body: `{"grants":["urn:ietf:params:oauth:grant-type:token-exchange"],"id_jag":{"audiences":["https://tasks.example"]}}`,
			json: object{"id_jag": names(object{"audiences": []any{}})}},
		{method: "GET", path: "clients", name: " that get tokens for ID-JAGs", given: []state{there, did("PATCH " + one + " " + jags)},
			json: object{"clients": []any{assertions, own}, "next": ""}},
		{method: "PATCH", path: one, name: " for exchanges", body: exchanges, given: []state{there, apis},
			json: exchanging},
		{method: "PATCH", path: one, name: " for exchanges, with only documented members", body: exchanges, given: []state{there, apis},
			json: object{"exchange": []any{names(object{"from": "a", "to": "b", "scopes": []any{}})}}},
		{method: "GET", path: "clients", name: " that exchange tokens", given: []state{there, apis, did("PATCH " + one + " " + exchanges)},
			json: object{"clients": []any{exchanging, own}, "next": ""}},
		{method: "PATCH", path: one, name: " to the operator's own", body: `{"first_party":true}`, given: []state{there},
			json: registered(object{"first_party": true})},
		{method: "PATCH", path: one, name: " with RS256", body: `{"id_token_alg":"RS256"}`, given: []state{there},
			json: registered(object{"id_token_alg": "RS256"})},
		{method: "PATCH", path: one, name: " with keys", body: `{"jwks":` + clientKeys + `}`, given: []state{there},
			json: object{"jwks": keys}},
		{method: "PATCH", path: one, name: " with keys elsewhere", body: `{"jwks_uri":"https://app.example/keys"}`,
			given: []state{there}, json: registered(object{"jwks_uri": "https://app.example/keys"})},
		{method: "PUT", path: one, body: "{" + basic + `,"public":true,"set":"files"}`, query: []string{"dry_run", "false"},
			status: 201, json: overlaid(described, object{"public": true, "set": "files"})},
		{method: "PUT", path: one, name: ", again", body: "{" + basic + `,"public":true}`,
			given: []state{did("PUT " + one + " {" + basic + `,"public":true}`)}, json: overlaid(described, object{"public": true})},
		{method: "DELETE", path: one, given: []state{there}, status: 204},
		unknown("DELETE", one, ""),
		{method: "POST", path: one + "/secrets", given: []state{there}, status: 201, json: object{"client_id": clientID,
			"client_secret": pacttest.Pattern(secret, "^gtcs_[0-9A-Za-z]{40,}$"), "secret_id": pacttest.NotEmpty("a"), "created_at": when}},
		{method: "POST", path: one + "/secrets", name: ", with only documented members", given: []state{there}, status: 201,
			json: names(object{"client_id": clientID, "client_secret": secret, "secret_id": "a", "created_at": when})},
		{method: "POST", path: one + "/secrets", name: " again", given: []state{there, did("POST " + one + "/secrets ")},
			status: 409, code: "conflict", json: refusal("conflict")},
		{method: "DELETE", path: one + "/secrets/Contract", given: []state{there, did("POST " + one + "/secrets ")},
			json: registered(object{"secrets": []any{object{"id": pacttest.NotEmpty("a"), "created_at": when, "hash": hashed}}})},
		{method: "GET", path: "clients", name: ", with only documented members", given: []state{there},
			json: names(object{"clients": []any{}, "next": "a"})},
		{method: "GET", path: one, name: ", whose secrets have only documented members", given: []state{there},
			json: object{"secrets": []any{names(object{"id": "a", "created_at": when, "hash": hashed})}}},
	}
	for action, change := range map[string]struct {
		before object
		after  object
	}{
		"approve":   {object{"detail_user_approved": false}, object{"detail_user_approved": true}},
		"unapprove": {nil, object{"detail_user_approved": false}}, "disable": {nil, object{"disabled": true}},
		"enable":   {object{"disabled": true}, object{"disabled": false}},
		"verify":   {object{"registered_by": "itself"}, object{"verified": true, "self_registered": true, "registered_by": "itself"}},
		"unverify": {object{"registered_by": "itself"}, object{"registered_by": "itself", "self_registered": true}},
	} {
		var pairs []any
		for name, value := range change.before {
			pairs = append(pairs, name, value)
		}
		ops = append(ops, operation{method: "POST", path: one + "/" + action, given: []state{confidential(pairs...)},
			json: registered(change.after)})
	}
	slices.SortStableFunc(ops[len(ops)-6:], func(a, b operation) int { return strings.Compare(a.path, b.path) })
	return ops
}

func userOperations() []operation {
	const one = "users/${user_id}"
	there := given("a user with every profile field set")
	whole := given("a user with all ways to sign in")
	factors := object{"has_password": true, "phone_sign_in": true, "second_factor": true, "recovery_codes": 1}
	bare := person(object{"email": pacttest.Null(), "phone_number": pacttest.Null(), "username": pacttest.Null(),
		"gender": pacttest.Null(), "bio": pacttest.Null(), "place_of_birth": pacttest.Null(),
		"date_of_birth": pacttest.Null(), "address": pacttest.Null(), "profile_picture": pacttest.Null()})
	key := object{"name": "Phone", "signs_in": true, "synced": true, "created_at": when, "last_used_at": when}
	session := object{"id": pacttest.NotEmpty("a"), "browser": "Contract test", "factors": []string{},
		"created_at": when, "signed_in_at": when, "last_seen_at": when, "expires_at": when}
	base64 := pacttest.Pattern("c2VjcmV0", "^[A-Za-z0-9+/]+=*$")
	exported := object{"id": pacttest.Integer(17), "service_id": isUUID, "name": "Ada Lovelace",
		"email": "ada@example.com", "email_verified": true, "phone_number": "+12025550123",
		"phone_number_verified": true, "username": "ada", "gender": "female",
		"bio": "Wrote the first program.", "place_of_birth": "London", "date_of_birth": "1990-12-10",
		"address": "12 St James's Square, London", "profile_picture": "https://example.com/ada.png",
		"password_hash": pacttest.Pattern("$argon2id$v=19$m=64,t=1,p=1$c2FsdA$aGFzaA", `^\$argon2id\$.*`),
		"phone_sign_in": true, "language": "en", "disabled": true, "groups": []string{"staff"},
		"attributes":     object{"team": "blue"},
		"authenticator":  object{"secret": base64, "created_at": when, "last_step": 0},
		"recovery_codes": []any{base64}}
	const login, work = "https://login.example", `PUT providers/work {"kind":"oidc","issuer":"https://login.example","client_id":"gatehouse","groups":{"devs":"staff"}}`
	mapped := given("the user is in groups", "groups", "staff", "issuer", login)
	unused := given("the user is in groups", "groups", "", "issuer", login)
	gives := object{"issuer": login, "groups": []string{"staff"}}
	member := person(object{"groups": []string{"staff"}, "provider_groups": []any{gives}})
	connection := object{"provider": "work", "issuer": login, "subject": "4711", "name": "ada@example.com",
		"groups": []string{"staff"}, "created_at": timed, "used_at": timed}
	const imported = `{"import":"0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c90","users":[{"line":1,"user":{"name":"Ada","phone_number":"+12025550123","phone_number_verified":true}},{"line":2,"user":{"name":"Eve","email":"nowhere"}}]}`
	return []operation{
		{method: "GET", path: "users", query: []string{"after", "0", "limit", "2"}, given: []state{there, given("a user with no optional profile field")},
			json: object{"users": []any{person(nil), bare}, "next": pacttest.Pattern("18", "^[1-9][0-9]*$")}},
		{method: "GET", path: "users", name: ", with only documented members", json: names(object{"users": []any{}, "next": "a"})},
		invalid("GET", "users", "", []string{"after", "x"}, "after"),
		{method: "POST", path: "users", status: 201, body: `{"name":"Ada","phone_number":"+12025550123"}`,
			header: []any{"Location", pacttest.Matching("/admin/v1/users/17", "^/admin/v1/users/[1-9][0-9]*$")},
			json:   person(overlaid(bare, object{"name": "Ada", "phone_number": "+12025550123", "id": pacttest.Integer(17)}))},
		{method: "POST", path: "users", name: " again", given: []state{there}, status: 409, code: "conflict",
			body: `{"name":"Ada","phone_number":"+12025550123"}`, json: refusal("conflict")},
		invalid("POST", "users", `{"name":"Ada","email":"nowhere"}`, nil, "email"),
		{method: "GET", path: one, given: []state{there}, json: person(nil)},
		{method: "GET", path: one, name: ", with only documented members", given: []state{there}, json: names(person(nil))},
		{method: "GET", path: one, name: ", without a profile", given: []state{given("a user with no optional profile field")}, json: bare},
		{method: "GET", path: one, name: ", with all ways to sign in", given: []state{whole}, json: person(factors)},
		{method: "GET", path: one, name: ", in groups", json: person(object{"groups": []string{"staff"}, "attributes": object{"team": "blue"}}),
			given: []state{there, did("PUT groups/staff {}"), did("PUT groups/staff/members/${user_id} "),
				did("PUT attributes/team {}"), did("PATCH " + one + " " + `{"attributes":{"team":"blue"}}`)}},
		{method: "GET", path: one, name: ", in groups of a provider", given: []state{there, mapped, did(work)}, json: member},
		{method: "GET", path: one, name: ", in groups of a provider, with only documented members", given: []state{there, mapped, did(work)},
			json: object{"provider_groups": []any{names(gives)}}},
		{method: "GET", path: "users", name: " in groups of a provider", given: []state{there, mapped, did(work)},
			json: object{"users": []any{member}, "next": ""}},
		unknown("GET", "users/77", ""),
		{method: "PATCH", path: one, body: `{"name":"Ada L.","bio":null}`, given: []state{there},
			json: person(object{"name": "Ada L.", "bio": pacttest.Null()})},
		{method: "DELETE", path: one, given: []state{there}, status: 204},
		{method: "POST", path: one + "/disable", given: []state{there}, json: person(object{"disabled": true})},
		{method: "POST", path: one + "/enable", given: []state{there, given("the user is disabled")}, json: person(nil)},
		{method: "POST", path: one + "/reset-password", given: []state{whole}, body: `{"password":"another staple battery"}`, status: 204},
		{method: "POST", path: one + "/reset-factors", given: []state{whole}, status: 204},
		{method: "POST", path: one + "/revoke-tokens", given: []state{there}, status: 204},
		{method: "GET", path: one + "/sessions", given: []state{there, given("a person is signed in")},
			json: object{"sessions": []any{session}}},
		{method: "GET", path: one + "/sessions", name: " of a browser that is not known",
			given: []state{there, given("a person is signed in", "browser", "")},
			json:  object{"sessions": []any{overlaid(session, object{"browser": pacttest.Null()})}}},
		{method: "GET", path: one + "/sessions", name: ", with only documented members", given: []state{there, given("a person is signed in")},
			json: object{"sessions": []any{names(session)}}},
		{method: "GET", path: one + "/sessions", name: " and nothing else", given: []state{there}, json: names(object{"sessions": []any{}})},
		{method: "DELETE", path: one + "/sessions/${session}", given: []state{there, given("a person is signed in")}, status: 204},
		{method: "GET", path: one + "/passkeys", given: []state{whole}, json: object{"passkeys": []any{key,
			overlaid(key, object{"name": "Key ring", "last_used_at": pacttest.Null()})}}},
		{method: "GET", path: one + "/passkeys", name: ", with only documented members", given: []state{whole},
			json: object{"passkeys": []any{names(key), names(key)}}},
		{method: "GET", path: one + "/passkeys", name: " and nothing else", given: []state{there}, json: names(object{"passkeys": []any{}})},
		{method: "POST", path: "users/import", body: imported, json: object{"created": 1, "factors_lost": 0,
			"refused": []any{object{"line": 2, "field": pacttest.NotEmpty("email"), "message": pacttest.NotEmpty("is wrong")}}}},
		{method: "POST", path: "users/import", name: ", with only documented members", body: imported,
			json: names(object{"created": 1, "factors_lost": 1, "refused": []any{}})},
		{method: "POST", path: "users/import", name: ", with only documented members of what is refused", body: imported,
			json: object{"refused": []any{names(object{"line": 1, "field": "a", "message": "a"})}}},
		{method: "POST", path: "users/import", name: " of one", json: object{"created": 1, "refused": []any{}},
			body: `{"import":"0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c90","users":[{"line":1,"user":{"name":"Ada","phone_number":"+12025550123","phone_number_verified":true}}]}`},
		invalid("POST", "users/import", `{"import":"0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c90","users":[]}`, nil, "users"),
		{method: "GET", path: "users/export", query: []string{"after", "0", "limit", "2"},
			json: object{"users": []any{exported}, "next": ""},
			given: []state{whole, did("PUT groups/staff {}"), did("PUT groups/staff/members/${user_id} "),
				did("PUT attributes/team {}"), did("PATCH " + one + " " + `{"attributes":{"team":"blue"}}`), given("the user is disabled")}},
		{method: "GET", path: "users/export", name: ", with only documented members", json: names(object{"users": []any{}, "next": "a"})},
		{method: "GET", path: "users/export", name: " of a user of a provider", given: []state{there, mapped, did(work)},
			json: object{"users": []any{object{"connections": []any{connection}}}}},
		{method: "GET", path: "users/export", name: " of a user of a provider that is gone", given: []state{given("a user with no optional profile field"), unused},
			json: object{"users": []any{object{"connections": []any{names(object{"issuer": login, "subject": "4711", "created_at": timed})}}}}},
		{method: "GET", path: "users/export", name: " of a user without a profile", given: []state{given("a user with no optional profile field")},
			json: object{"users": []any{names(object{"id": 17, "service_id": isUUID, "name": "a"})}}},
		{method: "GET", path: "users/export", name: ", with only documented members of an app", given: []state{whole},
			json: object{"users": []any{object{"authenticator": names(object{"secret": base64, "created_at": when, "last_step": 1})}}}},
	}
}

func groupOperations() []operation {
	const created = "/admin/v1/"
	there := given("a user with every profile field set")
	staff := did("PUT groups/staff {}")
	joins := did("PUT groups/staff/members/${user_id} ")
	group, member := object{"name": "staff", "members": 0}, object{"id": pacttest.Integer(17),
		"name": "Ada Lovelace", "email": "ada@example.com", "disabled": false}
	declares := func(kind, body string) state {
		return given("the server's own files declare an object", "kind", kind, "id", "staff", "body", body)
	}
	ops := []operation{
		{method: "GET", path: "groups", query: []string{"after", "h", "limit", "2"}, given: []state{staff},
			json: object{"groups": []any{group}, "next": ""}},
		{method: "GET", path: "groups", name: ", with only documented members", json: names(object{"groups": []any{}, "next": "a"})},
		{method: "POST", path: "groups", body: `{"name":"staff"}`, status: 201, json: group, header: []any{"Location", created + "groups/staff"}},
		{method: "POST", path: "groups", name: " again", body: `{"name":"staff"}`, given: []state{staff}, status: 409, code: "conflict", json: refusal("conflict")},
		{method: "GET", path: "groups/staff", given: []state{there, staff, joins}, json: object{"name": "staff", "members": 1}},
		{method: "GET", path: "groups/staff", name: ", with only documented members", given: []state{staff}, json: names(group)},
		{method: "GET", path: "groups/staff", name: ", that the files declare", given: []state{declares("group", `{"set":"files"}`)},
			json: object{"declared": true, "set": "files"}},
		unknown("GET", "groups/staff", ""),
		{method: "PUT", path: "groups/staff", body: `{"set":"files"}`, query: []string{"dry_run", "false"}, status: 201,
			json: overlaid(group, object{"set": "files"})},
		{method: "PUT", path: "groups/staff", name: ", again", body: `{}`, given: []state{staff}, json: group},
		{method: "DELETE", path: "groups/staff", given: []state{staff}, status: 204},
		{method: "GET", path: "groups/staff/members", query: []string{"after", "0", "limit", "3"},
			given: []state{staff, there, joins, did(`POST users {"name":"Ada Lovelace","phone_number":"+12025550124"}`), did("PUT groups/staff/members/${id} ")},
			json: object{"users": []any{member, object{"id": pacttest.Integer(18), "name": "Ada Lovelace",
				"email": pacttest.Null(), "disabled": false}}, "next": ""}},
		{method: "GET", path: "groups/staff/members", name: ", with only documented members", given: []state{staff}, json: names(object{"users": []any{}, "next": "a"})},
		{method: "GET", path: "groups/staff/members", name: ", with only documented members of one", given: []state{staff, there, joins},
			json: object{"users": []any{names(member)}}},
		{method: "PUT", path: "groups/staff/members/${user_id}", given: []state{there, staff}, status: 204},
		{method: "DELETE", path: "groups/staff/members/${user_id}", given: []state{there, staff, joins}, status: 204},
	}
	attribute := func(kind, change string) object { return object{"name": "team", "type": kind, "change": change} }
	team := did("PUT attributes/team {}")
	ops = append(ops, []operation{
		{method: "GET", path: "attributes", query: []string{"after", "a", "limit", "2"}, given: []state{team},
			json: object{"attributes": []any{attribute("string", "operator")}, "next": ""}},
		{method: "GET", path: "attributes", name: ", with only documented members", json: names(object{"attributes": []any{}, "next": "a"})},
		{method: "GET", path: "attributes", name: ", with only documented members of one", given: []state{team},
			json: object{"attributes": []any{names(attribute("string", "operator"))}}},
		{method: "GET", path: "attributes", name: ", that the files declare", given: []state{declares("attribute", `{"set":"files"}`)},
			json: object{"attributes": []any{object{"declared": true, "set": "files"}}}},
		{method: "PUT", path: "attributes/team", body: `{"set":"files"}`, query: []string{"dry_run", "false"}, status: 201,
			json: overlaid(attribute("string", "operator"), object{"set": "files"})},
		{method: "PUT", path: "attributes/team", name: ", again", body: `{}`, given: []state{team}, json: attribute("string", "operator")},
		{method: "DELETE", path: "attributes/team", given: []state{team}, status: 204},
	}...)
	for _, kind := range []string{"number", "boolean", "strings"} {
		ops = append(ops, operation{method: "PUT", path: "attributes/team", name: " of the type " + kind, status: 201,
			body: `{"type":"` + kind + `","change":"person"}`, json: attribute(kind, "person")})
	}
	claim := func(scope string) object {
		return object{"name": "team", "from": "attributes.team", "scope": scope}
	}
	claimed := did("PUT claims/team " + `{"from":"attributes.team"}`)
	ops = append(ops, []operation{
		{method: "GET", path: "claims", query: []string{"after", "a", "limit", "2"}, given: []state{team, claimed},
			json: object{"claims": []any{claim("profile")}, "next": ""}},
		{method: "GET", path: "claims", name: ", with only documented members", json: names(object{"claims": []any{}, "next": "a"})},
		{method: "GET", path: "claims", name: ", with only documented members of one", given: []state{team, claimed},
			json: object{"claims": []any{names(claim("profile"))}}},
		{method: "GET", path: "claims", name: ", that the files declare", given: []state{team, declares("claim", `{"from":"attributes.team","set":"files"}`)},
			json: object{"claims": []any{object{"declared": true, "set": "files"}}}},
		{method: "PUT", path: "claims/team", body: `{"from":"attributes.team","set":"files"}`, query: []string{"dry_run", "false"},
			given: []state{team}, status: 201, json: overlaid(claim("profile"), object{"set": "files"})},
		{method: "PUT", path: "claims/team", name: ", again", body: `{"from":"attributes.team"}`, given: []state{team, claimed}, json: claim("profile")},
		{method: "DELETE", path: "claims/team", given: []state{team, claimed}, status: 204},
	}...)
	for _, scope := range []string{"openid", "email", "phone", "address", "groups"} {
		ops = append(ops, operation{method: "PUT", path: "claims/team", name: " with the scope " + scope, status: 201,
			given: []state{team}, body: `{"from":"attributes.team","scope":"` + scope + `"}`, json: claim(scope)})
	}
	return ops
}

func otherOperations() []operation {
	const uri, described = "https://api.example/", `{"uri":"https://api.example/","scopes":["read"],"name":"Notes","scope_texts":{"read":"Read notes"},"claims":["groups"]}`
	registeredOne := did("POST resources " + `{"uri":"` + uri + `"}`)
	number := pacttest.Integer(1)
	resource := object{"number": number, "uri": uri, "scopes": []string{}, "created_at": when}
	whole := overlaid(resource, object{"scopes": []string{"read"}, "name": "Notes",
		"scope_texts": object{"read": "Read notes"}, "claims": []string{"groups"}})
	metadata := object{"resource": uri, "authorization_servers": []any{pacttest.Pattern("https://id.example", "^https?://.+")},
		"bearer_methods_supported": []string{"header"}, "scopes_supported": []string{"read"}}
	shown := overlaid(whole, object{"metadata_url": "https://api.example/.well-known/oauth-protected-resource", "metadata": metadata})
	invitation := object{"id": pacttest.Pattern("Q2WLKTGHBXPA", "^[A-Z2-7]{12}$"), "email": "grace@example.com",
		"name": "Grace Hopper", "groups": []string{"staff"}, "created_at": when, "expires_at": when}
	nameless := overlaid(invitation, object{"name": pacttest.Null(), "groups": []string{}})
	mails, staff := given("the service can send e-mails"), did("PUT groups/staff {}")
	invited := did("POST invitations " + `{"email":"grace@example.com"}`)
	const provider = `"kind":"oidc","issuer":"https://login.example","client_id":"gatehouse"`
	declared := object{"id": "work", "kind": "oidc", "issuer": "https://login.example", "client_id": "gatehouse",
		"scopes": []string{"openid", "email", "profile"}, "label": pacttest.Any(""), "icon": "", "allowed_domains": []string{},
		"create_accounts": false, "trust_email": false, "groups": object{}, "disabled": false,
		"redirect_uri": pacttest.Pattern("https://id.example/login/with/work/callback", "^https?://.+/login/with/work/callback$"), "created_at": when}
	work := did("PUT providers/work {" + provider + "}")
	ops := []operation{
		{method: "GET", path: "resources", query: []string{"after", "0", "limit", "2"}, given: []state{registeredOne},
			json: object{"resources": []any{resource}, "next": ""}},
		{method: "GET", path: "resources", name: ", with only documented members", json: names(object{"resources": []any{}, "next": "a"})},
		{method: "POST", path: "resources", body: described, status: 201, json: whole,
			header: []any{"Location", pacttest.Matching("/admin/v1/resources/1", "^/admin/v1/resources/[1-9][0-9]*$")}},
		invalid("POST", "resources", `{"uri":"http://api.example/"}`, nil, "uri"),
		{method: "PUT", path: "resources", body: `{"uri":"` + uri + `","set":"files"}`, query: []string{"dry_run", "false"}, status: 201,
			json: overlaid(resource, object{"set": "files"})},
		{method: "PUT", path: "resources", name: ", again", body: `{"uri":"` + uri + `"}`, given: []state{registeredOne}, json: resource},
		{method: "GET", path: "resources/1", given: []state{did("POST resources " + described)}, json: shown},
		{method: "GET", path: "resources/1", name: ", with only documented members", given: []state{registeredOne},
			json: names(overlaid(resource, object{"metadata_url": uri, "metadata": object{}}))},
		{method: "GET", path: "resources/1", name: ", whose metadata has only documented members", given: []state{registeredOne},
			json: object{"metadata": names(object{"resource": "a", "authorization_servers": []any{}, "bearer_methods_supported": []any{}})}},
		{method: "PUT", path: "resources", name: ", with only documented members", body: `{"uri":"` + uri + `"}`, given: []state{registeredOne}, json: names(resource)},
		{method: "GET", path: "resources/1", name: ", that the files declare", json: object{"declared": true, "set": "files"},
			given: []state{given("the server's own files declare an object", "kind", "resource", "id", "notes", "body", `{"uri":"`+uri+`","set":"files"}`)}},
		unknown("GET", "resources/77", ""),
		{method: "DELETE", path: "resources/1", given: []state{registeredOne}, status: 204},
		{method: "GET", path: "invitations", query: []string{"after", "0", "limit", "2"}, given: []state{mails, invited},
			json: object{"invitations": []any{nameless}, "next": ""}},
		{method: "GET", path: "invitations", name: " of a name", given: []state{mails, staff,
			did("POST invitations " + `{"email":"grace@example.com","name":"Grace Hopper","groups":["staff"]}`)},
			json: object{"invitations": []any{invitation}, "next": ""}},
		{method: "GET", path: "invitations", name: ", with only documented members", json: names(object{"invitations": []any{}, "next": "a"})},
		{method: "POST", path: "invitations", body: `{"email":"grace@example.com","name":"Grace Hopper","groups":["staff"]}`, given: []state{mails, staff},
			status: 201, json: invitation, header: []any{"Location", pacttest.Matching("/admin/v1/invitations/Q2WLKTGHBXPA", "^/admin/v1/invitations/[A-Z2-7]{12}$")}},
		{method: "POST", path: "invitations", name: " without a name", body: `{"email":"grace@example.com"}`, given: []state{mails}, status: 201, json: nameless},
		{method: "POST", path: "invitations", name: ", with only documented members", body: `{"email":"grace@example.com"}`, given: []state{mails}, status: 201, json: names(invitation)},
		invalid("POST", "invitations", `{"email":"nowhere"}`, nil, "email"),
		{method: "DELETE", path: "${created}", given: []state{mails, invited}, status: 204},
		{method: "GET", path: "providers", given: []state{work}, json: object{"providers": []any{declared}, "next": ""}},
		{method: "GET", path: "providers", name: ", with only documented members", json: names(object{"providers": []any{}, "next": "a"})},
		{method: "GET", path: "providers/work", given: []state{work}, json: declared},
		{method: "GET", path: "providers/work", name: ", with only documented members", given: []state{work}, json: names(declared)},
		{method: "GET", path: "providers/work", name: ", that the files declare", json: object{"declared": true, "set": "files"},
			given: []state{given("the server's own files declare an object", "kind", "provider", "id", "work", "body", "{"+provider+`,"set":"files"}`)}},
		unknown("GET", "providers/none", ""),
		{method: "PUT", path: "providers/work", query: []string{"dry_run", "false"}, status: 201,
			body:  "{" + provider + `,"client_secret":"s3cret","label":"Work","allowed_domains":["example.com"],"create_accounts":true,"trust_email":true,"groups":{"devs":"staff"},"disabled":true,"set":"files"}`,
			given: []state{staff}, json: overlaid(declared, object{"label": "Work", "client_secret_set_at": when, "allowed_domains": []string{"example.com"},
				"create_accounts": true, "trust_email": true, "groups": object{"devs": "staff"}, "disabled": true, "set": "files"})},
		{method: "PUT", path: "providers/work", name: ", again", body: "{" + provider + "}", given: []state{work}, json: declared},
		{method: "PUT", path: "providers/work", name: " of GitHub", body: `{"kind":"github","client_id":"gatehouse","client_secret":"s3cret"}`, status: 201,
			json: object{"kind": "github", "issuer": "https://github.com"}},
		{method: "DELETE", path: "providers/work", given: []state{work}, status: 204},
	}
	for _, icon := range []string{"google", "microsoft", "github", "gitlab", "none"} {
		ops = append(ops, operation{method: "PUT", path: "providers/work", name: " with the icon " + icon, status: 201,
			body: "{" + provider + `,"icon":"` + icon + `"}`, json: overlaid(declared, object{"icon": icon})})
	}
	purposes := []string{"tokens", "forms", "browsers", "cluster", "factors", "rs256", "es256"}
	for i, purpose := range purposes {
		o := operation{method: "POST", path: "keys/rotate", body: `{"purpose":"` + purpose + `","now":true}`,
			json: object{"created_at": when, "rotate_again_at": when, "purpose": purpose}}
		if i > 0 {
			o.name = " for " + purpose
		}
		ops = append(ops, o)
	}
	key := func(purpose string, number int, expires any) object {
		return object{"purpose": purpose, "number": number, "created_at": when, "expires_at": expires,
			"key_file": pacttest.NotEmpty("f084499f925a5e47")}
	}
	keys := []any{}
	for _, purpose := range purposes {
		one := key(purpose, 1, pacttest.Null())
		if signs := strings.HasSuffix(purpose, "s256"); signs {
			one["starts_at"] = when
		}
		if purpose == "rs256" {
			keys = append(keys, overlaid(one, object{"number": 2}), overlaid(one, object{"expires_at": when}))
			continue
		}
		keys = append(keys, one)
	}
	return append(ops, operation{method: "POST", path: "keys/rotate", name: ", with only documented members", body: `{"now":true}`,
		json: names(object{"created_at": when, "rotate_again_at": when, "purpose": "tokens"})},
		operation{method: "GET", path: "keys", given: []state{did(`POST keys/rotate {"purpose":"rs256","now":true}`)},
			json: object{"keys": keys}},
		operation{method: "GET", path: "keys", name: ", with only documented members of one",
			given: []state{did(`POST keys/rotate {"purpose":"rs256","now":true}`)}, json: object{"keys": loosened(keys)}},
		operation{method: "GET", path: "keys", name: ", with only documented members", json: names(object{"keys": []any{}})})
}

// loosened returns elements that have no other members than those of all.
func loosened(all []any) (loose []any) {
	for _, one := range all {
		loose = append(loose, names(one.(object)))
	}
	return loose
}

// events tests what the audit trail has of each action.
func events() []operation {
	actions := strings.Fields(`sign_in sign_out browser_confirmed account_created account_changed account_disabled account_enabled
account_deleted password_changed password_reset address_changed consent_given consent_withdrawn device_allowed
device_denied tokens_revoked family_reused client_created client_changed client_deleted secret_created
secret_revoked client_approved client_unapproved client_disabled client_enabled keys_rotated keys_dropped
budget_reached resource_created resource_changed resource_deleted logout_lost client_registered client_ended
client_failed change_undone authorized user_read users_listed trail_read admin_refused users_imported
users_exported passkey_added passkey_removed passkey_refused member_added member_removed group_created
group_changed group_deleted attribute_changed claim_changed invitation_sent invitation_ended factors_changed
factor_used connection_added connection_removed provider_created provider_changed provider_deleted`)
	event := func(more object) object {
		return overlaid(object{"number": pacttest.Integer(1), "action": "sign_in", "outcome": "ok", "count": 1,
			"time":    pacttest.Pattern("2026-05-03T12:00:00.000Z", `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`),
			"user_id": 17, "client_id": "0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c90", "target": "17", "details": []string{"name"},
			"data": object{"session": "s"}, "actor": object{"kind": "user", "id": "17"}, "request_id": "r1",
			"caller": pacttest.NotEmpty("192.0.2.0/24"), "browser": "Firefox on Linux"}, more)
	}
	null := pacttest.Null()
	nothing := object{"user_id": null, "client_id": null, "target": null, "details": []string{}, "data": object{},
		"actor": object{"kind": "system", "id": null}, "request_id": null, "caller": null, "browser": null}
	happened := func(pairs ...any) state { return given("an event in the audit trail", pairs...) }
	one := func(e any) object { return object{"events": []any{e}, "next": ""} }
	groups := []state{did("PUT groups/support {}\nPUT groups/admins {}")}
	created := func(first, second string) object {
		return object{"next": "", "events": []any{object{"action": "group_created", "target": first},
			object{"action": "group_created", "target": second}}}
	}
	ops := []operation{
		{method: "GET", path: "audit", query: []string{"after", "0", "before", "1000000", "since", "2026-01-01T00:00:00Z", "user", "17",
			"client", "0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c90", "action", "sign_in", "order", "oldest", "limit", "2"},
			given: []state{happened("actor", "user")}, json: one(event(nil))},
		{method: "GET", path: "audit", name: ", the oldest first", query: []string{"action", "group_created"},
			given: groups, json: created("support", "admins")},
		{method: "GET", path: "audit", name: ", the newest first", query: []string{"action", "group_created", "order", "newest"},
			given: groups, json: created("admins", "support")},
		{method: "GET", path: "audit", name: ", one page", query: []string{"action", "sign_in", "limit", "1"},
			given: []state{happened("known", false)}, json: object{"events": []any{event(nothing)}, "next": pacttest.Pattern("1", "^[1-9][0-9]*$")}},
		{method: "GET", path: "audit", name: ", with only documented members", json: names(object{"events": []any{}, "next": "a"})},
		{method: "GET", path: "audit", name: ", with only documented members of an event", query: []string{"action", "sign_in"},
			given: []state{happened()}, json: object{"events": []any{names(event(nil))}}},
		{method: "GET", path: "audit", name: ", with only documented members of an actor", query: []string{"action", "sign_in"},
			given: []state{happened()}, json: object{"events": []any{object{"actor": names(object{"kind": "user", "id": "a"})}}}},
		invalid("GET", "audit", "", []string{"action", "dance"}, "action"),
	}
	for _, outcome := range []string{"failed", "refused"} {
		ops = append(ops, operation{method: "GET", path: "audit", name: " that has " + outcome, query: []string{"action", "sign_in"},
			given: []state{happened("actor", "user", "outcome", outcome)}, json: one(event(object{"outcome": outcome}))})
	}
	for _, actor := range []string{"client", "operator"} {
		ops = append(ops, operation{method: "GET", path: "audit", name: " by a " + actor, query: []string{"action", "sign_in"},
			given: []state{happened("actor", actor)}, json: one(event(object{"actor": object{"kind": actor, "id": "17"}}))})
	}
	for _, action := range actions {
		ops = append(ops, operation{method: "GET", path: "audit", name: " of " + action, query: []string{"action", action},
			given: []state{happened("actor", "user", "action", action)}, json: one(event(object{"action": action}))})
	}
	return ops
}
