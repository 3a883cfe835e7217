package ascode

import (
	"encoding/json"

	"gatehouse/actors/account"
)

// Key is a key of the files. Its value goes to the admin API as it is, but for secrets.
type Key struct {
	Name string
	Type string // as in JSON Schema, or "strings", "secrets", "scopes", "rules", "secretfile", "secretenv", or the list of a Kind
	Help string
	Enum []string
}

// SetKeys are the keys of a file.
var SetKeys = []Key{
	{"set", "string", "Name of the set that the objects belong to (default: default). --prune and --declare compare with it.", nil},
	{"revision", "integer", "Number of this state, for --declare: a server does not go back to a lower one (default: 0).", nil},
	{"groups", "groups", "Groups of people.", nil},
	{"attributes", "attributes", "Attributes that people may have.", nil},
	{"claims", "claims", "Claims that are made of attributes.", nil},
	{"resources", "resources", "APIs that take access tokens of this service.", nil},
	{"providers", "providers", "Other providers with which people sign in.", nil},
	{"clients", "clients", "Client applications.", nil},
}

// ResourceKeys are the keys of a resource.
var ResourceKeys = []Key{
	{"uri", "string", "URI that clients send as resource. Required.", nil},
	{"scopes", "scopes", "Scopes that only this resource has: a list, or a mapping of each to what people read of it.", nil},
	{"name", "string", "What people read in place of the URI.", nil},
	{"claims", "strings", "Claims about people that JWTs for it have: groups, or declared ones.", nil},
}

// GroupKeys are the keys of a group.
var GroupKeys = []Key{
	{"name", "string", "Its name: 1 to 64 of a to z, 0 to 9, dot, underscore and hyphen. Required.", nil},
}

// AttributeKeys are the keys of an attribute.
var AttributeKeys = []Key{
	{"name", "string", "Its name: 1 to 64 of a to z, 0 to 9 and underscore, a letter first. Required.", nil},
	{"type", "string", "Type of its values (default: string).", account.AttributeTypes},
	{"change", "string", "Who changes its values, besides operators (default: operator).", account.AttributeChangers},
}

// ClaimKeys are the keys of a claim.
var ClaimKeys = []Key{
	{"name", "string", "Its name, which has no other meaning. Required.", nil},
	{"from", "string", "What it is made of: attributes. and the name of an attribute. Required.", nil},
	{"scope", "string", "Scope that releases it: openid, profile, email, phone, address or groups (default: profile).", nil},
}

// ProviderKeys are the keys of a provider.
var ProviderKeys = []Key{
	{"id", "string", "Its id in URLs: 1 to 40 letters in lower case, digits and hyphens. Required.", nil},
	{"kind", "string", "Its protocol. Required.", []string{"oidc", "github"}},
	{"issuer", "string", "Issuer, as the provider itself says it. Of GitHub its address (default: https://github.com).", nil},
	{"client_id", "string", "Id of this service there. Required.", nil},
	{clientSecretFile, "secretfile", "File with the secret of this service there: a PATH beside this file, or the NAME of a systemd credential. Without a secret the one before stays.", nil},
	{clientSecretEnv, "secretenv", "Variable with that secret, in place of a file.", nil},
	{"scopes", "strings", "Scopes that it is asked for (default: openid, email and profile; of GitHub read:user and user:email, with groups read:org too).", nil},
	{"label", "string", "What people read on its button (default: the name of a well-known one, or its id).", nil},
	{"icon", "string", "Picture on its button (default: that of the issuer).", []string{"google", "microsoft", "github", "gitlab", "none"}},
	{"allowed_domains", "strings", "Domains of the addresses of those who may sign in with it (default: all).", nil},
	{"create_accounts", "boolean", "It makes accounts for people who have none.", nil},
	{"trust_email", "boolean", "An address that it says it has verified counts as verified.", nil},
	{"groups", "object", "Groups here, by the names of groups there. Others do not count.", nil},
	{"disabled", "boolean", "Nobody signs in with it.", nil},
}

// The keys of a provider's secret.
const (
	clientSecretFile = "client_secret_file"
	clientSecretEnv  = "client_secret_env"
)

