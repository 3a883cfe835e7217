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
	RequirePKCE            bool            `json:"require_pkce,omitempty"`
	AccessTokenFormat      string          `json:"access_token_format,omitempty"`
	JWKS                   json.RawMessage `json:"jwks,omitempty"`
	JWKSURI                string          `json:"jwks_uri,omitempty"`
	Resources              []string        `json:"resources,omitempty"`
	SelfRegistered         bool            `json:"self_registered,omitempty"`
	MetadataURL            string          `json:"metadata_url,omitempty"`
}

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
		JWKS: json.RawMessage(o.JWKS), JWKSURI: o.JWKSURI, Resources: o.Resources,
		SelfRegistered: o.SelfRegistered, MetadataURL: o.MetadataURL,
	}
	if o.JWTAccessTokens {
		r.AccessTokenFormat = formatJWT
	}
	return r
}

// options applies to a client's options the members of o; null removes a value.
func options(o *object, to *oauth.ClientOptions) {
	o.clearable("id_token_alg", &to.IDTokenAlg)
	o.flag("claims_in_id_token", &to.ClaimsInIDToken)
	o.texts("post_logout_redirect_uris", &to.PostLogoutRedirectURIs)
	o.clearable("backchannel_logout_uri", &to.BackchannelLogoutURI)
	o.flag("require_pkce", &to.RequirePKCE)
	o.clearable("jwks_uri", &to.JWKSURI)
	o.texts("resources", &to.Resources)
	o.keys("jwks", &to.JWKS)
	var format string
	if o.text("access_token_format", &format) {
		if format != formatOpaque && format != formatJWT {
			o.refuse("access_token_format", "must be opaque or jwt")
		}
		to.JWTAccessTokens = format == formatJWT
	}
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
