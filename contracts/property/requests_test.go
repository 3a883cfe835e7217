package property_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"gatehouse/contracts"
	"gatehouse/httpedge"
)

// operation is an operation of the document.
type operation struct {
	method, path string
	parameters   []string // of the query
	body         *openapi3.RequestBody
	bearer       bool // it takes an access token
}

// operations returns those with the tag contract, and HEAD and OPTIONS of their paths, but for the
// admin API, whose clients are operators.
func operations(t *testing.T) []operation {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(httpedge.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	var all []operation
	paths := doc.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := paths[path]
		if !slices.ContainsFunc(slices.Collect(maps.Values(item.Operations())),
			func(o *openapi3.Operation) bool { return slices.Contains(o.Tags, "contract") }) ||
			strings.HasPrefix(path, "/admin/") {
			continue
		}
		for _, method := range slices.Sorted(maps.Keys(item.Operations())) {
			o := item.Operations()[method]
			one := operation{method: method, path: path}
			for _, p := range o.Parameters {
				one.parameters = append(one.parameters, p.Value.Name)
			}
			if o.RequestBody != nil {
				one.body = o.RequestBody.Value
			}
			if o.Security != nil {
				one.bearer = slices.ContainsFunc(*o.Security,
					func(r openapi3.SecurityRequirement) bool { return r["bearer"] != nil })
			}
			all = append(all, one)
		}
	}
	return all
}

// request is a request that was drawn.
type request struct {
	method, target string
	header         http.Header
	body           string
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %q %.300q", r.method, r.target, r.header, r.body)
}

// known holds good values of parameters, by name: those of the document, of the states and of
// earlier responses.
type known map[string][]string

