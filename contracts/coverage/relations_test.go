package coverage_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/contracts/coverage"
)

// said is a response of a made-up service, or a request to it.
type said struct {
	status int
	header []string // alternating names and values; @60 is a time in 60 seconds
	body   string
}

// ecKey is a public key without its last brace: that of RFC 7515 appendix A.3.
const ecKey = `{"kty":"EC","crv":"P-256","kid":"1","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"`

// described is the relation of the document.
const described = "the document describes it"

// now is the time in seconds since 1970, more some seconds.
func now(more int) json.Number {
	text, err := json.Marshal(time.Now().Unix() + int64(more))
	if err != nil {
		panic(err)
	}
	return json.Number(text)
}

// brokenBy sends a request to a service with one response for each path, and returns the names of
// the relations that the response breaks.
func brokenBy(t *testing.T, method, target string, request said, responses map[string]said,
	values map[string]any) []string {
	t.Helper()
	path, _, _ := strings.Cut(target, "?")
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response := responses[r.URL.Path]
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		for i := 0; i < len(response.header); i += 2 {
			value := response.header[i+1]
			if more, ok := strings.CutPrefix(value, "@"); ok {
				n, err := strconv.Atoi(more)
				if err != nil {
					t.Error(err)
				}
				value = now(n).String()
			}
			w.Header().Set(response.header[i], value)
		}
		w.WriteHeader(cmp.Or(response.status, 404))
		if _, err := w.Write([]byte(response.body)); err != nil {
			t.Error(err)
		}
	})
	var broken []string
	r := httptest.NewRequest(method, target, strings.NewReader(request.body))
	for i := 0; i < len(request.header); i += 2 {
		r.Header.Set(request.header[i], request.header[i+1])
	}
	w := httptest.NewRecorder()
	coverage.Checked(service, func() map[string]any { return values },
		func(err error) { broken = append(broken, err.Error()) }).
		ServeHTTP(w, r)
	if want := responses[path]; w.Code != want.status || w.Body.String() != want.body {
		t.Errorf("%s %s: got %d %s, want the response as it is", method, path, w.Code, w.Body)
	}
	return broken
}

// TestRelations sends a response that keeps each relation, and one that breaks it. No time passes
// meanwhile: some relations are about seconds.
func TestRelations(t *testing.T) { synctest.Test(t, testRelations) }

