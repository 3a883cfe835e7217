package adminapi

import (
	"bytes"
	"encoding/json"

	"gatehouse/actors/oauth"
)

// optionRecord is what few clients are registered for. A member is left out when it is not set.
type optionRecord struct {
	IDTokenAlg             string          `json:"id_token_alg,omitempty"`
	ClaimsInIDToken        bool            `json:"claims_in_id_token,omitempty"`
	PostLogoutRedirectURIs []string        `json:"post_logout_redirect_uris,omitempty"`
	BackchannelLogoutURI   string          `json:"backchannel_logout_uri,omitempty"`
	FirstParty             bool            `json:"first_party,omitempty"`
	RequirePKCE            bool            `json:"require_pkce,omitempty"`
	RequireSecondFactor    bool            `json:"require_second_factor,omitempty"`
	AccessTokenFormat      string          `json:"access_token_format,omitempty"`
	JWKS                   json.RawMessage `json:"jwks,omitempty"`
	JWKSURI                string          `json:"jwks_uri,omitempty"`
	Federated              federatedRecord `json:"federated,omitzero"`
	IDJAG                  oauth.IDJAG     `json:"id_jag,omitzero"`
	Resources              []string        `json:"resources,omitempty"`
	Serves                 []string        `json:"serves,omitempty"`
	Exchange               []ruleRecord    `json:"exchange,omitempty"`
	RequireGroups          []string        `json:"require_groups,omitempty"`
	SelfRegistered         bool            `json:"self_registered,omitempty"`
	Verified               bool            `json:"verified,omitempty"`
	MetadataURL            string          `json:"metadata_url,omitempty"`
	Logo                   string          `json:"logo,omitempty"`
}

// federatedRecord says which JWTs of another issuer authenticate a client.
type federatedRecord struct {
	Issuer   string          `json:"issuer"`
	Subject  string          `json:"subject"`
	Audience string          `json:"audience,omitempty"`
	JWKS     json.RawMessage `json:"jwks,omitempty"`
}

// ruleRecord lets a client exchange tokens for one resource for tokens for another.
type ruleRecord struct {
	From   string   `json:"from"`
	To     string   `json:"to"`
	Scopes []string `json:"scopes"`
}

// IsZero reports whether there are none.
func (r federatedRecord) IsZero() bool { return r.Issuer == "" }

// The values of access_token_format.
const (
	formatOpaque = "opaque"
	formatJWT    = "jwt"
)

func newOptionRecord(o *oauth.ClientOptions) optionRecord {
	r := optionRecord{
		IDTokenAlg: o.IDTokenAlg, ClaimsInIDToken: o.ClaimsInIDToken,
		PostLogoutRedirectURIs: o.PostLogoutRedirectURIs,
		BackchannelLogoutURI:   o.BackchannelLogoutURI, RequirePKCE: o.RequirePKCE,
		RequireSecondFactor: o.RequireSecondFactor,
		JWKS:                json.RawMessage(o.JWKS), JWKSURI: o.JWKSURI, Resources: o.Resources,
		SelfRegistered: o.SelfRegistered, MetadataURL: o.MetadataURL, Logo: o.Logo,
		Verified: o.Verified, FirstParty: o.FirstParty, RequireGroups: o.RequireGroups,
		Federated: federatedRecord{o.Federated.Issuer, o.Federated.Subject, o.Federated.Audience,
			json.RawMessage(o.Federated.JWKS)},
		IDJAG: o.IDJAG,
	}
	if o.JWTAccessTokens {
		r.AccessTokenFormat = formatJWT
	}
	r.Serves = o.Serves
	for _, rule := range o.Exchange {
		r.Exchange = append(r.Exchange, ruleRecord{rule.From, rule.To, append([]string{}, rule.Scopes...)})
	}
	return r
}