// newKnown returns the values that need no state.
func newKnown() known {
	return known{
		"q": {"8.8.8.8", "2001:4860:4860::8888", "example.com", " 8.8.8.8 ", "10.0.0.1", "192.0.2.1",
			"5.255.255.1", "nxdomain.example.com", "bücher.example", "http://x", "::ffff:8.8.8.8"},
		"fields":  {"country", "lat,lon", "network,flags", "data", "country,country"},
		"details": {"0", "1"},
		"client_id": {contracts.DefaultClientID, contracts.OtherClientID,
			"https://app.example/metadata"},
		"client_secret": {contracts.DefaultClientSecret, contracts.OtherClientSecret},
		"redirect_uri":  {contracts.DefaultRedirectURI},
		"grant_type": {"authorization_code", "refresh_token", "client_credentials",
			"urn:ietf:params:oauth:grant-type:device_code", "urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token":        {contracts.ExampleAccessToken},
		"subject_token_type":   {"urn:ietf:params:oauth:token-type:access_token"},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"audience":             {"https://mail.example"},
		"scope": {"openid", "view-user", "view-user detail-user", "openid profile email phone address",
			"openid offline_access", "read write"},
		"response_type": {"code"}, "response_mode": {"query", "form_post"},
		"state": {"s1", "a b&c=d/é?%#\"'"}, "nonce": {"n1"}, "max_age": {"0", "3600"},
		"prompt":               {"none", "login", "consent", "login consent", "select_account"},
		"skip_account_chooser": {"true"}, "code_challenge": {contracts.CodeChallenge},
		"code_challenge_method": {"S256"}, "code_verifier": {contracts.CodeVerifier},
		"resource": {contracts.DefaultResource, "https://mail.example"}, "code": {contracts.ExampleCode},
		"refresh_token": {contracts.ExampleRefreshToken}, "token": {contracts.ExampleAccessToken,
			contracts.ExampleRefreshToken}, "access_token": {contracts.ExampleAccessToken},
		"token_type_hint":  {"access_token", "refresh_token"},
		"device_code":      {contracts.ExampleDeviceCode},
		"client_assertion": {contracts.ExampleAssertion}, "client_assertion_type": {
			"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"post_logout_redirect_uri": {"https://app.example/bye"}, "login_hint": {"ada@example.com"},
		"logout_hint": {"ada@example.com"}, "ui_locales": {"de"}, "acr_values": {"1"},
	}
}

// learn adds a value that the service or a state has given.
func (k known) learn(name, value string) {
	if value != "" && !slices.Contains(k[name], value) {
		k[name] = append(k[name], value)
	}
}

// Kinds of requests.
const (
	valid  = "valid"
	nearly = "nearly valid"
	wild   = "hostile"
)

// hostile draws a text that nobody should send.
var hostile = rapid.OneOf(
	rapid.SampledFrom([]string{"", " ", "\x00", "\r\nX-Evil: 1", "../../etc/passwd", "%00", "%", "%zz",
		"'\"><script>", "{}", "[]", "null", "-1", "1e999", "true", "\u202eabc", "\xff\xfe", "𝕏",
		strings.Repeat("a", 300), strings.Repeat("a", 70_000), "a,b;c", "Ā", "=&=&", "*/*;q=",
		"Bearer", "Basic Og==", "javascript:alert(1)", "//evil.example", "127.0.0.1", "0x7f.1",
		strings.Repeat("1.", 200), "fe80::1%eth0", "١٢٣", "xn--", "a..b", strings.Repeat("[", 1000)}),
	rapid.String(), rapid.StringN(1, 40, -1))

// value draws a value of a parameter.
func (k known) value(t *rapid.T, name, kind string) string {
	good := k[name]
	if len(good) == 0 {
		good = []string{"x"}
	}
	v := rapid.SampledFrom(good).Draw(t, name)
	switch {
	case kind == nearly && rapid.IntRange(0, 3).Draw(t, "spoil "+name) == 0:
		return rapid.SampledFrom([]string{"", v + " ", strings.ToUpper(v), v + "x", v + "," + v,
			v[:len(v)/2], "\t" + v}).Draw(t, name+" spoiled")
	case kind == wild && rapid.Bool().Draw(t, "break "+name):
		return hostile.Draw(t, name+" broken")
	}
	return v
}

// pairs draws parameters with these names, in the form of a query or a form body.
func (k known) pairs(t *rapid.T, names, required []string, kind string) string {
	var all []string
	for _, name := range names {
		times := 1
		switch {
		case kind == valid && slices.Contains(required, name):
		case kind == wild:
			times = rapid.SampledFrom([]int{1, 1, 0, 2}).Draw(t, "times "+name)
		default:
			times = rapid.SampledFrom([]int{0, 1}).Draw(t, "times "+name)
		}
		for range times {
			all = append(all, url.QueryEscape(name)+"="+url.QueryEscape(k.value(t, name, kind)))
		}
	}
	if kind == wild && rapid.IntRange(0, 4).Draw(t, "raw") == 0 {
		all = append(all, rapid.SampledFrom([]string{"&", "=", "a=%zz", ";", "q", "%", "q=1&q=2",
			strings.Repeat("x=1&", 2000)}).Draw(t, "raw text"))
	}
	return strings.Join(all, "&")
}

// draw draws a request for an operation.
func (k known) draw(t *rapid.T, all []operation) request {
	o := rapid.SampledFrom(all).Draw(t, "operation")
	kind := rapid.SampledFrom([]string{valid, valid, nearly, wild}).Draw(t, "kind")
	r := request{method: o.method, target: o.path, header: http.Header{}}
	if kind == wild {
		switch rapid.IntRange(0, 9).Draw(t, "where") {
		case 0:
			r.method = rapid.SampledFrom([]string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH",
				"OPTIONS", "BREW"}).Draw(t, "method")
		case 1:
			r.target += rapid.SampledFrom([]string{"/", "/x", "//", "%2f", "/..", ";x=1", ".json",
				"%20"}).Draw(t, "path")
		}
	}
	required := []string{"q", "response_type", "client_id", "redirect_uri"}
	if query := k.pairs(t, o.parameters, required, kind); query != "" {
		r.target += "?" + query
	}
	k.drawHeader(t, o, kind, r.header)
	if o.body != nil {
		k.drawBody(t, o, kind, &r)
	}
	return r
}

// drawHeader draws headers. Their values are those that HTTP allows.
func (k known) drawHeader(t *rapid.T, o operation, kind string, h http.Header) {
	choose := func(name string, values ...string) {
		if v := rapid.SampledFrom(append(values, "")).Draw(t, name); v != "" {
			h.Set(name, v)
		}
	}
	choose("Accept", "application/json", "text/html", "*/*;q=0", "text/html;q=0.2,*/*")
	choose("Origin", "https://app.example", "https://stranger.example", "null")
	choose("X-Request-Id", "abc-1", strings.Repeat("a", 64), strings.Repeat("a", 65), "a b", "é")
	choose("Accept-Language", "de", "en;q=x", "*")
	if cookies := k["cookie"]; len(cookies) > 0 {
		choose("Cookie", append([]string{"gatehouse=x"}, cookies...)...)
	}
	if strings.HasPrefix(o.path, "/api/") && rapid.IntRange(0, 9).Draw(t, "key") == 0 {
		h.Set("X-Api-Key", "wrong")
	}
	if o.method == http.MethodOptions {
		choose("Access-Control-Request-Method", "GET", "POST", "x")
		choose("Access-Control-Request-Headers", "authorization", "x-evil")
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(
		k.value(t, "client_id", valid)+":"+k.value(t, "client_secret", valid)))
	bearer := "Bearer " + k.value(t, "access_token", valid)
	switch {
	case o.bearer && kind == valid:
		h.Set("Authorization", bearer)
	case strings.HasPrefix(o.path, "/oauth/") && rapid.Bool().Draw(t, "signed"):
		h.Set("Authorization", basic)
	case kind != valid:
		choose("Authorization", bearer, basic, strings.ToLower(bearer), "Bearer", "Bearer a b",
			"Basic !", "Digest x", bearer+","+bearer, "Bearer "+strings.Repeat("a", 5000))
	}
	if kind == wild && rapid.IntRange(0, 4).Draw(t, "more headers") == 0 {
		choose("Range", "bytes=0-1")
		choose("If-None-Match", "*", `"x"`)
		choose("Content-Encoding", "gzip", "br")
		choose("X-Forwarded-For", "8.8.4.4", "10.0.0.1", "x", "1.1.1.1, 2.2.2.2")
		choose("X-Forwarded-Proto", "https", "x")
		choose("Forwarded", "for=_x", "for=\"[::1]:80\"")
		choose("X-Http-Method-Override", "DELETE")
		choose("Mcp-Protocol-Version", "2025-06-18")
	}
}

// drawBody draws a body of a type that the document has, or another.
func (k known) drawBody(t *rapid.T, o operation, kind string, r *request) {
	types := slices.Sorted(maps.Keys(o.body.Content))
	media := rapid.SampledFrom(types).Draw(t, "type")
	switch schema := o.body.Content[media].Schema.Value; media {
	case "application/json":
		r.body = k.json(t, o, kind)
	case "application/x-www-form-urlencoded":
		names := slices.Sorted(maps.Keys(schema.Properties))
		if len(names) == 0 { // those of GET
			names = []string{"response_type", "client_id", "redirect_uri", "scope", "state", "nonce",
				"id_token_hint", "post_logout_redirect_uri"}
		}
		r.body = k.pairs(t, names, schema.Required, kind)
	default:
		r.body = strings.Join(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			q := strings.ReplaceAll(k.value(t, "q", kind), "\n", "")
			if media == "application/x-ndjson" && kind != wild {
				return fmt.Sprintf("%q", q)
			}
			return q
		}), 1, 6).Draw(t, "lines"), "\n")
	}
	if kind == wild {
		switch rapid.IntRange(0, 6).Draw(t, "body") {
		case 0:
			r.body = hostile.Draw(t, "text")
		case 1:
			media = rapid.SampledFrom([]string{"", "text/csv", "application/json",
				"application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
				media + "; charset=latin1", media + ";;"}).Draw(t, "another type")
		}
	}
	if media != "" {
		r.header.Set("Content-Type", media)
	}
}