// ClientKeys are the keys of a client.
var ClientKeys = []Key{
	{"client_id", "string", "Its id: 3 to 40 letters, digits, dots, underscores and hyphens, not digits alone. Required.", nil},
	{"name", "string", "Name that people see. Required.", nil},
	{"client_uri", "string", "Page about the client.", nil},
	{"public", "boolean", "It cannot keep a secret. Never changed.", nil},
	{"operator", "boolean", "It may use the admin API. Never changed.", nil},
	{"secrets", "secrets", "At most two secrets, each {file: PATH} beside this file, {file: NAME} of a systemd credential, or {env: NAME}, made by gatehouse secret; or {hash: HASH} as gatehouse export writes it. Without the key they stay as they are.", nil},
	{"redirect_uris", "strings", "Redirect URIs.", nil},
	{"scopes", "strings", "Scopes that it may request (default: view-user; server-operations for an operator).", nil},
	{"grants", "strings", "Grants that it may use (default: authorization_code and refresh_token; client_credentials for an operator).", nil},
	{"detail_user_approved", "boolean", "It is approved for detail-user.", nil},
	{"disabled", "boolean", "It and its tokens are refused. Without the key it stays as it is.", nil},
	{"loopback_any_port", "boolean", "Redirects to 127.0.0.1 or [::1] may have any port.", nil},
	{"introspect_any", "boolean", "It may introspect all tokens.", nil},
	{"tokens_per_minute", "integer", "Access tokens that each server issues to it a minute; 0 = no quota.", nil},
	{"id_token_alg", "string", "Algorithm that signs its id_tokens.", []string{"RS256", "ES256"}},
	{"claims_in_id_token", "boolean", "Its id_tokens have the claims of userinfo.", nil},
	{"post_logout_redirect_uris", "strings", "Where a logout may return to.", nil},
	{"backchannel_logout_uri", "string", "Where it takes logout tokens.", nil},
	{"first_party", "boolean", "An app of the operator's own: people are not asked for consent.", nil},
	{"require_pkce", "boolean", "Authorization requests need a code_challenge.", nil},
	{"require_second_factor", "boolean", "People use a second factor before it gets a code.", nil},
	{"access_token_format", "string", "Form of its access tokens.", []string{"opaque", "jwt"}},
	{"jwks", "object", "Public keys that it authenticates with (RFC 7517).", nil},
	{"jwks_uri", "string", "Where these keys are.", nil},
	{"federated", "object", "JWTs of another issuer that authenticate it: {issuer, subject, audience, jwks}; the last two may be missing.", nil},
	{"id_jag", "object", "ID-JAGs: {issuers, audiences, groups}, three lists. It gets access tokens for those of the issuers of providers, and it gets ID-JAGs here for the audiences, which are issuers of other services, each with its client_id there after a space if that is another one, for people of the groups. Needs the draft id-jag.", nil},
	{"resources", "strings", "URIs of the resources that it may ask for (default: all).", nil},
	{"serves", "strings", "URIs of the resources that it is: it may exchange the access tokens for them that it receives.", nil},
	{"exchange", "rules", "What it may exchange access tokens for: a list of {from: URI, to: URI, scopes: [SCOPE, ...]}.", nil},
	{"require_groups", "strings", "Groups of which people must be in one to use it (default: everybody may).", nil},
}

// Kind is a kind of objects.
type Kind struct {
	Name     string // of one object
	List     string // key of a file with them, and member of the response that lists them
	ID       string // key that names an object
	Keys     []Key
	required []string
}

// Kinds are all kinds, in the order in which objects are applied.
var Kinds = []Kind{
	{Group, "groups", "name", GroupKeys, []string{"name"}},
	{Attribute, "attributes", "name", AttributeKeys, []string{"name"}},
	{Claim, "claims", "name", ClaimKeys, []string{"name", "from"}},
	{Resource, "resources", "uri", ResourceKeys, []string{"uri"}},
	{Provider, "providers", "id", ProviderKeys, []string{"id", "kind", "client_id"}},
	{Client, "clients", "client_id", ClientKeys, []string{"client_id", "name"}},
}

// KindOf returns the kind with a name.
func KindOf(name string) Kind {
	for _, kind := range Kinds {
		if kind.Name == name {
			return kind
		}
	}
	panic("no kind " + name)
}

// Schema returns the JSON Schema of a file.
func Schema() []byte {
	set := object(SetKeys)
	set["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	set["title"] = "Clients, resources, providers and groups of gatehouse"
	text, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		panic(err) // it has strings only
	}
	return append(text, '\n')
}

type schema map[string]any

func object(keys []Key, required ...string) schema {
	properties := schema{}
	for _, k := range keys {
		p := k.schema()
		p["description"] = k.Help
		if k.Enum != nil {
			p["enum"] = k.Enum
		}
		properties[k.Name] = p
	}
	s := schema{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		s["required"] = required
	}
	return s
}

func (k Key) schema() schema {
	list := func(items schema) schema { return schema{"type": "array", "items": items} }
	for _, kind := range Kinds {
		if kind.List == k.Type {
			return list(object(kind.Keys, kind.required...))
		}
	}
	switch k.Type {
	case "strings":
		return list(schema{"type": "string"})
	case "scopes":
		return schema{"oneOf": []schema{list(schema{"type": "string"}),
			{"type": "object", "additionalProperties": schema{"type": "string"}}}}
	case "rules":
		return list(schema{"type": "object", "additionalProperties": false, "required": []string{"from", "to"},
			"properties": schema{"from": schema{"type": "string"}, "to": schema{"type": "string"},
				"scopes": list(schema{"type": "string"})}})
	case "secretfile", "secretenv":
		return schema{"type": "string"}
	case "secrets":
		var kinds []schema
		for _, name := range secretKinds {
			kinds = append(kinds, schema{"type": "object", "additionalProperties": false,
				"required": []string{name}, "properties": schema{name: schema{"type": "string"}}})
		}
		secrets := list(schema{"oneOf": kinds})
		secrets["maxItems"] = 2
		return secrets
	}
	return schema{"type": k.Type}
}
