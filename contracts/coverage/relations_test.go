package coverage_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/contracts/coverage"
)

// said is a response of a made-up service, or a request to it.
type said struct {
	status int
	header []string // alternating names and values
	body   string
}

// ecKey is a public key without its last brace: that of RFC 7515 appendix A.3.
const ecKey = `{"kty":"EC","crv":"P-256","kid":"1","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"`

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
func brokenBy(t *testing.T, method, path string, request said, responses map[string]said) []string {
	t.Helper()
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response := responses[r.URL.Path]
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		for i := 0; i < len(response.header); i += 2 {
			w.Header().Set(response.header[i], response.header[i+1])
		}
		w.WriteHeader(response.status)
		if _, err := w.Write([]byte(response.body)); err != nil {
			t.Error(err)
		}
	})
	var broken []string
	r := httptest.NewRequest(method, path, strings.NewReader(request.body))
	for i := 0; i < len(request.header); i += 2 {
		r.Header.Set(request.header[i], request.header[i+1])
	}
	w := httptest.NewRecorder()
	coverage.Checked(service, func(err error) { broken = append(broken, err.Error()) }).
		ServeHTTP(w, r)
	if want := responses[path]; w.Code != want.status || w.Body.String() != want.body {
		t.Errorf("%s %s: got %d %s, want the response as it is", method, path, w.Code, w.Body)
	}
	return broken
}

