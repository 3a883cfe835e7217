package token

import (
	"context"
	"slices"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// ofClient returns a context whose next write records an event about a client.
func ofClient(ctx context.Context, action audit.Action, id string) context.Context {
	return audit.With(ctx, audit.Event{Action: action, Subject: audit.OfClient(id)})
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
	if changed := changedMembers(old, c); changed != nil {
		ctx = audit.With(ctx, audit.Event{Action: audit.ClientChanged,
			Subject: audit.OfClient(c.ID), Details: changed})
	}
	return ctx
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

// changedMembers returns the names of the members that differ, as in the admin API.
func changedMembers(old, c *oauth.Client) (names []string) {
	o, n := &old.Options, &c.Options
	for _, m := range []struct {
		name    string
		changed bool
	}{
		{"name", old.Name != c.Name},
		{"client_uri", old.URI != c.URI},
		{"redirect_uris", !slices.Equal(old.RedirectURIs, c.RedirectURIs)},
		{"scopes", old.Scopes != c.Scopes},
		{"grants", old.Grants != c.Grants},
		{"operator", old.Operator != c.Operator},
		{"loopback_any_port", old.LoopbackAnyPort != c.LoopbackAnyPort},
		{"introspect_any", old.IntrospectAny != c.IntrospectAny},
		{"tokens_per_minute", old.TokensPerMinute != c.TokensPerMinute},
		{"id_token_alg", o.IDTokenAlg != n.IDTokenAlg},
		{"claims_in_id_token", o.ClaimsInIDToken != n.ClaimsInIDToken},
		{"post_logout_redirect_uris",
			!slices.Equal(o.PostLogoutRedirectURIs, n.PostLogoutRedirectURIs)},
		{"backchannel_logout_uri", o.BackchannelLogoutURI != n.BackchannelLogoutURI},
		{"require_pkce", o.RequirePKCE != n.RequirePKCE},
		{"access_token_format", o.JWTAccessTokens != n.JWTAccessTokens},
		{"jwks", o.JWKS != n.JWKS},
		{"jwks_uri", o.JWKSURI != n.JWKSURI},
		{"resources", !slices.Equal(o.Resources, n.Resources)},
	} {
		if m.changed {
			names = append(names, m.name)
		}
	}
	return names
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
