package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// clientOptions are the flags of client create and client update that few clients need. A flag that
// was not given changes nothing, and an empty text removes a value.
type clientOptions struct {
	IDTokenAlg            *string  `name:"id-token-alg" group:"options" placeholder:"ALG" help:"Algorithm that signs its id_tokens: RS256 or ES256 (default: RS256)."`
	ClaimsInIDToken       *bool    `name:"claims-in-id-token" group:"options" negatable:"" help:"Put the claims of userinfo into id_tokens as well."`
	PostLogoutRedirectURI []string `name:"post-logout-redirect-uri" group:"options" sep:"none" placeholder:"URI" help:"Where the browser may go after a logout. May be repeated; replaces all registered ones."`
	BackchannelLogoutURI  *string  `name:"backchannel-logout-uri" group:"options" placeholder:"URL" help:"Where a logout token is sent when a session ends: https, or http on this machine. Not at a link-local address."`
	FirstParty            *bool    `name:"first-party" group:"options" negatable:"" help:"An app of your own: people are not asked for consent to what it is registered for. All its redirect URIs are https and lead to servers."`
	RequirePKCE           *bool    `name:"require-pkce" group:"options" negatable:"" help:"Refuse authorization requests without a code_challenge; public clients always need one."`
	RequireSecondFactor   *bool    `name:"require-second-factor" group:"options" negatable:"" help:"People use a second factor before the app gets a code, and set one up if they have none."`
	AccessTokenFormat     *string  `name:"access-token-format" group:"options" placeholder:"FORMAT" help:"Form of its access tokens: opaque or jwt (default: opaque)."`
	JWKS                  *string  `name:"jwks" group:"options" placeholder:"FILE" help:"Public keys that it authenticates with, as a JSON Web Key Set: RSA with 2048 to 4096 bits and the exponent 65537, or P-256; several need a kid each. A new client with keys gets no secret."`
	JWKSURI               *string  `name:"jwks-uri" group:"options" placeholder:"URL" help:"Where these keys are, in place of --jwks: https, at a public address."`
	FederatedIssuer       *string  `name:"federated-issuer" group:"options" placeholder:"URL" help:"Issuer whose JWTs authenticate it, in place of keys or a secret, such as https://token.actions.githubusercontent.com. Needs --federated-subject; an empty text removes all of them."`
	FederatedSubject      *string  `name:"federated-subject" group:"options" placeholder:"SUBJECT" help:"The sub of these JWTs, exactly, such as repo:acme/shop:ref:refs/heads/main."`
	FederatedAudience     *string  `name:"federated-audience" group:"options" placeholder:"AUDIENCE" help:"Their only aud (default: the public address of gatehouse)."`
	FederatedJWKS         *string  `name:"federated-jwks" group:"options" placeholder:"FILE" help:"Keys of the issuer, as a JSON Web Key Set (default: those that its metadata name, at a public address)."`
	IDJAGIssuer           []string `name:"id-jag-issuer" group:"options" sep:"none" placeholder:"URL" help:"Provider with which people sign in, whose ID-JAGs get it access tokens for them; needs the grant jwt-bearer and --drafts=id-jag at the server. May be repeated. The --id-jag options replace all that are registered."`
	IDJAGAudience         []string `name:"id-jag-audience" group:"options" sep:"none" placeholder:"URL" help:"Issuer of another service for which it gets ID-JAGs here, and after a space its client_id there, if it is another one; needs the grant token-exchange and --drafts=id-jag at the server. May be repeated."`
	IDJAGGroup            []string `name:"id-jag-group" group:"options" sep:"none" placeholder:"GROUP" help:"Group of people for whom it gets ID-JAGs here. May be repeated (default: everybody)."`
	Resource              []string `name:"resource" group:"options" sep:"none" placeholder:"URI" help:"Resource that it may ask for, needed for client_credentials. May be repeated; replaces all registered ones (default: all)."`
	Serves                []string `name:"serves" group:"options" sep:"none" placeholder:"URI" help:"Resource that it is: it may exchange the access tokens for this resource that it receives, as --exchange says. May be repeated; replaces all registered ones."`
	Exchange              []string `name:"exchange" group:"options" sep:"none" placeholder:"RULE" help:"Rule by which it exchanges access tokens for one resource for tokens for another: \"FROM TO SCOPE...\", two URIs and the scopes that it may have there. Needs the grant urn:ietf:params:oauth:grant-type:token-exchange. May be repeated; replaces all rules."`
	RequireGroup          []string `name:"require-group" group:"options" sep:"none" placeholder:"GROUP" help:"Let only members of this group use it, or of one of several. May be repeated; replaces all registered ones (default: everybody may)."`
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
		"first_party": o.FirstParty, "require_second_factor": o.RequireSecondFactor,
	} {
		if value != nil {
			body[name] = *value
		}
	}
	setWords(body, "post_logout_redirect_uris", o.PostLogoutRedirectURI)
	setWords(body, "resources", o.Resource)
	setWords(body, "serves", o.Serves)
	setWords(body, "require_groups", o.RequireGroup)
	jags := map[string]any{}
	setWords(jags, "issuers", o.IDJAGIssuer)
	if len(o.IDJAGAudience) > 0 { // each may have a space
		jags["audiences"] = slices.DeleteFunc(slices.Clone(o.IDJAGAudience),
			func(audience string) bool { return audience == "" })
	}
	setWords(jags, "groups", o.IDJAGGroup)
	if len(jags) > 0 {
		body["id_jag"] = jags
	}
	if err := setRules(body, o.Exchange); err != nil {
		return err
	}
	if err := o.setFederated(body); err != nil {
		return err
	}
	return setKeys(body, "jwks", "jwks", o.JWKS)
}

// setRules sets what the client may exchange, if a flag was given. An empty text is no rule.
func setRules(body map[string]any, texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	rules := []any{}
	for _, text := range texts {
		switch words := strings.Fields(text); len(words) {
		case 0:
		case 1:
			return usagef("--exchange %q: give two URIs and the scopes, separated by spaces", text)
		default:
			rules = append(rules, map[string]any{"from": words[0], "to": words[1], "scopes": words[2:]})
		}
	}
	body["exchange"] = rules
	return nil
}

// setFederated sets whose JWTs authenticate the client. The flags are given together.
func (o *clientOptions) setFederated(body map[string]any) error {
	switch {
	case o.FederatedIssuer == nil:
		if o.FederatedSubject != nil || o.FederatedAudience != nil || o.FederatedJWKS != nil {
			return usagef("--federated-issuer is missing: give all flags of --federated-… together")
		}
		return nil
	case *o.FederatedIssuer == "":
		body["federated"] = nil
		return nil
	}
	federated := map[string]any{}
	setText(federated, "issuer", o.FederatedIssuer)
	setText(federated, "subject", o.FederatedSubject)
	setText(federated, "audience", o.FederatedAudience)
	body["federated"] = federated
	return setKeys(federated, "jwks", "federated-jwks", o.FederatedJWKS)
}

// setKeys sets a member to the keys in the file of a flag, or removes them.
func setKeys(body map[string]any, member, flag string, file *string) error {
	switch {
	case file == nil:
		return nil
	case *file == "":
		body[member] = nil
		return nil
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	if !json.Valid(text) {
		return usagef("--%s %q: must be a file with a JSON Web Key Set", flag, *file)
	}
	body[member] = json.RawMessage(text)
	return nil
}