func testRelations(t *testing.T) {
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	signed := url.Values{"client_id": {"c"}, "client_secret": {"s"}, "token": {"gtat_1"},
		"grant_type": {"refresh_token"}, "refresh_token": {"gtrt_0"}}.Encode()
	cors := []string{"Access-Control-Allow-Origin", "*", "Access-Control-Expose-Headers",
		"Retry-After, X-RateLimit-Reset, X-Cache, X-Request-Id"}
	with := func(base []string, more ...string) []string { return append(slices.Clone(base), more...) }
	lines := with(cors, "Content-Type", "application/x-ndjson")
	tested := map[string]bool{}
	for _, row := range []struct {
		relation, method, path string
		request                said
		good, bad              said
		other                  map[string]said // responses of other paths
		values                 map[string]any  // of the states
	}{
		{"retry_after is Retry-After", "GET", "/api/user", said{},
			said{429, []string{"Retry-After", "8"}, `{"retry_after":7}`},
			said{429, []string{"Retry-After", "9"}, `{"retry_after":7}`}, nil, nil},
		{"retry_after is Retry-After", "GET", "/api/user", said{},
			said{429, nil, `{}`}, said{429, nil, `{"retry_after":7}`}, nil, nil},
		{"Retry-After is in seconds", "POST", "/oauth/token", said{},
			said{503, []string{"Retry-After", "60"}, ""},
			said{503, []string{"Retry-After", "1000"}, ""}, nil, nil},
		{"Retry-After is in seconds", "POST", "/oauth/token", said{},
			said{503, []string{"Retry-After", "1"}, ""},
			said{503, []string{"Retry-After", "Sun, 22 Nov 2026 15:00:00 GMT"}, ""}, nil, nil},
		{"retry_after of items is in seconds", "POST", "/api/bulk", said{},
			said{200, cors, `{"count":1,"failed":1,"results":[{"ok":false,"retry_after":30}]}`},
			said{200, cors, `{"count":1,"failed":1,"results":[{"ok":false,"retry_after":30000}]}`},
			nil, nil},
		{described, "POST", "/oauth/revoke", said{},
			said{200, []string{"Content-Type", "application/json", "Pragma", "no-cache",
				"X-Request-Id", "a"}, `{}`},
			said{200, []string{"Content-Type", "application/json", "Pragma", "no-cache",
				"X-Request-Id", "a"}, `{"debug":1}`}, nil, nil},
		{"X-RateLimit-Reset is a minute after the first request", "HEAD", "/api/user", said{},
			said{200, []string{"X-RateLimit-Reset", "@61"}, ""},
			said{200, []string{"X-RateLimit-Reset", "@0"}, ""}, nil, nil},
		{"X-RateLimit-Reset is a minute after the first request", "HEAD", "/api/user", said{},
			said{200, []string{"X-RateLimit-Reset", now(41).String()}, ""},
			said{200, []string{"X-RateLimit-Reset", now(60).String()}, ""}, nil,
			map[string]any{"opened /api/user": time.Now().Add(-20 * time.Second)}},
		{"ids are those of the state", "GET", "/api/user", said{}, said{200, nil, `{"id":7}`},
			said{200, nil, `{"id":8}`}, nil, map[string]any{"access_user": int64(7)}},
		{"Age is the time since the lookup", "GET", "/api/lookup?q=8.8.8.8", said{},
			said{200, with(cors, "Age", "121", "X-Cache", "hit", "Cache-Control", "max-age=600"), ""},
			said{200, with(cors, "Age", "60", "X-Cache", "hit", "Cache-Control", "max-age=600"), ""},
			nil, map[string]any{"cached_query": "8.8.8.8",
				"cached_at": time.Now().Add(-2 * time.Minute)}},
		{"lists of the resource are complete", "GET", "/.well-known/oauth-protected-resource",
			said{}, said{200, nil, `{"bearer_methods_supported":["header"]}`},
			said{200, nil, `{"bearer_methods_supported":["header","header"]}`}, nil, nil},
		{"the client gets code or error, state and iss", "GET",
			"/oauth/authorize?redirect_uri=https%3A%2F%2Fa.example%2F&state=s", said{},
			said{302, []string{"Location", "https://a.example/?code=c&state=s&iss=i"}, ""},
			said{302, []string{"Location", "https://a.example/?code=c&state=s"}, ""}, nil, nil},
		{"the client gets code or error, state and iss", "GET",
			"/oauth/authorize?redirect_uri=https%3A%2F%2Fa.example%2F&response_mode=form_post", said{},
			said{200, nil, `<form action="https://a.example/"><input name="code" value="c"><input name="iss" value="i"></form>`},
			said{200, nil, `<form action="https://b.example/"><input name="code" value="c"><input name="iss" value="i"></form>`},
			nil, nil},
		{"records of operators are of their time", "GET", "/admin/v1/users", said{},
			said{200, nil, `{"users":[{"created_at":"1999-05-03T12:00:00Z","updated_at":"1999-05-03T12:00:00Z"}]}`},
			said{200, nil, `{"users":[{"created_at":"1999-05-03T12:00:00Z","updated_at":"1999-05-03T11:00:00Z"}]}`}, nil, nil},
		{"records of operators are of their time", "GET", "/admin/v1/audit", said{},
			said{200, nil, `{"events":[]}`}, said{200, nil, `{"events":[{"time":"2999-05-03T12:00:00.000Z"}]}`}, nil, nil},
		{"records of operators are those of the path", "GET", "/admin/v1/users/7", said{},
			said{200, nil, `{"id":7}`}, said{200, nil, `{"id":8}`}, nil, nil},
		{"records of operators are those of the path", "POST", "/admin/v1/groups", said{},
			said{201, []string{"Location", "/admin/v1/groups/a"}, `{"name":"a"}`},
			said{201, []string{"Location", "/admin/v1/groups/b"}, `{"name":"a"}`}, nil, nil},
		{"operators' responses are for no web page", "GET", "/admin/v1/groups", said{}, said{200, nil, `{"groups":[]}`},
			said{200, []string{"Access-Control-Allow-Origin", "*"}, `{"groups":[]}`}, nil, nil},
		{"Content-Length is the length of the body", "HEAD", "/x", said{},
			said{200, []string{"Content-Length", "2"}, "{}"},
			said{200, []string{"Content-Length", "0"}, "{}"}, nil, nil},
		{"X-RateLimit-Remaining is less than X-RateLimit-Limit", "HEAD", "/api/user", said{},
			said{200, []string{"X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "8"}, ""},
			said{200, []string{"X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "9"}, ""}, nil, nil},
		{"Retry-After ends at X-RateLimit-Reset", "GET", "/api/user", said{},
			said{429, []string{"Retry-After", "60", "X-RateLimit-Reset", "@60"}, ""},
			said{429, []string{"Retry-After", "3", "X-RateLimit-Reset", "@60"}, ""}, nil, nil},
		{"expires_in is exp less iat", "POST", "/oauth/token", said{0, form, signed},
			said{200, nil, `{"access_token":"gtat_1","expires_in":3600}`},
			said{200, nil, `{"access_token":"gtat_1","expires_in":1800}`},
			map[string]said{"/oauth/introspect": {200, nil, `{"active":true,"iat":10,"exp":3610}`}}, nil},
		{"expires_in is exp less iat", "POST", "/oauth/token", said{},
			said{200, nil, `{"access_token":"gtat_1","expires_in":3600}`},
			said{200, nil, `{"access_token":"gtat_1","expires_in":7200}`}, nil, nil},
		{"a refresh token is new", "POST", "/oauth/token", said{0, form, signed},
			said{200, nil, `{"refresh_token":"gtrt_1"}`}, said{200, nil, `{"refresh_token":"gtrt_0"}`},
			map[string]said{"/oauth/introspect": {200, nil, `{"active":true}`}}, nil},
		{"new tokens are active", "POST", "/oauth/token",
			said{0, with(form, "Authorization", "Basic Yzpz"), "grant_type=x"},
			said{400, nil, `{"access_token":"gtat_1"}`}, said{200, nil, `{"access_token":"gtat_1"}`},
			map[string]said{"/oauth/introspect": {200, nil, `{"active":false}`}}, nil},
		{"a revoked token is inactive", "POST", "/oauth/revoke", said{0, form, signed},
			said{503, nil, `{}`}, said{200, nil, `{}`},
			map[string]said{"/oauth/introspect": {200, nil, `{"active":true}`}}, nil},
		{"sub is the id of the profile", "POST", "/oauth/introspect", said{0, form, signed},
			said{200, nil, `{"sub":"1","token_type":"Bearer"}`},
			said{200, nil, `{"sub":"2","token_type":"Bearer"}`},
			map[string]said{"/api/user": {200, nil, `{"id":1}`}}, nil},
		{"both profiles agree, each time", "GET", "/api/user/details", said{},
			said{200, nil, `{"id":1,"bio":null}`}, said{200, nil, `{"id":2,"bio":null}`},
			map[string]said{"/api/user": {200, nil, `{"id":1}`}}, nil},
		{"both profiles agree, each time", "GET", "/api/user", said{},
			said{200, nil, `{}`}, said{200, []string{"Access-Control-Allow-Origin",
				"https://stranger.example", "Vary", "Origin"}, `{}`}, nil, nil},
		{"JSON is UTF-8", "GET", "/api/user", said{},
			said{401, []string{"Content-Type", "application/json; charset=UTF-8"}, `{}`},
			said{401, []string{"Content-Type", "application/json; charset=latin1"}, `{}`}, nil, nil},
		{"iat and exp are seconds since 1970", "POST", "/oauth/introspect", said{},
			said{200, nil, `{"iat":` + now(0).String() + `,"exp":` + now(3600).String() + `}`},
			said{200, nil, `{"iat":` + now(3600).String() + `,"exp":` + now(7200).String() + `}`},
			nil, nil},
		{"iat and exp are seconds since 1970", "POST", "/oauth/introspect", said{},
			said{200, nil, `{"exp":` + now(30*86400).String() + `}`},
			said{200, nil, `{"exp":` + now(31*86400).String() + `}`}, nil, nil},
		{"Age is at most max-age", "GET", "/x", said{},
			said{200, []string{"Age", "600", "Cache-Control", "private, max-age=600"}, ""},
			said{200, []string{"Age", "601", "Cache-Control", "private, max-age=600"}, ""}, nil, nil},
		{"Age is at most max-age", "GET", "/x", said{},
			said{200, []string{"Age", "0", "Cache-Control", "max-age=600", "X-Cache", "miss"}, ""},
			said{200, []string{"Age", "1", "Cache-Control", "max-age=600", "X-Cache", "miss"}, ""},
			nil, nil},
		{"lat, lon and utcOffsetSeconds are on Earth", "GET", "/api/lookup", said{},
			said{200, cors, `{"location":{"lat":-90,"lon":180,"utcOffsetSeconds":20700}}`},
			said{200, cors, `{"location":{"lat":-90.5,"lon":180,"utcOffsetSeconds":20700}}`}, nil, nil},
		{"lat, lon and utcOffsetSeconds are on Earth", "POST", "/api/bulk", said{},
			said{200, cors, `{"count":1,"failed":0,"results":[{"location":{"utcOffsetSeconds":0}}]}`},
			said{200, cors, `{"count":1,"failed":0,"results":[{"location":{"utcOffsetSeconds":60}}]}`},
			nil, nil},
		{"ipVersion is that of ip", "GET", "/api/my-ip", said{},
			said{200, cors, `{"location":{},"ip":"::1","ipVersion":"IPv6"}`},
			said{200, cors, `{"location":{},"ip":"::1","ipVersion":"IPv4"}`}, nil, nil},
		{"count and failed count the results", "POST", "/api/bulk", said{},
			said{200, cors, `{"count":2,"failed":1,"results":[{"ok":true},{"ok":false}]}`},
			said{200, cors, `{"count":2,"failed":0,"results":[{"ok":true},{"ok":false}]}`}, nil, nil},
		{"results are in the order of queries", "POST", "/api/bulk",
			said{0, nil, `{"queries":["a","b"]}`},
			said{200, cors, `{"count":2,"failed":0,"results":[{"query":"a"},{"query":"b"}]}`},
			said{200, cors, `{"count":2,"failed":0,"results":[{"query":"b"},{"query":"a"}]}`}, nil, nil},
		{"count and failed count the results", "POST", "/api/stream",
			said{0, []string{"Content-Type", "text/plain"}, "a\nb\n"},
			said{200, lines, "{\"query\":\"a\",\"ok\":true}\n{\"query\":\"b\",\"ok\":false}\n{\"done\":true,\"count\":2,\"failed\":1}\n"},
			said{200, lines, "{\"query\":\"a\",\"ok\":true}\n{\"query\":\"b\",\"ok\":false}\n{\"done\":true,\"count\":2,\"failed\":0}\n"}, nil, nil},
		{"results are in the order of queries", "POST", "/api/stream",
			said{0, []string{"Content-Type", "application/x-ndjson"}, "\"a\"\n\n{\"query\":\"b\"}\n"},
			said{200, lines, "{\"query\":\"a\"}\n{\"query\":\"b\"}\n{\"count\":2,\"failed\":0}"},
			said{200, lines, "{\"query\":\"b\"}\n{\"query\":\"a\"}\n{\"count\":2,\"failed\":0}"}, nil, nil},
		{"results are in the order of queries", "POST", "/api/stream",
			said{0, []string{"Content-Type", "text/plain"}, "a\nb\n"},
			said{200, lines, "{\"query\":\"a\"}\n{\"query\":\"b\"}\n{\"count\":2,\"failed\":0}"},
			said{200, lines, "{\"query\":\"a\"}\n{\"count\":1,\"failed\":0}"}, nil, nil},
		{"web pages may read every lookup", "GET", "/api/lookup", said{}, said{502, cors, ""},
			said{502, nil, ""}, nil, nil},
		{"web pages may read every lookup", "GET", "/api/lookup", said{}, said{502, cors, ""},
			said{502, []string{"Access-Control-Allow-Origin", "*"}, ""}, nil, nil},
		{"Access-Control-Allow-Origin is the page's origin", "POST", "/oauth/token",
			said{0, []string{"Origin", "https://a.example"}, ""},
			said{400, with(cors, "Access-Control-Allow-Origin", "https://a.example", "Vary",
				"Origin"), ""},
			said{400, with(cors, "Access-Control-Allow-Origin", "https://b.example", "Vary",
				"Origin"), ""}, nil, nil},
		{"endpoints are below the issuer", "GET", "/.well-known/oauth-authorization-server", said{},
			said{200, nil, `{"issuer":"https://a","token_endpoint":"https://a/t"}`},
			said{200, nil, `{"issuer":"https://a","token_endpoint":"https://a.example/t"}`}, nil, nil},
		{"lists of metadata are complete", "GET",
			"/.well-known/oauth-authorization-server", said{},
			said{200, nil, `{"response_types_supported":["code"]}`},
			said{200, nil, `{"response_types_supported":["code","token"]}`}, nil, nil},
		{"programs get no cookies and no guesses", "GET", "/api/user", said{},
			said{200, nil, `{}`}, said{200, []string{"Set-Cookie", "a=b"}, `{}`}, nil, nil},
		{"programs get no cookies and no guesses", "GET", "/api/lookup", said{},
			said{200, cors, `{}`},
			said{200, with(cors, "X-Content-Type-Options", "sniff"), `{}`}, nil, nil},
		{"what is about people and tokens is not stored", "POST", "/oauth/revoke", said{},
			said{503, nil, `{}`}, said{503, []string{"Cache-Control", "max-age=60"}, `{}`}, nil, nil},
		{"ok is false for errors", "GET", "/api/lookup", said{}, said{400, cors, `{"ok":false}`},
			said{400, cors, `{"ok":true}`}, nil, nil},
		{"an id_token is signed by a key of the key set, for this response", "POST", "/oauth/token",
			said{}, said{200, nil, `{}`}, said{200, nil, `{"id_token":"a.b.c"}`},
			map[string]said{"/oauth/jwks": {200, nil, `{"keys":[` + ecKey + `}]}`}}, nil},
		{"sub of userinfo is the id of the profile", "GET", "/oauth/userinfo", said{},
			said{200, nil, `{"sub":"1"}`}, said{200, nil, `{"sub":"2"}`},
			map[string]said{"/api/user": {200, nil, `{"id":1}`}}, nil},
		{"sub of userinfo is the id of the profile", "GET", "/oauth/userinfo", said{},
			said{200, nil, `{"sub":"1","updated_at":` + string(now(0)) + `}`},
			said{200, nil, `{"sub":"1","updated_at":5}`}, nil, nil},
		{"challenges of userinfo name the metadata", "GET", "/oauth/userinfo",
			said{0, []string{"Authorization", "Bearer x"}, ""},
			said{401, []string{"WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="x"`}, `{}`},
			said{401, []string{"WWW-Authenticate", `Bearer resource_metadata="x"`}, `{}`}, nil, nil},
		{"challenges of userinfo name the metadata", "GET", "/oauth/userinfo", said{},
			said{401, []string{"WWW-Authenticate", `Bearer resource_metadata="x"`}, `{}`},
			said{401, []string{"WWW-Authenticate", `Bearer`}, `{}`}, nil, nil},
		{"keys are different and public", "GET", "/oauth/jwks", said{},
			said{200, nil, `{"keys":[` + ecKey + `}]}`},
			said{200, nil, `{"keys":[` + ecKey + `},` + ecKey + `}]}`}, nil, nil},
		{"keys are different and public", "GET", "/oauth/jwks", said{},
			said{200, nil, `{"keys":[` + ecKey + `}]}`},
			said{200, nil, `{"keys":[` + ecKey + `,"d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}]}`}, nil, nil},
		{"device codes are for ten minutes", "POST", "/oauth/device_authorization", said{},
			said{200, nil, `{"expires_in":600,"interval":5,"verification_uri":"u","user_code":"B","verification_uri_complete":"u?user_code=B"}`},
			said{200, nil, `{"expires_in":600,"interval":5,"verification_uri":"u","user_code":"B","verification_uri_complete":"u?user_code=C"}`}, nil, nil},
		{"Content-Length is the length of the body", "GET", "/x", said{},
			said{200, []string{"Content-Length", "2"}, "{}"},
			said{200, []string{"Content-Length", "3"}, "{}"}, nil, nil},
	} {
		tested[row.relation] = true
		for _, one := range []struct {
			response said
			breaks   bool
		}{{row.good, false}, {row.bad, true}} {
			path, _, _ := strings.Cut(row.path, "?")
			responses := map[string]said{"/oauth/introspect": {401, nil, ""},
				"/api/user": {401, nil, ""}, "/api/user/details": {401, nil, ""}}
			for path, response := range row.other {
				responses[path] = response
			}
			responses[path] = one.response
			got := brokenBy(t, row.method, row.path, row.request, responses, row.values)
			if row.relation != described { // those responses are cut short
				got = slices.DeleteFunc(got, func(s string) bool {
					return strings.Contains(s, ": "+described+": ")
				})
			}
			breaks := slices.ContainsFunc(got, func(s string) bool {
				return strings.Contains(s, ": "+row.relation+": ")
			})
			if breaks != one.breaks || !one.breaks && len(got) > 0 {
				t.Errorf("%s: %+v: got %q, want it broken: %v", row.relation, one.response, got,
					one.breaks)
			}
		}
	}
	tested["X-Request-Id is new"] = true   // by TestRequestIDIsNew
	tested["what is issued is new"] = true // by TestIssuedIsNew
	for _, r := range coverage.Relations() {
		if !tested[r.Name] {
			t.Errorf("got no test of the relation %q, want one", r.Name)
		}
	}
}

// TestRequestIDIsNew sends three requests to a service that uses one request ID.
func TestRequestIDIsNew(t *testing.T) {
	broken := 0
	service := coverage.Checked(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "a")
	}), nil, func(error) { broken++ })
	for _, own := range []string{"", "", "a"} {
		r := httptest.NewRequest("GET", "/x", nil)
		r.Header.Set("X-Request-Id", own)
		service.ServeHTTP(httptest.NewRecorder(), r)
	}
	if broken != 1 {
		t.Errorf("got %d broken, want the second, which has no ID of its own", broken)
	}
}

// TestIssuedIsNew sends two requests each to a service that makes up nothing.
func TestIssuedIsNew(t *testing.T) {
	for path, body := range map[string]string{
		"/oauth/token":                `{"access_token":"a"}`,
		"/oauth/device_authorization": `{"device_code":"d"}`,
		"/oauth/register":             `{"client_id":"c","client_secret":"s"}`,
	} {
		broken := 0
		service := coverage.Checked(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if _, err := w.Write([]byte(body)); err != nil {
				t.Error(err)
			}
		}), nil, func(err error) {
			if strings.Contains(err.Error(), "what is issued is new") {
				broken++
			}
		})
		for range 2 {
			service.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, nil))
		}
		if broken != 1 {
			t.Errorf("%s: got %d broken, want the second", path, broken)
		}
	}
}

