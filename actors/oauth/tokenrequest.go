package oauth

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseTokenRequest reads the form of a token request and its Authorization header, "" when it has none. It checks, in
// this order: that no parameter repeats or holds control characters, the grant type, and that the client says in one way who it is (RFC
// 6749 sections 2.3.1, 3.2 and 5.2). What the grant needs is checked once the client is known: CheckGrant. The request shares memory with
// its arguments.
func ParseTokenRequest(params []Parameter, authorization string) (*TokenRequest, *Error) {
	f := form{params: params}
	grantType, id, secret := f.value("grant_type"), f.value("client_id"), f.value("client_secret")
	code, redirectURI, verifier := f.value("code"), f.value("redirect_uri"), f.value("code_verifier")
	refreshToken, scope := f.value("refresh_token"), f.value("scope")
	f.rest()
	if f.err != nil {
		return nil, f.err
	}
	grant, err := parseGrantType(grantType)
	if err != nil {
		return nil, err
	}
	c, err := credentials(id, secret, authorization)
	if err != nil {
		return nil, err
	}
	r := &TokenRequest{Credentials: c, Grant: grant, Scope: scope}
	switch grant {
	case AuthorizationCodeGrant:
		r.Code, r.RedirectURI, r.CodeVerifier = code, redirectURI, verifier
	case RefreshTokenGrant:
		r.RefreshToken = refreshToken
	}
	return r, nil
}

// ParseCredentials reads who a client is from the form and the Authorization header of a revocation or introspection
// request, and the token that it is about (RFC 7009 section 2.1, RFC 7662 section 2.1). The checks are those of ParseTokenRequest.
func ParseCredentials(params []Parameter, authorization string) (c Credentials, token string, err *Error) {
	f := form{params: params}
	id, secret, token := f.value("client_id"), f.value("client_secret"), f.value("token")
	f.rest() // token_type_hint among them: the prefix of a token says its kind
	if f.err != nil {
		return Credentials{}, "", f.err
	}
	if c, err = credentials(id, secret, authorization); err != nil {
		return Credentials{}, "", err
	}
	if token == "" {
		return Credentials{}, "", invalidRequest("The parameter token is missing.", "Send the token in the body.")
	}
	return c, token, nil
}

// form reads parameters and keeps the first error.
type form struct {
	params []Parameter
	read   uint64 // bit i: value has looked at params[i]
	err    *Error
}

// value returns the value of a parameter, "" when it is absent. One that repeats or holds control characters is an error.
func (f *form) value(name string) string {
	value, seen := "", false
	for i := range f.params {
		if f.params[i].Name != name {
			continue
		}
		if seen {
			f.fail("The parameter "+name+" is there more than once.", "Send each parameter at most once.")
			return ""
		}
		value, seen = f.params[i].Value, true
		f.read |= 1 << i
	}
	if !clean(value) {
		f.fail("The parameter "+name+" holds control characters or is not UTF-8.", "Send plain text, percent-encoded.")
	}
	return value
}

// rest holds all parameters to what value asks of one. Those that nobody knows are ignored beyond that (RFC 6749 sections 3.1 and
// 3.2), and not named: they may hold anything.
func (f *form) rest() {
	for i, p := range f.params {
		if f.read&(1<<i) != 0 {
			continue
		}
		for _, before := range f.params[:i] {
			if p.Name == before.Name {
				f.fail("A parameter is there more than once.", "Send each parameter at most once.")
			}
		}
		if !clean(p.Name) || !clean(p.Value) {
			f.fail("A parameter holds control characters or is not UTF-8.", "Send plain text, percent-encoded.")
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
	const hint = "Send grant_type=authorization_code, refresh_token or client_credentials."
	if s == "" {
		return 0, invalidRequest("The parameter grant_type is missing.", hint)
	}
	grant, ok := ParseGrantType(s)
	if !ok {
		return 0, &Error{Code: UnsupportedGrantType, Description: "The grant type is not supported.", Hint: hint}
	}
	return grant, nil
}

// credentials returns how the client says who it is: in the body or by HTTP Basic, not in both ways.
func credentials(id, secret, authorization string) (Credentials, *Error) {
	if authorization == "" {
		if id == "" {
			return Credentials{}, invalidRequest("The parameter client_id is missing.",
				"Send client_id and client_secret in the body, or both by HTTP Basic.")
		}
		return Credentials{ClientID: id, Secret: secret}, nil
	}
	c, ok := parseBasic(authorization)
	switch {
	case !ok:
		return Credentials{}, &Error{Code: InvalidClient, BasicTried: true, Description: "The Authorization header cannot be read.",
			Hint: "Send Basic and the base64 form of client_id:client_secret, each form-urlencoded, or send both in the body."}
	case secret != "":
		return Credentials{}, invalidRequest("The client authenticates in two ways at once.",
			"Send the secret in the Authorization header or in the body, not in both.")
	case id != "" && id != c.ClientID:
		return Credentials{}, invalidRequest("The client_id in the body is not that of the Authorization header.",
			"Leave client_id out of the body, or send the same.")
	}
	return c, nil
}

// parseBasic reads an Authorization header of the Basic scheme (RFC 7617), whose two parts are form-urlencoded (RFC 6749 section
// 2.3.1).
func parseBasic(authorization string) (Credentials, bool) {
	scheme, encoded, _ := strings.Cut(authorization, " ")
	decoded, err := base64.StdEncoding.DecodeString(strings.Trim(encoded, " "))
	if err != nil || !strings.EqualFold(scheme, "Basic") {
		return Credentials{}, false
	}
	id, secret, found := strings.Cut(string(decoded), ":")
	id, errID := url.QueryUnescape(id)
	secret, errSecret := url.QueryUnescape(secret)
	ok := found && errID == nil && errSecret == nil && id != "" && clean(id) && clean(secret)
	return Credentials{ClientID: id, Secret: secret, Basic: true}, ok
}
