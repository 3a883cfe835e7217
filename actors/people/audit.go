package people

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
)

// byUser returns a context whose events have the user as their actor, if they are a person's who is
// not known yet.
func byUser(ctx context.Context, id int64) context.Context {
	if audit.SourceOf(ctx).Actor != (audit.Actor{Kind: audit.User}) {
		return ctx
	}
	return audit.WithActor(ctx, audit.Actor{Kind: audit.User, ID: strconv.FormatInt(id, 10)})
}

// ofUser returns a context whose next write records an event about a user.
func ofUser(ctx context.Context, action audit.Action, id int64, details ...string) context.Context {
	return audit.With(ctx, audit.Event{Action: action, Subject: audit.OfUser(id), Details: details})
}

// ofCreation returns a context whose next write records that it creates a user.
func ofCreation(ctx context.Context, means string) context.Context {
	return audit.With(ctx, audit.Event{Action: audit.AccountCreated, Details: []string{means}})
}

// ofOperatorsCreation is ofCreation of an operator, with the values.
func ofOperatorsCreation(ctx context.Context, u *account.User) context.Context {
	return audit.With(ctx, audit.Event{Action: audit.AccountCreated, Details: []string{byOperator},
		Data: audit.Data{audit.After: audit.Data{"name": u.Name, "email": u.Email,
			"phone_number": u.Phone, "username": u.Username}}})
}

// ofSignIn returns a context whose next write records a sign-in.
func ofSignIn(
	ctx context.Context, u *account.User, session *account.Session, e entry,
) context.Context {
	if e.means == "" {
		return ctx
	}
	event := audit.Event{Action: audit.SignIn, Subject: audit.OfUser(u.ID), Target: e.app,
		Details: []string{e.means}, Data: audit.Data{"factors": session.AMR, "session": session.ID()}}
	if of, ok := strings.CutPrefix(string(e.way), connectionPrefix); ok {
		event.Data["provider"], _, _ = strings.Cut(of, " ")
	}
	if !e.known {
		event.Details = append(event.Details, "new_browser")
	}
	return audit.With(byUser(ctx, u.ID), event)
}

// ofChange returns a context whose next write records what it changes in a user's record, and by
// which authority. Of an operator's change it records the values.
func ofChange(ctx context.Context, old, u *account.User, a authority) context.Context {
	if old.Disabled != u.Disabled {
		action := audit.AccountEnabled
		if u.Disabled {
			action = audit.AccountDisabled
		}
		ctx = ofUser(ctx, action, u.ID)
	}
	addresses := differing([]member{{"email", old.Email, u.Email},
		{"phone_number", old.Phone, u.Phone}})
	if a.kind == asLink {
		return ofUser(ctx, audit.ChangeUndone, u.ID, names(addresses)...)
	}
	if old.PasswordHash != u.PasswordHash {
		action := audit.PasswordReset
		if a.kind == asPerson {
			action = audit.PasswordChanged
		}
		ctx = ofUser(ctx, action, u.ID)
	}
	if lacksPasskey(old, u, true) {
		ctx = ofUser(ctx, audit.PasskeyAdded, u.ID)
	}
	if lacksPasskey(u, old, true) {
		ctx = ofUser(ctx, audit.PasskeyRemoved, u.ID)
	}
	var factors []string
	for _, c := range credentialsOf(old, u) {
		if c.factors != "" {
			factors = append(factors, c.factors)
		}
	}
	if factors != nil {
		ctx = ofUser(ctx, audit.FactorsChanged, u.ID, factors...)
	}
	ctx = ofConnections(ctx, audit.ConnectionAdded, u.ID, old, u)
	ctx = ofConnections(ctx, audit.ConnectionRemoved, u.ID, u, old)
	ctx = ofMembers(ctx, audit.AddressChanged, u.ID, addresses)
	attributes := differing([]member{{"attributes", string(old.Attributes), string(u.Attributes)}})
	return ofMembers(ctx, audit.AccountChanged, u.ID, append(differing([]member{
		{"name", old.Name, u.Name}, {"username", old.Username, u.Username},
		{"gender", old.Gender, u.Gender}, {"bio", old.Bio, u.Bio},
		{"place_of_birth", old.PlaceOfBirth, u.PlaceOfBirth},
		{"date_of_birth", old.DateOfBirth, u.DateOfBirth}, {"address", old.Address, u.Address},
		{"profile_picture", old.ProfilePicture, u.ProfilePicture},
		{"phone_sign_in", strconv.FormatBool(old.PhoneSignIn), strconv.FormatBool(u.PhoneSignIn)},
	}), attributes...))
}

// ofConnections returns a context whose next write records each connection that b has and a does not
// have. Its target is the issuer.
func ofConnections(
	ctx context.Context, action audit.Action, id int64, a, b *account.User,
) context.Context {
	for _, c := range b.Credentials.Connections {
		if !slices.Contains(a.Ways(), c.Way()) {
			ctx = audit.With(ctx, audit.Event{Action: action, Subject: audit.OfUser(id),
				Target: c.Issuer})
		}
	}
	return ctx
}

// ofMembers returns a context whose next write records changed members of a user's record, if there
// are any.
func ofMembers(
	ctx context.Context, action audit.Action, id int64, changed []member,
) context.Context {
	if changed == nil {
		return ctx
	}
	e := audit.Event{Action: action, Subject: audit.OfUser(id), Details: names(changed)}
	if audit.SourceOf(ctx).ByOperator() {
		before, after := audit.Data{}, audit.Data{}
		for _, m := range changed {
			before[m.name], after[m.name] = m.old, m.new
		}
		e.Data = audit.Data{audit.Before: before, audit.After: after}
	}
	return audit.With(ctx, e)
}

// member is a member of a record, before and after a change.
type member struct{ name, old, new string }

// differing returns the members that have changed.
func differing(members []member) (changed []member) {
	for _, m := range members {
		if m.old != m.new {
			changed = append(changed, m)
		}
	}
	return changed
}

func names(members []member) (all []string) {
	for _, m := range members {
		all = append(all, m.name)
	}
	return all
}
