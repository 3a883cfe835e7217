package oauth

// openIDMetadata are the provider metadata of OpenID Connect Discovery section 3, Session Management
// and Logout. Members of the RFC 8414 document that differ here stand in its place.
type openIDMetadata struct {
	metadata
	UserInfoEndpoint  string   `json:"userinfo_endpoint"`
	JWKSURI           string   `json:"jwks_uri"`
	EndSession        string   `json:"end_session_endpoint"`
	SubjectTypes      []string `json:"subject_types_supported"`
	IDTokenAlgs       []string `json:"id_token_signing_alg_values_supported"`
	ACRValues         []string `json:"acr_values_supported"`
	ClaimTypes        []string `json:"claim_types_supported"`
	Claims            []string `json:"claims_supported"`
	ClaimsParameter   bool     `json:"claims_parameter_supported"`
	RequestParameter  bool     `json:"request_parameter_supported"`
	RequestURI        bool     `json:"request_uri_parameter_supported"` // true if it is missing
	BackchannelLogout bool     `json:"backchannel_logout_supported"`
	BackchannelSID    bool     `json:"backchannel_logout_session_supported"`
}

// Claims are the names of all claims that id_tokens and userinfo may have.
var Claims = []string{
	"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "azp", "sid", "at_hash",
	"name", "preferred_username", "picture", "gender", "birthdate", "updated_at",
	"email", "email_verified", "phone_number", "phone_number_verified", "address",
}

// ACR is the authentication context class of every sign-in: one factor (OpenID Connect Core section
// 2).
const ACR = "1"

// IDTokenAlgs are the algorithms that id_tokens can be signed with, the default first (OpenID Connect
// Registration section 2).
var IDTokenAlgs = []string{"RS256", "ES256"}

// OpenIDMetadata returns the metadata of the OpenID provider as JSON. It says all of Metadata as
// well.
func OpenIDMetadata(issuer string, f Features) []byte {
	m := openIDMetadata{
		metadata:         newMetadata(issuer, f),
		UserInfoEndpoint: issuer + "/oauth/userinfo",
		JWKSURI:          issuer + "/oauth/jwks",
		EndSession:       issuer + "/oauth/logout",
		SubjectTypes:     []string{"public"},
		IDTokenAlgs:      IDTokenAlgs,
		ACRValues:        []string{ACR},
		ClaimTypes:       []string{"normal"},
		Claims:           Claims,

		BackchannelLogout: true, BackchannelSID: true,
	}
	m.ScopesSupported = AllScopes.Names()
	m.ResponseModes = []string{"query", "form_post"}
	m.Prompts = []string{"none", "login", "consent", "select_account"}
	return encode(m)
}
