package adminapi

import (
	"bytes"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/brand"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// clientRecord is a client as the admin API shows it.
type clientRecord struct {
	ClientID        string         `json:"client_id"`
	ClientSecret    string         `json:"client_secret,omitempty"` // only when registered
	Name            string         `json:"name"`
	ClientURI       *string        `json:"client_uri"`
	RedirectURIs    []string       `json:"redirect_uris"`
	Scopes          []string       `json:"scopes"`
	Grants          []string       `json:"grants"`
	Public          bool           `json:"public"`
	Operator        bool           `json:"operator"`
	DetailApproved  bool           `json:"detail_user_approved"`
	LoopbackAnyPort bool           `json:"loopback_any_port"`
	IntrospectAny   bool           `json:"introspect_any"`
	TokensPerMinute int            `json:"tokens_per_minute"`
	Disabled        bool           `json:"disabled"`
	Secrets         []secretRecord `json:"secrets"`
	CreatedAt       string         `json:"created_at"`
	TokensIssued    int64          `json:"tokens_issued"` // by this process
	LastUsedAt      *string        `json:"last_used_at"`  // null = not since this process started
	RegisteredBy    string         `json:"registered_by"`
	Set             string         `json:"set,omitempty"`
	Declared        bool           `json:"declared,omitempty"`
	Failures        int64          `json:"failures"` // at this process
	LastFailureAt   *string        `json:"last_failure_at"`
	LastError       *string        `json:"last_error"`
	// AwaitsConsentUntil is when the client ends if nobody has consented; nil = it does not.
	AwaitsConsentUntil *string `json:"awaits_consent_until,omitempty"`
	optionRecord
}

// The values of registered_by.
const (
	byOperator = "operator"
	byDocument = "document" // a client-id metadata document describes it
	byItself   = "itself"   // RFC 7591
)

func registeredBy(o *oauth.ClientOptions) string {
	switch {
	case o.MetadataURL != "":
		return byDocument
	case o.SelfRegistered:
		return byItself
	}
	return byOperator
}

// secretRecord describes a secret without its value.
type secretRecord struct {
	ID        string `json:"id"`
	CreatedAt string `json:"created_at"`
	Hash      string `json:"hash"`
}

// newSecretRecord is the response to a rotation.
type newSecretRecord struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	SecretID     string `json:"secret_id"`
	CreatedAt    string `json:"created_at"`
}

// clientRecord returns the record of a client, with what this process knows of its use.
func (s *service) clientRecord(c *oauth.Client) clientRecord {
	r := clientRecord{
		ClientID: c.ID, Name: c.Name, ClientURI: orNull(c.URI),
		RedirectURIs: orEmpty(c.RedirectURIs), Scopes: orEmpty(c.Scopes.Names()),
		Grants: orEmpty(c.Grants.Names()),
		Public: c.Public, Operator: c.Operator, DetailApproved: c.DetailApproved,
		LoopbackAnyPort: c.LoopbackAnyPort,
		IntrospectAny:   c.IntrospectAny, TokensPerMinute: c.TokensPerMinute, Disabled: c.Disabled,
		Secrets: make([]secretRecord, len(c.Secrets)), CreatedAt: timestamp(c.Created),
		RegisteredBy: registeredBy(&c.Options),
		Set:          c.Options.Set, Declared: c.Options.Declared, optionRecord: newOptionRecord(&c.Options),
	}
	if !c.Awaits.IsZero() {
		until := timestamp(c.Awaits)
		r.AwaitsConsentUntil = &until
	}
	for i, secret := range c.Secrets {
		r.Secrets[i] = secretRecord{secret.ID, timestamp(secret.Created), secret.Hash.String()}
	}
	usage := s.tokens.ClientUsage(c.ID)
	r.TokensIssued = usage.Issued
	if !usage.Last.IsZero() {
		last := timestamp(usage.Last)
		r.LastUsedAt = &last
	}
	r.Failures = usage.Failures
	if !usage.LastFailure.IsZero() {
		last, code := timestamp(usage.LastFailure), string(usage.LastCode)
		r.LastFailureAt, r.LastError = &last, &code
	}
	return r
}

// orEmpty returns list, or an empty one for nil, so that JSON has no null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// timestamp formats t by RFC 3339, in whole seconds and UTC.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func listClients(c *adminCall) (any, error) {
	after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	if after != "" && !oauth.IsClientID(after) {
		return nil, errAfter
	}
	clients, err := c.tokens.Clients(c.context, after, limit)
	if err != nil {
		return nil, err
	}
	page := struct {
		Clients []clientRecord `json:"clients"`
		Next    string         `json:"next"` // the parameter after of the next page; "" = none
	}{Clients: make([]clientRecord, len(clients))}
	for i, client := range clients {
		page.Clients[i] = c.clientRecord(client)
	}
	if len(clients) == limit {
		page.Next = clients[limit-1].ID
	}
	return page, nil
}

func createClient(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	client := newClient(o)
	o.text("client_id", &client.ID)
	if err := o.end(); err != nil {
		return nil, err
	}
	created, secret, err := c.tokens.CreateClient(c.context, client, c.now)
	if err != nil {
		return nil, err
	}
	record := c.clientRecord(created)
	record.ClientSecret = secret
	c.created(pathAdminClients + "/" + created.ID)
	return record, nil
}

