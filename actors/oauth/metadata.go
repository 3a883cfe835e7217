package oauth

import (
	"encoding/json"
	"slices"
)

// metadata is the metadata document of RFC 8414 section 2.
type metadata struct {
	Issuer                   string   `json:"issuer"`
	AuthorizationEndpoint    string   `json:"authorization_endpoint"`
	TokenEndpoint            string   `json:"token_endpoint"`
	RevocationEndpoint       string   `json:"revocation_endpoint"`
	IntrospectionEndpoint    string   `json:"introspection_endpoint"`
	ScopesSupported          []string `json:"scopes_supported"`
	ResponseTypes            []string `json:"response_types_supported"`
	ResponseModes            []string `json:"response_modes_supported"`
	GrantTypes               []string `json:"grant_types_supported"`
	TokenAuthMethods         []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods    []string `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionAuthMethods []string `json:"introspection_endpoint_auth_methods_supported"`
	ChallengeMethods         []string `json:"code_challenge_methods_supported"`
	Prompts                  []string `json:"prompt_values_supported"`
	Iss                      bool     `json:"authorization_response_iss_parameter_supported"`
	DeviceEndpoint           string   `json:"device_authorization_endpoint,omitempty"`
	TokenAuthAlgs            []string `json:"token_endpoint_auth_signing_alg_values_supported,omitempty"`
	RevocationAuthAlgs       []string `json:"revocation_endpoint_auth_signing_alg_values_supported,omitempty"`
	IntrospectionAuthAlgs    []string `json:"introspection_endpoint_auth_signing_alg_values_supported,omitempty"`
	RegistrationEndpoint     string   `json:"registration_endpoint,omitempty"`
	MetadataDocuments        bool     `json:"client_id_metadata_document_supported,omitempty"`
}

// Features are what the metadata tells of while a client is registered for it, or while the
// operator has turned it on. The zero value is none of it.
type Features struct {
	DeviceCodes bool // RFC 8628
	Keys        bool // clients authenticate with keys (RFC 7523)
	// MetadataDocuments says that a client_id may be the URL of a client-id metadata document.
	MetadataDocuments bool
	Registration      bool // clients may register themselves (RFC 7591)
}

// FeaturesOf returns what a client is registered for.
func FeaturesOf(c *Client) Features {
	if c.Disabled {
		return Features{}
	}
	return Features{DeviceCodes: c.Grants.Contains(DeviceCodeGrant), Keys: c.HasKeys()}
}

// With returns the features of both.
func (f Features) With(other Features) Features {
	return Features{
		DeviceCodes:       f.DeviceCodes || other.DeviceCodes,
		Keys:              f.Keys || other.Keys,
		MetadataDocuments: f.MetadataDocuments || other.MetadataDocuments,
		Registration:      f.Registration || other.Registration,
	}
}

// Metadata returns the authorization server metadata as JSON (RFC 8414). issuer is the server's
// base URL without a trailing slash.
func Metadata(issuer string, f Features) []byte { return encode(newMetadata(issuer, f)) }

func encode(document any) []byte {
	text, err := json.Marshal(document)
	if err != nil {
		panic(err) // never: strings and lists of strings can be encoded
	}
	return text
}

func newMetadata(issuer string, f Features) metadata {
	secret := []string{"client_secret_basic", "client_secret_post"}
	m := metadata{
		Issuer:                   issuer,
		AuthorizationEndpoint:    issuer + "/oauth/authorize",
		TokenEndpoint:            issuer + "/oauth/token",
		RevocationEndpoint:       issuer + "/oauth/revoke",
		IntrospectionEndpoint:    issuer + "/oauth/introspect",
		ScopesSupported:          InterfaceScopes.Names(),
		ResponseTypes:            []string{"code"},
		ResponseModes:            []string{"query"},
		GrantTypes:               (AuthorizationCodeGrant | RefreshTokenGrant | ClientCredentialsGrant).Names(),
		TokenAuthMethods:         append(secret, "none"),
		RevocationAuthMethods:    append(secret, "none"),
		IntrospectionAuthMethods: secret,
		ChallengeMethods:         []string{"S256"},
		Prompts:                  []string{"none", "login", "consent"},
		Iss:                      true,
	}
	if f.DeviceCodes {
		m.DeviceEndpoint = issuer + "/oauth/device_authorization"
		m.GrantTypes = append(m.GrantTypes, DeviceCodeGrant.String())
	}
	if f.Keys {
		for _, methods := range []*[]string{
			&m.TokenAuthMethods, &m.RevocationAuthMethods, &m.IntrospectionAuthMethods,
		} {
			*methods = append(slices.Clip(*methods), "private_key_jwt")
		}
		m.TokenAuthAlgs = AssertionAlgs
		m.RevocationAuthAlgs, m.IntrospectionAuthAlgs = AssertionAlgs, AssertionAlgs
	}
	if f.Registration {
		m.RegistrationEndpoint = issuer + "/oauth/register"
	}
	m.MetadataDocuments = f.MetadataDocuments
	return m
}
