package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// clientOptions are the flags of client create and client update that few clients need. A flag that
// was not given changes nothing, and an empty text removes a value.
type clientOptions struct {
	IDTokenAlg            *string  `name:"id-token-alg" group:"options" placeholder:"ALG" help:"Algorithm that signs its id_tokens: RS256 or ES256 (default: RS256)."`
	ClaimsInIDToken       *bool    `name:"claims-in-id-token" group:"options" negatable:"" help:"Put the claims of userinfo into id_tokens as well."`
	PostLogoutRedirectURI []string `name:"post-logout-redirect-uri" group:"options" sep:"none" placeholder:"URI" help:"Where the browser may go after a logout. May be repeated; replaces all registered ones."`
	BackchannelLogoutURI  *string  `name:"backchannel-logout-uri" group:"options" placeholder:"URL" help:"Where a logout token is sent when a session ends: https, or http on this machine. Not at a link-local address."`
	RequirePKCE           *bool    `name:"require-pkce" group:"options" negatable:"" help:"Refuse authorization requests without a code_challenge; public clients always need one."`
	AccessTokenFormat     *string  `name:"access-token-format" group:"options" placeholder:"FORMAT" help:"Form of its access tokens: opaque or jwt (default: opaque)."`
	JWKS                  *string  `name:"jwks" group:"options" placeholder:"FILE" help:"Public keys that it authenticates with, as a JSON Web Key Set: RSA with 2048 to 4096 bits and the exponent 65537, or P-256; several need a kid each. A new client with keys gets no secret."`
	JWKSURI               *string  `name:"jwks-uri" group:"options" placeholder:"URL" help:"Where these keys are, in place of --jwks: https, at a public address."`
	Resource              []string `name:"resource" group:"options" sep:"none" placeholder:"URI" help:"Resource that it may ask for, needed for client_credentials. May be repeated; replaces all registered ones (default: all)."`
}

// set sets the members of the flags that were given.
func (o *clientOptions) set(body map[string]any) error {
	for name, value := range map[string]*string{
		"backchannel_logout_uri": o.BackchannelLogoutURI, "jwks_uri": o.JWKSURI,
		"id_token_alg": o.IDTokenAlg, "access_token_format": o.AccessTokenFormat,
	} {
		setText(body, name, value)
	}
	for name, value := range map[string]*bool{
		"claims_in_id_token": o.ClaimsInIDToken, "require_pkce": o.RequirePKCE,
	} {
		if value != nil {
			body[name] = *value
		}
	}
	setWords(body, "post_logout_redirect_uris", o.PostLogoutRedirectURI)
	setWords(body, "resources", o.Resource)
	return o.setKeys(body)
}

// setKeys sets the keys to those in a file, or removes them.
func (o *clientOptions) setKeys(body map[string]any) error {
	switch {
	case o.JWKS == nil:
		return nil
	case *o.JWKS == "":
		body["jwks"] = nil
		return nil
	}
	text, err := os.ReadFile(*o.JWKS)
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	if !json.Valid(text) {
		return usagef("--jwks %q: must be a file with a JSON Web Key Set", *o.JWKS)
	}
	body["jwks"] = json.RawMessage(text)
	return nil
}
