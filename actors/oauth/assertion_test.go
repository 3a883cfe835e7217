package oauth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
)

const bearerType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

func signed(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, claims any) string {
	return typed(t, "JWT", alg, key, kid, claims)
}

func typed(
	t *testing.T, typ jose.ContentType, alg jose.SignatureAlgorithm, key any, kid string, claims any,
) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType(typ)
	if kid != "" {
		options = options.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	object, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := object.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAssertions(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&large.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	keys := []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "ec"}, {Key: &large.PublicKey, KeyID: "rsa"}}
	now := time.Unix(1_800_000_000, 0)
	const metadata = "https://app.example/client"
	client := &oauth.Client{ID: "c", Options: oauth.ClientOptions{MetadataURL: metadata}}
	good := map[string]any{"iss": "c", "sub": "c", "aud": "https://id.example", "jti": "1",
		"iat": now.Unix(), "exp": now.Unix() + 60}
	with := func(pairs ...any) map[string]any {
		changed := maps.Clone(good)
		for i := 0; i < len(pairs); i += 2 {
			if changed[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
				delete(changed, pairs[i].(string))
			}
		}
		return changed
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"c","sub":"c","aud":"https://id.example","jti":"1","exp":1800000060}`)) + "."
	es := func(claims any) string { return signed(t, jose.ES256, key, "ec", claims) }
	for what, row := range map[string]struct {
		jwt string
		ok  bool
	}{
		"good":               {es(good), true},
		"RS256":              {signed(t, jose.RS256, large, "rsa", good), true},
		"own typ":            {typed(t, "Client-Authentication+JWT", jose.ES256, key, "ec", good), true},
		"access token":       {typed(t, "at+jwt", jose.ES256, key, "ec", good), false},
		"logout token":       {typed(t, "application/Logout+JWT", jose.ES256, key, "ec", good), false},
		"no kid":             {signed(t, jose.ES256, key, "", good), false},
		"token endpoint":     {es(with("aud", []string{"https://id.example/oauth/token"})), true},
		"several audiences":  {es(with("aud", []string{"https://id.example", "https://other.example"})), false},
		"both of ours":       {es(with("aud", []string{"https://id.example", "https://id.example/oauth/token"})), false},
		"no iat":             {es(with("iat", nil)), true},
		"fraction":           {es(with("exp", float64(now.Unix())+0.5)), true},
		"5 minutes":          {es(with("exp", now.Unix()+300)), true},
		"longer":             {es(with("exp", now.Unix()+400)), false},
		"expired":            {es(with("exp", now.Unix())), false},
		"no exp":             {es(with("exp", nil)), false},
		"exp as text":        {es(with("exp", "1800000060")), false},
		"issued later":       {es(with("iat", now.Unix()+60)), false},
		"issued long ago":    {es(with("iat", now.Unix()-3600)), false},
		"not before":         {es(with("nbf", now.Unix()+60)), false},
		"no jti":             {es(with("jti", nil)), false},
		"long jti":           {es(with("jti", strings.Repeat("x", 257))), false},
		"another issuer":     {es(with("iss", "d")), false},
		"another client":     {es(with("iss", "d", "sub", "d")), false},
		"metadata URL":       {es(with("iss", metadata, "sub", metadata)), true},
		"another audience":   {es(with("aud", "https://other.example")), false},
		"no audience":        {es(with("aud", nil)), false},
		"similar audience":   {es(with("aud", "https://id.example/")), false},
		"PS256":              {signed(t, jose.PS256, large, "rsa", good), false},
		"RS512":              {signed(t, jose.RS512, large, "rsa", good), false},
		"HS256 of a key":     {signed(t, jose.HS256, der, "rsa", good), false},
		"none":               {none, false},
		"unknown kid":        {signed(t, jose.ES256, key, "other", good), false},
		"kid of another key": {signed(t, jose.ES256, key, "rsa", good), false},
		"changed":            {es(good)[:len(es(good))-8] + "AAAAAAAA", false},
		"malformed":          {"x.y.z", false},
		"too long":           {es(with("x", strings.Repeat("x", 9000))), false},
	} {
		request, fault := oauth.ParseTokenRequest([]oauth.Parameter{
			{Name: "grant_type", Value: "client_credentials"},
			{Name: "client_assertion_type", Value: bearerType}, {Name: "client_assertion", Value: row.jwt},
		}, "")
		var a *oauth.Assertion
		if fault == nil {
			a, fault = client.ParseAssertion(request.Assertion,
				[]string{"https://id.example", "https://id.example/oauth/token"}, now)
		}
		ok := fault == nil && a.Key(keys) != nil && a.IsSignedBy(a.Key(keys))
		if ok != row.ok || fault != nil && fault.Code != oauth.InvalidClient {
			t.Errorf("%s: got %v and error %v, want %v", what, ok, fault, row.ok)
		}
	}
}

// TestKeysOfAssertions checks which keys of a set are used, and what is said of the others.
func TestKeysOfAssertions(t *testing.T) {
	first, second := newRSA(t, 2048), newEC(t, elliptic.P256())
	slow := rsa.PublicKey{N: first.N, E: 1<<31 - 1}
	named := func(key any, id string) jose.JSONWebKey { return jose.JSONWebKey{Key: key, KeyID: id} }
	var many []jose.JSONWebKey
	for i := range 11 {
		many = append(many, named(second.Public(), strconv.Itoa(i)))
	}
	for what, row := range map[string]struct {
		keys    []jose.JSONWebKey
		used    int
		refused string // part of the reason
	}{
		"one without a kid":      {[]jose.JSONWebKey{named(first.Public(), "")}, 1, ""},
		"several":                {[]jose.JSONWebKey{named(first.Public(), "a"), named(second.Public(), "b")}, 2, ""},
		"large exponent":         {[]jose.JSONWebKey{named(&slow, "a")}, 0, "exponent 65537"},
		"small exponent":         {[]jose.JSONWebKey{named(&rsa.PublicKey{N: first.N, E: 3}, "a")}, 0, "exponent 65537"},
		"too many bits":          {[]jose.JSONWebKey{named(&rsa.PublicKey{N: new(big.Int).Lsh(first.N, 2056), E: 65537}, "a")}, 0, "2048 to 4096 bits"},
		"several without a kid":  {[]jose.JSONWebKey{named(first.Public(), "a"), named(second.Public(), "")}, 1, "kid"},
		"several with one kid":   {[]jose.JSONWebKey{named(first.Public(), "a"), named(second.Public(), "a")}, 1, "kid"},
		"many":                   {many, 10, "keys"},
		"another for encryption": {[]jose.JSONWebKey{named(first.Public(), ""), {Key: second.Public(), Use: "enc"}}, 1, ""},
	} {
		text := jwks(t, row.keys...)
		keys, refused, err := oauth.ParseJWKS([]byte(text))
		if err != nil || len(keys) != row.used || (refused != nil) != (row.refused != "") ||
			refused != nil && !strings.Contains(refused.Error(), row.refused) {
			t.Errorf("%s, fetched: got %d keys, %v and %v, want %d and %q", what, len(keys), refused, err,
				row.used, row.refused)
		}
		err = oauth.CheckJWKS(text)
		if row.refused != "" && (err == nil || !strings.Contains(err.Error(), row.refused)) {
			t.Errorf("%s, registered: got %v, want %q", what, err, row.refused)
		}
	}
}

func TestAssertionParameters(t *testing.T) {
	jwt := "x." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"c"}`)) + ".y"
	foreign := "x." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://ci.example","sub":"repo:a/b"}`)) + ".y"
	for _, row := range []struct {
		more          []oauth.Parameter
		authorization string
		want          oauth.Code
	}{
		{[]oauth.Parameter{{Name: "client_assertion", Value: jwt}, {Name: "client_assertion_type", Value: bearerType}}, "", ""},
		{[]oauth.Parameter{{Name: "client_assertion", Value: jwt}, {Name: "client_assertion_type", Value: bearerType}, {Name: "client_id", Value: "c"}}, "", ""},
		{[]oauth.Parameter{{Name: "client_assertion", Value: jwt}, {Name: "client_assertion_type", Value: bearerType}, {Name: "client_id", Value: "d"}}, "", oauth.InvalidClient},
		{[]oauth.Parameter{{Name: "client_assertion", Value: jwt}, {Name: "client_assertion_type", Value: bearerType}, {Name: "client_secret", Value: "s"}}, "", oauth.InvalidRequest},
		{[]oauth.Parameter{{Name: "client_assertion", Value: jwt}, {Name: "client_assertion_type", Value: bearerType}}, "Basic Yzpz", oauth.InvalidRequest},
		{[]oauth.Parameter{{Name: "client_assertion", Value: foreign}, {Name: "client_assertion_type", Value: bearerType}, {Name: "client_id", Value: "c"}}, "", ""},
		{[]oauth.Parameter{{Name: "client_assertion", Value: foreign}, {Name: "client_assertion_type", Value: bearerType}}, "", oauth.InvalidClient},
		{[]oauth.Parameter{{Name: "client_assertion", Value: jwt}}, "", oauth.InvalidRequest},
		{[]oauth.Parameter{{Name: "client_assertion_type", Value: bearerType}}, "", oauth.InvalidRequest},
		{[]oauth.Parameter{{Name: "client_assertion", Value: jwt}, {Name: "client_assertion_type", Value: "x"}}, "", oauth.InvalidClient},
		{[]oauth.Parameter{{Name: "client_assertion", Value: "x.y"}, {Name: "client_assertion_type", Value: bearerType}}, "", oauth.InvalidClient},
	} {
		request, fault := oauth.ParseTokenRequest(append(row.more,
			oauth.Parameter{Name: "grant_type", Value: "client_credentials"}), row.authorization)
		switch {
		case row.want == "" && (fault != nil || request.ClientID != "c" || request.Proven):
			t.Errorf("%v: got %v and error %v, want client c", row.more, request, fault)
		case row.want != "" && (fault == nil || fault.Code != row.want):
			t.Errorf("%v: got error %v, want %s", row.more, fault, row.want)
		}
	}
}