// json draws a body of JSON: queries of a list, or a registration.
func (k known) json(t *rapid.T, o operation, kind string) string {
	if o.path == "/oauth/register" {
		body := `{"redirect_uris":[%q],"client_name":%q,"token_endpoint_auth_method":%q,"scope":%q}`
		return fmt.Sprintf(body, k.value(t, "redirect_uri", kind), k.value(t, "state", kind),
			rapid.SampledFrom([]string{"none", "client_secret_basic", "client_secret_post",
				"private_key_jwt"}).Draw(t, "method"), k.value(t, "scope", kind))
	}
	most := map[string]int{valid: 4, nearly: 51, wild: 8}[kind]
	queries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		q := strings.ToValidUTF8(k.value(t, "q", kind), "")
		if kind == wild && rapid.IntRange(0, 5).Draw(t, "no text") == 0 {
			return rapid.SampledFrom([]string{"1", "null", "{}", "[]", "true"}).Draw(t, "json")
		}
		text := strings.NewReplacer("\\", "\\\\", "\"", "\\\"", "\n", "\\n", "\r", "\\r", "\t", "\\t").
			Replace(q)
		return `"` + text + `"`
	}), map[string]int{valid: 1}[kind], most).Draw(t, "queries")
	return `{"queries":[` + strings.Join(queries, ",") + `]}`
}