// TestMalformedValues requires that the checks of relations survive any JSON.
func TestMalformedValues(t *testing.T) {
	for _, body := range []string{`[]`, `5`, `null`, `{"results":[1,{"query":{}}],"count":{}}`,
		`{"id":{},"access_token":{},"refresh_token":{},"sub":1,"iat":"x","exp":{}}`,
		`{"keys":[1,{"kty":{}}],"id_token":"e30.e30.e30","expires_in":1,"user_code":{}}`,
		`{"location":[],"retry_after":"x","issuer":1,"ok":"x"}`} {
		for _, path := range []string{"/api/user", "/api/user/details", "/api/bulk", "/api/lookup",
			"/oauth/token", "/oauth/introspect", "/oauth/revoke",
			"/.well-known/oauth-authorization-server", "/oauth/userinfo", "/oauth/jwks",
			"/oauth/device_authorization"} {
			all := map[string]said{}
			for _, other := range []string{"/api/user", "/api/user/details", "/oauth/introspect",
				"/oauth/jwks", "/.well-known/openid-configuration", path} {
				all[other] = said{200, []string{"Content-Type", "application/json"}, body}
			}
			brokenBy(t, "GET", path, said{0, []string{"Content-Type",
				"application/x-www-form-urlencoded"},
				"client_id=c&client_secret=s&token=t&grant_type=g"}, all, nil)
			brokenBy(t, "GET", path, said{0, nil, `{"queries":[{}]}`}, all, nil)
		}
	}
}
