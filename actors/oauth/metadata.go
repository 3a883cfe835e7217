package oauth

import "encoding/json"

// metadata is the metadata document of the authorization server (RFC 8414 section 2) and of the
// OpenID provider (OpenID Connect Discovery section 3, RP-Initiated Logout section 2.1, Back-Channel
// Logout section 2.1).
type metadata struct {
	Issuer                   string   `json:"issuer"`
	AuthorizationEndpoint    string   `json:"authorization_endpoint"`
	TokenEndpoint            string   `json:"token_endpoint"`
	RevocationEndpoint       string   `json:"revocation_endpoint"`
	IntrospectionEndpoint    string   `json:"introspection_endpoint"`
	DeviceEndpoint           string   `json:"device_authorization_endpoint"`
	RegistrationEndpoint     string   `json:"registration_endpoint,omitempty"`
	UserInfoEndpoint         string   `json:"userinfo_endpoint"`
	JWKSURI                  string   `json:"jwks_uri"`
	EndSession               string   `json:"end_session_endpoint"`
	Terms                    string   `json:"op_tos_uri,omitempty"`
	Policy                   string   `json:"op_policy_uri,omitempty"`
	Languages                []string `json:"ui_locales_supported,omitempty"`
	ScopesSupported          []string `json:"scopes_supported"`
	ResponseTypes            []string `json:"response_types_supported"`
	ResponseModes            []string `json:"response_modes_supported"`
	GrantTypes               []string `json:"grant_types_supported"`
	TokenAuthMethods         []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods    []string `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionAuthMethods []string `json:"introspection_endpoint_auth_methods_supported"`
	TokenAuthAlgs            []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevocationAuthAlgs       []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
	IntrospectionAuthAlgs    []string `json:"introspection_endpoint_auth_signing_alg_values_supported"`
	ChallengeMethods         []string `json:"code_challenge_methods_supported"`
	Prompts                  []string `json:"prompt_values_supported"`
	Iss                      bool     `json:"authorization_response_iss_parameter_supported"`
	MetadataDocuments        bool     `json:"client_id_metadata_document_supported,omitempty"`
	SubjectTypes             []string `json:"subject_types_supported"`
	IDTokenAlgs              []string `json:"id_token_signing_alg_values_supported"`
	ACRValues                []string `json:"acr_values_supported"`
	ClaimTypes               []string `json:"claim_types_supported"`
	Claims                   []string `json:"claims_supported"`
	ClaimsParameter          bool     `json:"claims_parameter_supported"`
	RequestParameter         bool     `json:"request_parameter_supported"`
	RequestURI               bool     `json:"request_uri_parameter_supported"` // true if it is missing
	GrantProfiles            []string `json:"authorization_grant_profiles_supported,omitempty"`
	ChainingTypes            []string `json:"identity_chaining_requested_token_types_supported,omitempty"`
	BackchannelLogout        bool     `json:"backchannel_logout_supported"`
	BackchannelSID           bool     `json:"backchannel_logout_session_supported"`
}

// Claims are the names of all claims that id_tokens and userinfo may have.
var Claims = []string{
	"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "azp", "sid", "at_hash",
	"name", "preferred_username", "picture", "gender", "birthdate", "updated_at",
	"email", "email_verified", "phone_number", "phone_number_verified", "address", "groups",
}

// Authentication context classes of a sign-in (OpenID Connect Core section 2).
const (
	ACR1 = "1" // one factor
	ACR2 = "2" // two factors
)

// IDTokenAlgs are the algorithms that id_tokens can be signed with, the default first (OpenID Connect
// Registration section 2).
var IDTokenAlgs = []string{"RS256", "ES256"}

// About is what the metadata of a service depend on.
type About struct {
	Issuer         string   // base URL of the service, without a trailing slash
	Registration   bool     // clients may register themselves (RFC 7591)
	Documents      bool     // a client_id may be the URL of a client-id metadata document
	Terms, Privacy string   // URLs of pages for people; "" = none
	Languages      []string // of pages (BCP 47)
	IDJAG          bool     // ID-JAGs are issued, and tokens for them
}

// Metadata returns the metadata of the service as JSON. It says what the service can do, whatever
// clients are registered for.
func Metadata(about About) []byte {
	issuer := about.Issuer
	introspection := []string{methodBasic, methodPost, methodKey}
	methods := []string{methodBasic, methodPost, methodNone, methodKey}
	m := metadata{
		Issuer:                   issuer,
		AuthorizationEndpoint:    issuer + "/oauth/authorize",
		TokenEndpoint:            issuer + "/oauth/token",
		RevocationEndpoint:       issuer + "/oauth/revoke",
		IntrospectionEndpoint:    issuer + "/oauth/introspect",
		DeviceEndpoint:           issuer + "/oauth/device_authorization",
		UserInfoEndpoint:         issuer + "/oauth/userinfo",
		JWKSURI:                  issuer + "/oauth/jwks",
		EndSession:               issuer + "/oauth/logout",
		ScopesSupported:          GrantableScopes.Names(),
		ResponseTypes:            []string{"code"},
		ResponseModes:            []string{"query", "form_post"},
		GrantTypes:               (AllGrants &^ JWTBearerGrant).Names(),
		TokenAuthMethods:         methods,
		RevocationAuthMethods:    methods,
		IntrospectionAuthMethods: introspection,
		TokenAuthAlgs:            AssertionAlgs,
		RevocationAuthAlgs:       AssertionAlgs,
		IntrospectionAuthAlgs:    AssertionAlgs,
		ChallengeMethods:         []string{"S256"},
		Prompts:                  []string{"none", "login", "consent", "select_account"},
		Iss:                      true,
		MetadataDocuments:        about.Documents,
		Terms:                    about.Terms,
		Policy:                   about.Privacy,
		Languages:                about.Languages,
		SubjectTypes:             []string{"public"},
		IDTokenAlgs:              IDTokenAlgs,
		ACRValues:                []string{ACR1, ACR2},
		ClaimTypes:               []string{"normal"},
		Claims:                   Claims,
		BackchannelLogout:        true,
		BackchannelSID:           true,
	}
	if about.Registration {
		m.RegistrationEndpoint = issuer + "/oauth/register"
	}
	if about.IDJAG {
		m.GrantTypes = append(m.GrantTypes, JWTBearerGrant.String())
		m.GrantProfiles = []string{idJAGProfile}
		m.ChainingTypes = []string{IDJAGTokenType}
	}
	return encode(m)
}

func encode(document any) []byte {
	text, err := json.Marshal(document)
	if err != nil {
		panic(err) // never: strings and lists of strings can be encoded
	}
	return text
}
