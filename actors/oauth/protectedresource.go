package oauth

import (
	"net/url"
	"strings"
)

// ProtectedResource is the metadata document of a resource (RFC 9728 section 2).
type ProtectedResource struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
}

// NewProtectedResource returns the document of the resource at uri, whose tokens the service at
// issuer issues.
func NewProtectedResource(uri, issuer string, scopes []string) *ProtectedResource {
	return &ProtectedResource{Resource: uri, AuthorizationServers: []string{issuer},
		ScopesSupported: scopes, BearerMethods: []string{"header"}}
}

// OwnResourceMetadata returns the document of the APIs of the service at issuer, as JSON.
func OwnResourceMetadata(issuer string) []byte {
	return encode(NewProtectedResource(issuer, issuer, GrantableScopes.Names()))
}

// ResourceMetadataURL returns where the document of the resource at uri is found (RFC 9728 section
// 3.1): the well-known path goes before that of the resource.
func ResourceMetadataURL(uri string) string {
	const wellKnown = "/.well-known/oauth-protected-resource"
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return ""
	}
	start := len(u.Scheme) + len("://") + len(u.Host)
	rest := uri[start:]
	path, query, found := strings.Cut(rest, "?")
	rest = strings.TrimSuffix(path, "/")
	if found {
		rest += "?" + query
	}
	return uri[:start] + wellKnown + rest
}
