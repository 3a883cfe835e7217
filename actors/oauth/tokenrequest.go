package oauth

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseTokenRequest parses the form of a token request and its Authorization header, "" if it has
// none (RFC 6749 sections 2.3.1, 3.2 and 5.2). It checks in this order: no parameter repeats or
// contains control characters, the grant type is known, and the client authenticates in one way
// only. CheckGrant then checks the parameters of the grant type. The result shares memory with the
// arguments.
func ParseTokenRequest(params []Parameter, authorization string) (*TokenRequest, *Error) {
	f := form{params: params}
	grantType, sent := f.value("grant_type"), f.credentials()
	code, redirectURI, verifier := f.value("code"), f.value("redirect_uri"),
		f.value("code_verifier")
	refreshToken, scope := f.value("refresh_token"), f.value("scope")
	deviceCode, idJAG, resources := f.value("device_code"), f.value("assertion"), f.values("resource")
	subject := f.exchange(grantType)
	f.rest()
	if f.err != nil {
		return nil, f.err
	}
	grant, err := parseGrantType(grantType)
	if err != nil {
		return nil, err
	}
	c, err := sent.parse(authorization)
	if err != nil {
		return nil, err
	}
	r := &TokenRequest{Credentials: c, Grant: grant, Scope: scope, Resources: resources}
	r.TokenExchange = subject
	if grant == TokenExchangeGrant && !r.AsksIDJAG() {
		r.Resources = append(resources, subject.Audiences...)
	}
	switch grant {
	case AuthorizationCodeGrant:
		r.Code, r.RedirectURI, r.CodeVerifier = code, redirectURI, verifier
	case RefreshTokenGrant:
		r.RefreshToken = refreshToken
	case DeviceCodeGrant:
		r.DeviceCode = deviceCode
	case JWTBearerGrant:
		r.IDJAG = idJAG
	}
	return r, nil
}

// exchange reads the parameters of a token exchange, if it is one (RFC 8693 section 2.1).
func (f *form) exchange(grantType string) (x TokenExchange) {
	if grant, _ := ParseGrantType(grantType); grant != TokenExchangeGrant {
		return x
	}
	return TokenExchange{
		SubjectToken: f.value("subject_token"), SubjectTokenType: f.value("subject_token_type"),
		RequestedTokenType: f.value("requested_token_type"), Audiences: f.values("audience"),
		HasActorToken: f.value("actor_token")+f.value("actor_token_type") != "",
	}
}

// ParseCredentials parses the form and Authorization header of a revocation or introspection
// request (RFC 7009 section 2.1, RFC 7662 section 2.1). It checks them like ParseTokenRequest.
func ParseCredentials(params []Parameter, authorization string) (c Credentials, token string,
	err *Error) {
	f := form{params: params}
	sent, token := f.credentials(), f.value("token")
	f.rest() // includes token_type_hint, which is not needed: a token's prefix names its kind
	if f.err != nil {
		return Credentials{}, "", f.err
	}
	if c, err = sent.parse(authorization); err != nil {
		return Credentials{}, "", err
	}
	if token == "" {
		return Credentials{}, "", invalidRequest("The parameter token is missing.",
			"Send the token in the body.")
	}
	return c, token, nil
}

// form reads parameters and keeps the first error.
type form struct {
	params []Parameter
	read   uint64 // bit i is set if value has read params[i]
	err    *Error
}

// value returns the value of a parameter, or "" if it is missing. It is an error if the parameter
// repeats or contains control characters.
func (f *form) value(name string) string {
	value, seen := "", false
	for i := range f.params {
		if f.params[i].Name != name {
			continue
		}
		if seen {
			f.fail("The parameter "+name+" is repeated.", "Send each parameter at most once.")
			return ""
		}
		value, seen = f.params[i].Value, true
		f.read |= 1 << i
	}
	if !clean(value) {
		f.fail("The parameter "+name+" contains control characters or is not UTF-8.",
			"Send plain text, percent-encoded.")
	}
	return value
}

// values returns the values of a parameter that may repeat, without empty ones.
func (f *form) values(name string) (all []string) {
	for i, p := range f.params {
		if p.Name != name {
			continue
		}
		f.read |= 1 << i
		if !clean(p.Value) {
			f.fail("The parameter "+name+" contains control characters or is not UTF-8.",
				"Send plain text, percent-encoded.")
		}
		if p.Value != "" {
			all = append(all, p.Value)
		}
	}
	return all
}

