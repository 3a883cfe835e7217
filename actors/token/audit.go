package token

import (
	"context"
	"reflect"
	"slices"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// ofClient returns a context whose next write records an event about a client.
func ofClient(ctx context.Context, action audit.Action, id string) context.Context {
	return audit.With(ctx, audit.Event{Action: action, Subject: audit.OfClient(id)})
}

// ofWholeClient returns a context whose next write records that a client comes or goes, with all its
// values.
func ofWholeClient(ctx context.Context, action audit.Action, when string,
	c *oauth.Client) context.Context {
	values := audit.Data{}
	for _, m := range membersOf(c) {
		values[m.name] = m.value
	}
	return audit.With(ctx, audit.Event{Action: action, Subject: audit.OfClient(c.ID),
		Data: audit.Data{when: values}})
}

// ofClientChange returns a context whose next write records what it changes in a client's record.
func ofClientChange(ctx context.Context, old, c *oauth.Client) context.Context {
	for _, flag := range []struct {
		old, new bool
		on, off  audit.Action
	}{
		{old.Disabled, c.Disabled, audit.ClientDisabled, audit.ClientEnabled},
		{old.DetailApproved, c.DetailApproved, audit.ClientApproved, audit.ClientUnapproved},
	} {
		if flag.old == flag.new {
			continue
		}
		action := flag.off
		if flag.new {
			action = flag.on
		}
		ctx = ofClient(ctx, action, c.ID)
	}
	ctx = ofSecrets(ctx, audit.SecretCreated, c.ID, c.Secrets, old.Secrets)
	ctx = ofSecrets(ctx, audit.SecretRevoked, c.ID, old.Secrets, c.Secrets)
	e := audit.Event{Action: audit.ClientChanged, Subject: audit.OfClient(c.ID)}
	before, after := audit.Data{}, audit.Data{}
	for i, m := range membersOf(old) {
		if now := membersOf(c)[i]; !reflect.DeepEqual(m.value, now.value) {
			e.Details = append(e.Details, m.name)
			before[m.name], after[m.name] = m.value, now.value
		}
	}
	if e.Details == nil {
		return ctx
	}
	e.Data = audit.Data{audit.Before: before, audit.After: after}
	return audit.With(ctx, e)
}

// ofCode returns a context whose next write records that a code is issued. issuer is that of the
// ID-JAG that it is for; "" = none.
func (s *Service) ofCode(
	ctx context.Context, code *oauth.AuthorizationCode, issuer string,
) (context.Context, error) {
	data := audit.Data{}
	if code.SessionID != "" {
		data["session"] = code.SessionID
	}
	if issuer != "" {
		data["provider"] = issuer
	}
	if len(code.Details.Targets) > 0 {
		known, err := s.Resources(ctx)
		if err != nil {
			return nil, err
		}
		data["resources"] = oauth.Recorded(known.Reaches(code.Details.Targets))
	}
	return audit.With(ctx, audit.Event{Action: audit.Authorized,
		Subject: audit.OfUser(code.UserID), Target: code.ClientID, Details: code.Scopes.Names(),
		Data: data}), nil
}

// ofIDJAG returns a context whose next write records that a client gets an ID-JAG for a person, for
// the service with the issuer audience. Its scopes are those of that service: they are not recorded.
func ofIDJAG(ctx context.Context, userID int64, clientID, audience string) context.Context {
	return audit.With(ctx, audit.Event{Action: audit.Authorized, Subject: audit.OfUser(userID),
		Target: clientID, Data: audit.Data{"audience": audience}})
}

// ofExchange returns a context whose next write records that a client gets a token at one place for a
// token of another.
func ofExchange(
	ctx context.Context, subject *oauth.AccessToken, clientID string, from, to *oauth.Reach,
) context.Context {
	return audit.With(ctx, audit.Event{Action: audit.Authorized, Subject: audit.OfUser(subject.UserID),
		Target: clientID, Data: audit.Data{"audience": to.URI, "scopes": append([]string{}, to.Scopes...),
			"from": from.URI, "client": subject.ClientID}})
}

// ofSecrets adds an event for each secret that is in some and not in others.
func ofSecrets(ctx context.Context, action audit.Action, id string,
	some, others []oauth.Secret) context.Context {
	for _, s := range some {
		if !slices.ContainsFunc(others, func(o oauth.Secret) bool { return o.ID == s.ID }) {
			ctx = audit.With(ctx, audit.Event{Action: action, Subject: audit.OfClient(id),
				Target: s.ID})
		}
	}
	return ctx
}

// clientMember is a member of a client's record, as in the admin API.
type clientMember struct {
	name  string
	value any
}

// membersOf returns the members of a client that operators or its document change, without secrets. A
// client has nil in place of an empty list.
func membersOf(c *oauth.Client) []clientMember {
	list := func(all []string) any { return append([]string{}, all...) }
	o := &c.Options
	return []clientMember{
		{"name", c.Name},
		{"client_uri", c.URI},
		{"redirect_uris", list(c.RedirectURIs)},
		{"scopes", list(c.Scopes.Names())},
		{"grants", list(c.Grants.Names())},
		{"public", c.Public},
		{"operator", c.Operator},
		{"loopback_any_port", c.LoopbackAnyPort},
		{"introspect_any", c.IntrospectAny},
		{"tokens_per_minute", c.TokensPerMinute},
		{"id_token_alg", o.IDTokenAlg},
		{"claims_in_id_token", o.ClaimsInIDToken},
		{"post_logout_redirect_uris", list(o.PostLogoutRedirectURIs)},
		{"backchannel_logout_uri", o.BackchannelLogoutURI},
		{"first_party", o.FirstParty},
		{"require_pkce", o.RequirePKCE}, {"require_second_factor", o.RequireSecondFactor},
		{"access_token_format", map[bool]string{true: "jwt", false: "opaque"}[o.JWTAccessTokens]},
		{"jwks", o.JWKS},
		{"jwks_uri", o.JWKSURI},
		{"metadata_url", o.MetadataURL},
		{"federated", o.Federated},
		{"id_jag", o.IDJAG},
		{"resources", list(o.Resources)},
		{"serves", list(o.Serves)},
		{"exchange", append([]oauth.ExchangeRule{}, o.Exchange...)},
		{"require_groups", list(o.RequireGroups)},
		{"verified", o.Verified}, {"logo", o.Logo},
		{"set", o.Set},
		{"declared", o.Declared},
	}
}

// revoked returns the event of tokens that their client ends. Its subject is the user, if there is
// one.
func revoked(userID int64, clientID, what string) audit.Event {
	e := audit.Event{Action: audit.TokensRevoked, Subject: audit.OfClient(clientID),
		Details: []string{what}}
	if userID != 0 {
		e.Subject, e.Target = audit.OfUser(userID), clientID
	}
	return e
}

// revokedAll returns the event of what op ends.
func revokedAll(op *oauth.Revoke) audit.Event {
	switch {
	case op.UserID != 0:
		return revoked(op.UserID, "", "user")
	case op.ClientID != "":
		return revoked(0, op.ClientID, "client")
	case op.Consent != nil:
		return revoked(op.Consent.UserID, op.Consent.ClientID, "consent")
	case op.Token != nil:
		return revoked(0, op.Token.ClientID, "token")
	}
	return audit.Event{Action: audit.TokensRevoked, Target: op.FamilyID.String(),
		Details: []string{"family"}}
}