// TestRelations sends a response that keeps each relation, and one that breaks it.
func TestRelations(t *testing.T) {
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
	}{
		{"retry_after is Retry-After", "GET", "/api/user", said{},
			said{429, []string{"Retry-After", "8"}, `{"retry_after":7}`},
			said{429, []string{"Retry-After", "9"}, `{"retry_after":7}`}, nil},
		{"retry_after is Retry-After", "GET", "/api/user", said{},
			said{429, nil, `{}`}, said{429, nil, `{"retry_after":7}`}, nil},
		{"Retry-After is in seconds", "POST", "/oauth/token", said{},
			said{503, []string{"Retry-After", "60"}, ""},
			said{503, []string{"Retry-After", "1000"}, ""}, nil},
		{"Retry-After is in seconds", "POST", "/oauth/token", said{},
			said{503, []string{"Retry-After", "1"}, ""},
			said{503, []string{"Retry-After", "Sun, 22 Nov 2026 15:00:00 GMT"}, ""}, nil},
		{"retry_after of items is in seconds", "POST", "/api/bulk", said{},
			said{200, cors, `{"count":1,"failed":1,"results":[{"ok":false,"retry_after":30}]}`},
			said{200, cors, `{"count":1,"failed":1,"results":[{"ok":false,"retry_after":30000}]}`},
			nil},
		{"X-RateLimit-Reset is within the window", "HEAD", "/api/user", said{},
			said{200, []string{"X-RateLimit-Reset", now(59).String()}, ""},
			said{200, []string{"X-RateLimit-Reset", now(3600).String()}, ""}, nil},
		{"X-RateLimit-Remaining is less than X-RateLimit-Limit", "HEAD", "/api/user", said{},
			said{200, []string{"X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "8"}, ""},
			said{200, []string{"X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "9"}, ""}, nil},
		{"Retry-After ends at X-RateLimit-Reset", "GET", "/api/user", said{},
			said{429, []string{"Retry-After", "30", "X-RateLimit-Reset", now(30).String()}, ""},
			said{429, []string{"Retry-After", "3", "X-RateLimit-Reset", now(30).String()}, ""}, nil},
		{"expires_in is exp less iat", "POST", "/oauth/token", said{0, form, signed},
			said{200, nil, `{"access_token":"gtat_1","expires_in":3600}`},
			said{200, nil, `{"access_token":"gtat_1","expires_in":1800}`},
			map[string]said{"/oauth/introspect": {200, nil, `{"active":true,"iat":10,"exp":3610}`}}},
		{"expires_in is exp less iat", "POST", "/oauth/token", said{},
			said{200, nil, `{"access_token":"gtat_1","expires_in":3600}`},
			said{200, nil, `{"access_token":"gtat_1","expires_in":7200}`}, nil},
		{"a refresh token is new", "POST", "/oauth/token", said{0, form, signed},
			said{200, nil, `{"refresh_token":"gtrt_1"}`}, said{200, nil, `{"refresh_token":"gtrt_0"}`},
			map[string]said{"/oauth/introspect": {200, nil, `{"active":true}`}}},
		{"new tokens are active", "POST", "/oauth/token",
			said{0, with(form, "Authorization", "Basic Yzpz"), "grant_type=x"},
			said{400, nil, `{"access_token":"gtat_1"}`}, said{200, nil, `{"access_token":"gtat_1"}`},
			map[string]said{"/oauth/introspect": {200, nil, `{"active":false}`}}},
		{"a revoked token is inactive", "POST", "/oauth/revoke", said{0, form, signed},
			said{503, nil, `{}`}, said{200, nil, `{}`},
			map[string]said{"/oauth/introspect": {200, nil, `{"active":true}`}}},
		{"sub is the id of the profile", "POST", "/oauth/introspect", said{0, form, signed},
			said{200, nil, `{"sub":"1","token_type":"Bearer"}`},
			said{200, nil, `{"sub":"2","token_type":"Bearer"}`},
			map[string]said{"/api/user": {200, nil, `{"id":1}`}}},
		{"both profiles agree, each time", "GET", "/api/user/details", said{},
			said{200, nil, `{"id":1,"bio":null}`}, said{200, nil, `{"id":2,"bio":null}`},
			map[string]said{"/api/user": {200, nil, `{"id":1}`}}},
		{"both profiles agree, each time", "GET", "/api/user", said{},
			said{200, nil, `{}`}, said{200, []string{"Access-Control-Allow-Origin",
				"https://stranger.example", "Vary", "Origin"}, `{}`}, nil},
		{"JSON is UTF-8", "GET", "/api/user", said{},
			said{401, []string{"Content-Type", "application/json; charset=UTF-8"}, `{}`},
			said{401, []string{"Content-Type", "application/json; charset=latin1"}, `{}`}, nil},
		{"iat and exp are seconds since 1970", "POST", "/oauth/introspect", said{},
			said{200, nil, `{"iat":` + now(0).String() + `,"exp":` + now(3600).String() + `}`},
			said{200, nil, `{"iat":` + now(3600).String() + `,"exp":` + now(7200).String() + `}`},
			nil},
		{"iat and exp are seconds since 1970", "POST", "/oauth/introspect", said{},
			said{200, nil, `{"exp":` + now(30*86400).String() + `}`},
			said{200, nil, `{"exp":` + now(31*86400).String() + `}`}, nil},
		{"Age is at most max-age", "GET", "/x", said{},
			said{200, []string{"Age", "600", "Cache-Control", "private, max-age=600"}, ""},
			said{200, []string{"Age", "601", "Cache-Control", "private, max-age=600"}, ""}, nil},
		{"Age is at most max-age", "GET", "/x", said{},
			said{200, []string{"Age", "0", "Cache-Control", "max-age=600", "X-Cache", "miss"}, ""},
			said{200, []string{"Age", "1", "Cache-Control", "max-age=600", "X-Cache", "miss"}, ""},
			nil},
		{"lat, lon and utcOffsetSeconds are on Earth", "GET", "/api/lookup", said{},
			said{200, cors, `{"location":{"lat":-90,"lon":180,"utcOffsetSeconds":20700}}`},
			said{200, cors, `{"location":{"lat":-90.5,"lon":180,"utcOffsetSeconds":20700}}`}, nil},
		{"lat, lon and utcOffsetSeconds are on Earth", "POST", "/api/bulk", said{},
			said{200, cors, `{"count":1,"failed":0,"results":[{"location":{"utcOffsetSeconds":0}}]}`},
			said{200, cors, `{"count":1,"failed":0,"results":[{"location":{"utcOffsetSeconds":60}}]}`},
			nil},
		{"ipVersion is that of ip", "GET", "/api/my-ip", said{},
			said{200, cors, `{"location":{},"ip":"::1","ipVersion":"IPv6"}`},
			said{200, cors, `{"location":{},"ip":"::1","ipVersion":"IPv4"}`}, nil},
		{"count and failed count the results", "POST", "/api/bulk", said{},
			said{200, cors, `{"count":2,"failed":1,"results":[{"ok":true},{"ok":false}]}`},
			said{200, cors, `{"count":2,"failed":0,"results":[{"ok":true},{"ok":false}]}`}, nil},
		{"results are in the order of queries", "POST", "/api/bulk",
			said{0, nil, `{"queries":["a","b"]}`},
			said{200, cors, `{"count":2,"failed":0,"results":[{"query":"a"},{"query":"b"}]}`},
			said{200, cors, `{"count":2,"failed":0,"results":[{"query":"b"},{"query":"a"}]}`}, nil},
		{"count and failed count the results", "POST", "/api/stream",
			said{0, []string{"Content-Type", "text/plain"}, "a\nb\n"},
			said{200, lines, "{\"query\":\"a\",\"ok\":true}\n{\"query\":\"b\",\"ok\":false}\n{\"done\":true,\"count\":2,\"failed\":1}\n"},
			said{200, lines, "{\"query\":\"a\",\"ok\":true}\n{\"query\":\"b\",\"ok\":false}\n{\"done\":true,\"count\":2,\"failed\":0}\n"}, nil},
		{"results are in the order of queries", "POST", "/api/stream",
			said{0, []string{"Content-Type", "application/x-ndjson"}, "\"a\"\n\n{\"query\":\"b\"}\n"},
			said{200, lines, "{\"query\":\"a\"}\n{\"query\":\"b\"}\n{\"count\":2,\"failed\":0}"},
			said{200, lines, "{\"query\":\"b\"}\n{\"query\":\"a\"}\n{\"count\":2,\"failed\":0}"}, nil},
		{"results are in the order of queries", "POST", "/api/stream",
			said{0, []string{"Content-Type", "text/plain"}, "a\nb\n"},
			said{200, lines, "{\"query\":\"a\"}\n{\"query\":\"b\"}\n{\"count\":2,\"failed\":0}"},
			said{200, lines, "{\"query\":\"a\"}\n{\"count\":1,\"failed\":0}"}, nil},
		{"web pages may read every lookup", "GET", "/api/lookup", said{}, said{502, cors, ""},
			said{502, nil, ""}, nil},
		{"web pages may read every lookup", "GET", "/api/lookup", said{}, said{502, cors, ""},
			said{502, []string{"Access-Control-Allow-Origin", "*"}, ""}, nil},
		{"Access-Control-Allow-Origin is the page's origin", "POST", "/oauth/token",
			said{0, []string{"Origin", "https://a.example"}, ""},
			said{400, with(cors, "Access-Control-Allow-Origin", "https://a.example", "Vary",
				"Origin"), ""},
			said{400, with(cors, "Access-Control-Allow-Origin", "https://b.example", "Vary",
				"Origin"), ""}, nil},
		{"endpoints are below the issuer", "GET", "/.well-known/oauth-authorization-server", said{},
			said{200, nil, `{"issuer":"https://a","token_endpoint":"https://a/t"}`},
			said{200, nil, `{"issuer":"https://a","token_endpoint":"https://a.example/t"}`}, nil},
		{"only codes, device codes, refresh tokens and client credentials are offered", "GET",
			"/.well-known/oauth-authorization-server", said{},
			said{200, nil, `{"response_types_supported":["code"]}`},
			said{200, nil, `{"response_types_supported":["code","token"]}`}, nil},
		{"programs get no cookies and no guesses", "GET", "/api/user", said{},
			said{200, nil, `{}`}, said{200, []string{"Set-Cookie", "a=b"}, `{}`}, nil},
		{"programs get no cookies and no guesses", "GET", "/api/lookup", said{},
			said{200, cors, `{}`},
			said{200, with(cors, "X-Content-Type-Options", "sniff"), `{}`}, nil},
		{"what is about people and tokens is not stored", "POST", "/oauth/revoke", said{},
			said{503, nil, `{}`}, said{503, []string{"Cache-Control", "max-age=60"}, `{}`}, nil},
		{"ok is false for errors", "GET", "/api/lookup", said{}, said{400, cors, `{"ok":false}`},
			said{400, cors, `{"ok":true}`}, nil},
		{"an id_token is signed by a key of the key set, for this response", "POST", "/oauth/token",
			said{}, said{200, nil, `{}`}, said{200, nil, `{"id_token":"a.b.c"}`},
			map[string]said{"/oauth/jwks": {200, nil, `{"keys":[` + ecKey + `}]}`}}},
		{"sub of userinfo is the id of the profile", "GET", "/oauth/userinfo", said{},
			said{200, nil, `{"sub":"1"}`}, said{200, nil, `{"sub":"2"}`},
			map[string]said{"/api/user": {200, nil, `{"id":1}`}}},
		{"sub of userinfo is the id of the profile", "GET", "/oauth/userinfo", said{},
			said{200, nil, `{"sub":"1","updated_at":` + string(now(0)) + `}`},
			said{200, nil, `{"sub":"1","updated_at":5}`}, nil},
		{"challenges of userinfo name the metadata", "GET", "/oauth/userinfo",
			said{0, []string{"Authorization", "Bearer x"}, ""},
			said{401, []string{"WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="x"`}, `{}`},
			said{401, []string{"WWW-Authenticate", `Bearer resource_metadata="x"`}, `{}`}, nil},
		{"challenges of userinfo name the metadata", "GET", "/oauth/userinfo", said{},
			said{401, []string{"WWW-Authenticate", `Bearer resource_metadata="x"`}, `{}`},
			said{401, []string{"WWW-Authenticate", `Bearer`}, `{}`}, nil},
		{"keys are different and public", "GET", "/oauth/jwks", said{},
			said{200, nil, `{"keys":[` + ecKey + `}]}`},
			said{200, nil, `{"keys":[` + ecKey + `},` + ecKey + `}]}`}, nil},
		{"keys are different and public", "GET", "/oauth/jwks", said{},
			said{200, nil, `{"keys":[` + ecKey + `}]}`},
			said{200, nil, `{"keys":[` + ecKey + `,"d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}]}`}, nil},
		{"device codes are for ten minutes", "POST", "/oauth/device_authorization", said{},
			said{200, nil, `{"expires_in":600,"interval":5,"verification_uri":"u","user_code":"B","verification_uri_complete":"u?user_code=B"}`},
			said{200, nil, `{"expires_in":600,"interval":5,"verification_uri":"u","user_code":"B","verification_uri_complete":"u?user_code=C"}`}, nil},
		{"Content-Length is the length of the body", "GET", "/x", said{},
			said{200, []string{"Content-Length", "2"}, "{}"},
			said{200, []string{"Content-Length", "3"}, "{}"}, nil},
	} {
		tested[row.relation] = true
		for _, one := range []struct {
			response said
			breaks   bool
		}{{row.good, false}, {row.bad, true}} {
			responses := map[string]said{row.path: one.response, "/oauth/introspect": {401, nil, ""},
				"/api/user": {401, nil, ""}, "/api/user/details": {401, nil, ""}}
			for path, response := range row.other {
				responses[path] = response
			}
			responses[row.path] = one.response
			got := brokenBy(t, row.method, row.path, row.request, responses)
			breaks := slices.ContainsFunc(got, func(s string) bool {
				return strings.Contains(s, ": "+row.relation+": ")
			})
			if breaks != one.breaks || !one.breaks && len(got) > 0 {
				t.Errorf("%s: %+v: got %q, want it broken: %v", row.relation, one.response, got,
					one.breaks)
			}
		}
	}
	tested["X-Request-Id is new"] = true // by TestRequestIDIsNew
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
	}), func(error) { broken++ })
	for _, own := range []string{"", "", "a"} {
		r := httptest.NewRequest("GET", "/x", nil)
		r.Header.Set("X-Request-Id", own)
		service.ServeHTTP(httptest.NewRecorder(), r)
	}
	if broken != 1 {
		t.Errorf("got %d broken, want the second, which has no ID of its own", broken)
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
				"client_id=c&client_secret=s&token=t&grant_type=g"}, all)
			brokenBy(t, "GET", path, said{0, nil, `{"queries":[{}]}`}, all)
		}
	}
}
