package oauthapp

import (
	"context"
	"errors"
	"net/http"
)

// Metadata is the service's metadata (RFC 8414 section 2).
type Metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	IntrospectionEndpoint string   `json:"introspection_endpoint"`
	Scopes                []string `json:"scopes_supported"`
	ResponseTypes         []string `json:"response_types_supported"`
	ResponseModes         []string `json:"response_modes_supported"`
	GrantTypes            []string `json:"grant_types_supported"`
	TokenAuthentication   []string `json:"token_endpoint_auth_methods_supported"`
	RevokeAuthentication  []string `json:"revocation_endpoint_auth_methods_supported"`
	AskAuthentication     []string `json:"introspection_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	Prompts               []string `json:"prompt_values_supported"`
	SendsIssuer           bool     `json:"authorization_response_iss_parameter_supported"`
}

// Metadata returns the service's metadata. Its Issuer is the value for App.Issuer.
func (a *App) Metadata(ctx context.Context) (*Metadata, error) {
	response, err := a.Do(ctx, Request{Path: "/.well-known/oauth-authorization-server"})
	if err != nil {
		return nil, err
	}
	m := new(Metadata)
	if err := response.decode(m); err != nil {
		return nil, err
	}
	if m.Issuer == "" || m.AuthorizationEndpoint == "" || m.TokenEndpoint == "" {
		return nil, errors.New("got metadata without an issuer or its endpoints")
	}
	return m, nil
}

// Permission is what a web page may do at an endpoint (CORS).
type Permission struct {
	Origins []string
	Methods []string
	Headers []string // of requests
	Exposed []string // response headers that it may read
}

// Preflight returns what the application may do at path, as a browser asks for a web page.
func (a *App) Preflight(ctx context.Context, method, path string) (Permission, error) {
	response, err := a.Do(ctx, Request{Method: http.MethodOptions, Path: path,
		Header: map[string]string{"Access-Control-Request-Method": method}})
	if err != nil {
		return Permission{}, err
	}
	return Permission{
		Origins: response.list("Access-Control-Allow-Origin"),
		Methods: response.list("Access-Control-Allow-Methods"),
		Headers: response.list("Access-Control-Allow-Headers"),
		Exposed: response.list("Access-Control-Expose-Headers"),
	}, nil
}