// rest applies the checks of value to all other parameters. Otherwise it ignores them (RFC 6749
// sections 3.1 and 3.2). Its error does not name them, because a name may contain anything.
func (f *form) rest() {
	for i, p := range f.params {
		if f.read&(1<<i) != 0 {
			continue
		}
		for _, before := range f.params[:i] {
			if p.Name == before.Name {
				f.fail("A parameter is repeated.", "Send each parameter at most once.")
			}
		}
		if !clean(p.Name) || !clean(p.Value) {
			f.fail("A parameter contains control characters or is not UTF-8.",
				"Send plain text, percent-encoded.")
		}
	}
}

func (f *form) fail(description, hint string) {
	if f.err == nil {
		f.err = invalidRequest(description, hint)
	}
}

// clean reports whether s is UTF-8 without control characters.
func clean(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return cleanUnicode(s)
		}
	}
	return true
}

func cleanUnicode(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func parseGrantType(s string) (GrantTypes, *Error) {
	if s == "" {
		return 0, invalidRequest("The parameter grant_type is missing.", hintGrantType)
	}
	grant, ok := ParseGrantType(s)
	if !ok {
		return 0, ErrUnsupportedGrant
	}
	return grant, nil
}

const hintGrantType = "Send a grant type that the client is registered for. The document at " +
	"/.well-known/oauth-authorization-server lists all."

// ErrUnsupportedGrant is the error for a grant type that does not exist, or that exists only for
// the clients that are registered for it. It must not be modified.
var ErrUnsupportedGrant = &Error{Code: UnsupportedGrantType,
	Description: "The grant type is not supported.", Hint: hintGrantType}

// sentCredentials are the parameters of a body that authenticate its client.
type sentCredentials struct{ id, secret, assertionType, assertion string }

func (f *form) credentials() sentCredentials {
	return sentCredentials{f.value("client_id"), f.value("client_secret"),
		f.value("client_assertion_type"), f.value("client_assertion")}
}

// parse returns the client's credentials from the body or from HTTP Basic. Both at once are an
// error.
func (sent sentCredentials) parse(authorization string) (Credentials, *Error) {
	id, secret := sent.id, sent.secret
	if sent.assertion != "" || sent.assertionType != "" {
		return sent.parseAssertion(authorization)
	}
	if authorization == "" {
		if id == "" {
			return Credentials{}, invalidRequest("The parameter client_id is missing.",
				"Send client_id and client_secret in the body, or use HTTP Basic.")
		}
		return Credentials{ClientID: StoredClientID(id), Secret: secret}, nil
	}
	c, ok := parseBasic(authorization)
	switch {
	case !ok:
		return Credentials{}, &Error{Code: InvalidClient, BasicTried: true,
			Description: "The Authorization header is malformed.",
			Hint:        "Send Basic and the base64 form of client_id:client_secret, each form-urlencoded, or send both in the body."}
	case secret != "":
		return Credentials{}, invalidRequest("The client authenticates in two ways at once.",
			"Send the secret in the Authorization header or in the body, not in both.")
	case id != "" && StoredClientID(id) != c.ClientID:
		return Credentials{},
			invalidRequest("The client_id in the body differs from the Authorization header.",
				"Leave client_id out of the body, or send the same.")
	}
	return c, nil
}

// parseBasic parses an Authorization header of the Basic scheme (RFC 7617). Its two parts are
// form-urlencoded (RFC 6749 section 2.3.1). Many clients forget that, so what begins with the URL
// of a metadata document is read as it is: encoded, a URL has no colon.
func parseBasic(authorization string) (Credentials, bool) {
	scheme, encoded, _ := strings.Cut(authorization, " ")
	decoded, err := base64.StdEncoding.DecodeString(strings.Trim(encoded, " "))
	if err != nil || !strings.EqualFold(scheme, "Basic") {
		return Credentials{}, false
	}
	if end := strings.LastIndexByte(string(decoded), ':'); end > 0 && IsMetadataURL(string(decoded[:end])) {
		id, secret := string(decoded[:end]), string(decoded[end+1:])
		return Credentials{ClientID: StoredClientID(id), Secret: secret, Basic: true}, clean(id + secret)
	}
	id, secret, found := strings.Cut(string(decoded), ":")
	id, errID := url.QueryUnescape(id)
	secret, errSecret := url.QueryUnescape(secret)
	ok := found && errID == nil && errSecret == nil && id != "" && clean(id) && clean(secret)
	return Credentials{ClientID: StoredClientID(id), Secret: secret, Basic: true}, ok
}