// options applies to a client's options the members of o; null removes a value.
func options(o *object, to *oauth.ClientOptions) {
	o.clearable("id_token_alg", &to.IDTokenAlg)
	o.flag("claims_in_id_token", &to.ClaimsInIDToken)
	o.texts("post_logout_redirect_uris", &to.PostLogoutRedirectURIs)
	o.clearable("backchannel_logout_uri", &to.BackchannelLogoutURI)
	o.flag("first_party", &to.FirstParty)
	o.flag("require_pkce", &to.RequirePKCE)
	o.flag("require_second_factor", &to.RequireSecondFactor)
	o.clearable("jwks_uri", &to.JWKSURI)
	o.texts("resources", &to.Resources)
	o.texts("serves", &to.Serves)
	o.rules("exchange", &to.Exchange)
	o.texts("require_groups", &to.RequireGroups)
	o.keys("jwks", &to.JWKS)
	o.federated("federated", &to.Federated)
	o.idJAG("id_jag", &to.IDJAG)
	var format string
	if o.text("access_token_format", &format) {
		if format != formatOpaque && format != formatJWT {
			o.refuse("access_token_format", "must be opaque or jwt")
		}
		to.JWTAccessTokens = format == formatJWT
	}
}

// idJAG sets *to to a member that is an object, or to none when it is null.
func (o *object) idJAG(name string, to *oauth.IDJAG) {
	inner := newObject()
	if string(o.members[name]) == "null" {
		o.known[name] = true
		*to = oauth.IDJAG{}
		return
	}
	if !o.member(name, "must be an object with issuers or audiences", &inner.members) {
		return
	}
	var j oauth.IDJAG
	inner.texts("issuers", &j.Issuers)
	inner.texts("audiences", &j.Audiences)
	inner.texts("groups", &j.Groups)
	if err := inner.end(); err != nil {
		o.refuse(name, err.Error())
	}
	if *to = j; to.IsZero() {
		*to = oauth.IDJAG{} // as a Store returns it
	}
}

// federated sets *to to a member that is an object, or to none when it is null.
func (o *object) federated(name string, to *oauth.Federated) {
	var f oauth.Federated
	inner := newObject()
	if string(o.members[name]) == "null" {
		o.known[name] = true
		*to = f
		return
	}
	if !o.member(name, "must be an object with issuer and subject", &inner.members) {
		return
	}
	inner.text("issuer", &f.Issuer)
	inner.text("subject", &f.Subject)
	inner.clearable("audience", &f.Audience)
	inner.keys("jwks", &f.JWKS)
	if err := inner.end(); err != nil {
		o.refuse(name, err.Error())
	}
	if *to = f; !to.IsSet() {
		o.refuse(name, "must have issuer and subject")
	}
}

// rules sets *to to a member that is a list of objects.
func (o *object) rules(name string, to *[]oauth.ExchangeRule) {
	var list []json.RawMessage
	if !o.member(name, "must be a list of objects with from, to and scopes", &list) {
		return
	}
	var rules []oauth.ExchangeRule
	for _, text := range list {
		var rule oauth.ExchangeRule
		inner := newObject()
		if !inner.parse(text) {
			o.refuse(name, "must be a list of objects with from, to and scopes")
			return
		}
		inner.text("from", &rule.From)
		inner.text("to", &rule.To)
		if inner.texts("scopes", &rule.Scopes); len(rule.Scopes) == 0 {
			rule.Scopes = nil // as a Store returns it
		}
		if err := inner.end(); err != nil {
			o.refuse(name, err.Error())
		}
		rules = append(rules, rule)
	}
	*to = rules
}

// keys sets *to to the text of a member that is an object, or to "" when it is null.
func (o *object) keys(name string, to *string) {
	var members map[string]json.RawMessage
	var text bytes.Buffer
	switch {
	case string(o.members[name]) == "null":
		o.clearable(name, to)
	case o.member(name, "must be an object with the member keys (RFC 7517)", &members) &&
		json.Compact(&text, o.members[name]) == nil:
		*to = text.String()
	}
}
