package people

import (
	"context"
	"strconv"

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

// ofSignIn returns a context whose next write records a sign-in.
func ofSignIn(ctx context.Context, u *account.User, e entry) context.Context {
	switch {
	case e.means == "":
		return ctx
	case e.known:
		return ofUser(byUser(ctx, u.ID), audit.SignIn, u.ID, e.means)
	}
	return ofUser(byUser(ctx, u.ID), audit.SignIn, u.ID, e.means, "new_browser")
}

// ofChange returns a context whose next write records what it changes in a user's record. A
// password is recorded by those who know why it changes.
func ofChange(ctx context.Context, old, u *account.User) context.Context {
	if old.Disabled != u.Disabled {
		action := audit.AccountEnabled
		if u.Disabled {
			action = audit.AccountDisabled
		}
		ctx = ofUser(ctx, action, u.ID)
	}
	if changed := differing([]member{{"email", old.Email, u.Email},
		{"phone_number", old.Phone, u.Phone}}); changed != nil {
		ctx = ofUser(ctx, audit.AddressChanged, u.ID, changed...)
	}
	if changed := differing([]member{
		{"name", old.Name, u.Name}, {"username", old.Username, u.Username},
		{"gender", old.Gender, u.Gender}, {"bio", old.Bio, u.Bio},
		{"place_of_birth", old.PlaceOfBirth, u.PlaceOfBirth},
		{"date_of_birth", old.DateOfBirth, u.DateOfBirth}, {"address", old.Address, u.Address},
		{"profile_picture", old.ProfilePicture, u.ProfilePicture},
		{"phone_sign_in", strconv.FormatBool(old.PhoneSignIn), strconv.FormatBool(u.PhoneSignIn)},
	}); changed != nil {
		ctx = ofUser(ctx, audit.AccountChanged, u.ID, changed...)
	}
	return ctx
}

// member is a member of a record, before and after a change.
type member struct{ name, old, new string }

// differing returns the names of the members that have changed.
func differing(members []member) (names []string) {
	for _, m := range members {
		if m.old != m.new {
			names = append(names, m.name)
		}
	}
	return names
}