// newClient returns the client that o registers, without an ID.
func newClient(o *object) (client oauth.Client) {
	o.flag("public", &client.Public)
	o.flag("operator", &client.Operator)
	o.flag("detail_user_approved", &client.DetailApproved)
	setDefaults(&client)
	registration(o, &client)
	return client
}

// setDefaults sets the grants and scopes of a client whose registration names none.
func setDefaults(c *oauth.Client) {
	c.Grants, c.Scopes = oauth.AuthorizationCodeGrant|oauth.RefreshTokenGrant, oauth.ViewUser
	if c.Operator {
		c.Grants, c.Scopes = oauth.ClientCredentialsGrant, oauth.ServerOperations
	}
}

// registration applies to client the members of o that can also be changed later.
func registration(o *object, client *oauth.Client) {
	o.text("name", &client.Name)
	o.clearable("client_uri", &client.URI)
	o.texts("redirect_uris", &client.RedirectURIs)
	o.flag("loopback_any_port", &client.LoopbackAnyPort)
	o.flag("introspect_any", &client.IntrospectAny)
	o.number("tokens_per_minute", &client.TokensPerMinute)
	options(o, &client.Options)
	var names []string
	if o.texts("scopes", &names) {
		client.Scopes = 0
		for _, name := range names {
			scope, err := oauth.ParseScopes(name)
			if err != nil || scope == 0 {
				o.refuse("scopes", "must be among "+oauth.AllScopes.List())
			}
			client.Scopes |= scope
		}
	}
	if o.texts("grants", &names) {
		client.Grants = 0
		for _, name := range names {
			grant, ok := oauth.ParseGrantType(name)
			if !ok {
				o.refuse("grants", "must be among "+strings.Join(oauth.AllGrants.Names(), ", "))
			}
			client.Grants |= grant
		}
	}
}

func showClient(c *adminCall) (any, error) {
	id, err := c.clientID()
	if err != nil {
		return nil, err
	}
	client, err := c.tokens.Client(c.context, id)
	if err != nil {
		return nil, err
	}
	return c.clientRecord(client), nil
}

func updateClient(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	return c.changeClient(func(client *oauth.Client) error {
		registration(o, client)
		return o.end()
	})
}

// changeClient applies change to the client in the path and returns its record.
func (c *adminCall) changeClient(change func(*oauth.Client) error) (any, error) {
	id, err := c.clientID()
	if err != nil {
		return nil, err
	}
	client, err := c.tokens.UpdateClient(c.context, id, change)
	if err != nil {
		return nil, err
	}
	return c.clientRecord(client), nil
}

// setApproved approves a client for detail-user, or withdraws the approval.
func setApproved(approved bool) adminHandler {
	return func(c *adminCall) (any, error) {
		if err := c.nothing(); err != nil {
			return nil, err
		}
		return c.changeClient(func(client *oauth.Client) error {
			client.DetailApproved = approved
			return nil
		})
	}
}

// setVerified says that an operator has checked who stands behind a client that registered or
// described itself, or withdraws that. Operators know whose the other clients are.
func setVerified(verified bool) adminHandler {
	return func(c *adminCall) (any, error) {
		if err := c.nothing(); err != nil {
			return nil, err
		}
		return c.changeClient(func(client *oauth.Client) error {
			client.Options.Verified = verified && client.Options.SelfRegistered
			return nil
		})
	}
}

// putLogo gives a client the picture in the body of the request.
func putLogo(c *adminCall) (any, error) {
	image, err := brand.ParseImage(bytes.Clone(c.PostBody()))
	if err != nil {
		return nil, endpoint.ErrInvalidRequest.Saying("The picture " + err.Error() + ".")
	}
	return c.setLogo(&oauth.Logo{Type: image.Type, Data: image.Data})
}

func removeLogo(c *adminCall) (any, error) {
	if err := c.nothing(); err != nil {
		return nil, err
	}
	return c.setLogo(nil)
}

func (c *adminCall) setLogo(logo *oauth.Logo) (any, error) {
	id, err := c.clientID()
	if err != nil {
		return nil, err
	}
	client, err := c.tokens.SetLogo(c.context, id, logo)
	if err != nil {
		return nil, err
	}
	return c.clientRecord(client), nil
}

func setClientDisabled(disabled bool) adminHandler {
	return func(c *adminCall) (any, error) {
		if err := c.nothing(); err != nil {
			return nil, err
		}
		return c.changeClient(func(client *oauth.Client) error {
			client.Disabled = disabled
			return nil
		})
	}
}

func deleteClient(c *adminCall) (any, error) {
	id, err := c.clientID()
	if err != nil {
		return nil, err
	}
	return nil, c.tokens.DeleteClient(c.context, id)
}

func rotateSecret(c *adminCall) (any, error) {
	id, err := c.clientID()
	if err != nil {
		return nil, err
	}
	if err := c.nothing(); err != nil {
		return nil, err
	}
	secret, kept, err := c.tokens.RotateSecret(c.context, id, c.now)
	if err != nil {
		return nil, err
	}
	c.SetStatusCode(fasthttp.StatusCreated)
	return newSecretRecord{ClientID: id, ClientSecret: secret, SecretID: kept.ID,
		CreatedAt: timestamp(kept.Created)}, nil
}

func revokeSecret(c *adminCall) (any, error) {
	id, err := c.clientID()
	if err != nil {
		return nil, err
	}
	if err := c.tokens.RevokeSecret(c.context, id, c.pathValue("secret")); err != nil {
		return nil, err
	}
	return showClient(c)
}
