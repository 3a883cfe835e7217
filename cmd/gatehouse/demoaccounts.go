package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

const (
	demoEmail  = "ada@example.com"
	demoNumber = "+12025550123"

	// Nobody has to listen there.
	demoRedirect    = "http://127.0.0.1:8085/callback"
	demoAfterLogout = "http://127.0.0.1:8085/"
)

// demoDetails are the details of events in the audit trail that say what settle did.
var demoDetails = []string{"demo"}

// settle makes the database hold what the file says, before anything is served. What is missing or
// differs is set again, with a note for each, except the first time.
func (f *demoFile) settle(ctx context.Context, store *sqlstore.Store,
	now time.Time) (notes []string, err error) {
	d := &demo{store: store, now: now, fresh: f.Clients == nil}
	d.user(ctx, f)
	d.phoneUser(ctx, f)
	if f.Clients == nil {
		f.Clients = &demoClients{}
	}
	codes := oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant
	d.client(ctx, &f.Clients.Confidential, oauth.Client{Name: "Demo Shop", DetailApproved: true,
		RedirectURIs: []string{demoRedirect},
		Scopes:       oauth.UserScopes, Grants: codes | oauth.ClientCredentialsGrant})
	d.client(ctx, &f.Clients.Public, oauth.Client{Name: "Demo App", Public: true,
		LoopbackAnyPort: true, RedirectURIs: []string{demoRedirect},
		Scopes: oauth.UserScopes, Grants: codes})
	d.client(ctx, &f.Clients.Unapproved, oauth.Client{Name: "Demo Newcomer",
		RedirectURIs: []string{demoRedirect},
		Scopes:       oauth.UserScopes, Grants: codes | oauth.ClientCredentialsGrant})
	d.client(ctx, &f.Clients.Operator, oauth.Client{Name: "Demo Operator", Operator: true,
		Scopes: oauth.ServerOperations, Grants: oauth.ClientCredentialsGrant})
	d.client(ctx, &f.Clients.OpenID, oauth.Client{Name: "Demo OpenID", DetailApproved: true,
		RedirectURIs: []string{demoRedirect}, Scopes: oauth.GrantableScopes, Grants: codes,
		Options: oauth.ClientOptions{PostLogoutRedirectURIs: []string{demoAfterLogout}}})
	return d.notes, d.err
}

// demo is one call of settle. It stops at the first error.
type demo struct {
	store *sqlstore.Store
	now   time.Time
	fresh bool // there was no file
	notes []string
	err   error
}

func (d *demo) note(format string, args ...any) {
	if !d.fresh {
		d.notes = append(d.notes, fmt.Sprintf(format, args...))
	}
}

// fail keeps the first error.
func (d *demo) fail(doing string, err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("%s: %w", doing, err)
	}
}

func (d *demo) user(ctx context.Context, f *demoFile) {
	if f.User == nil || f.User.Password == "" {
		f.User = &demoUser{Password: rand.Text()}
	}
	was := f.User.ID
	f.User.Email = demoEmail
	u, err := d.store.UserByEmail(ctx, demoEmail)
	hasher := account.NewHasher(account.DefaultCost())
	switch {
	case errors.Is(err, account.ErrNotFound):
		u = &account.User{
			Name: "Ada Lovelace", Email: demoEmail, Username: "ada", Gender: "female",
			Bio:          "Wrote the first program.",
			PlaceOfBirth: "London", DateOfBirth: "1990-12-10",
			Address:        "12 St James's Square, London",
			ProfilePicture: "https://example.com/ada.png",
		}
		u.PasswordHash = hasher.Hash(f.User.Password)
		d.create(ctx, u)
		d.note("the user %s did not exist any more and is created again, with another id",
			demoEmail)
	case err != nil:
		d.fail("read the demo's user", err)
		return
	default:
		right, _, err := hasher.Verify(u.PasswordHash, f.User.Password)
		d.fail("check the demo's password", err)
		if !right || u.Disabled {
			u.Disabled = false
			u.PasswordHash = hasher.Hash(f.User.Password)
			d.update(ctx, u)
			d.note("the password of %s did not match, or the user was disabled: both are set again",
				demoEmail)
		} else if was != u.ID {
			d.note("the id of %s is %d now", demoEmail, u.ID)
		}
	}
	f.User.ID = u.ID
}

func (d *demo) phoneUser(ctx context.Context, f *demoFile) {
	was := f.PhoneUser
	u, err := d.store.UserByPhone(ctx, demoNumber)
	switch {
	case errors.Is(err, account.ErrNotFound):
		u = &account.User{Name: "Grace Hopper", Phone: demoNumber}
		d.create(ctx, u)
		d.note("the user with a phone did not exist any more and is created again, with another id")
	case err != nil:
		d.fail("read the demo's user with a phone", err)
		return
	case u.Disabled:
		u.Disabled = false
		d.update(ctx, u)
		d.note("the user with a phone was disabled and is enabled again")
	case was == nil || was.ID != u.ID:
		d.note("the id of the user with a phone is %d now", u.ID)
	}
	f.PhoneUser = &demoPhone{Phone: demoNumber, ID: u.ID}
}

// create stores a new user, without the username if another user has it.
func (d *demo) create(ctx context.Context, u *account.User) {
	u.Created, u.Updated = d.now, d.now
	if d.err != nil {
		return
	}
	ctx = audit.With(ctx, audit.Event{Action: audit.AccountCreated, Details: demoDetails})
	err := d.store.CreateUser(ctx, u)
	if errors.Is(err, account.ErrTaken) {
		u.Username = ""
		err = d.store.CreateUser(ctx, u)
	}
	d.fail("make the demo's user", err)
}

func (d *demo) update(ctx context.Context, u *account.User) {
	u.Updated = d.now
	if d.err == nil {
		ctx = audit.With(ctx, audit.Event{Action: audit.AccountChanged,
			Subject: audit.OfUser(u.ID), Details: demoDetails})
		d.fail("change the demo's user", d.store.UpdateUser(ctx, u))
	}
}

// client makes the database hold the file's client as wanted, with the file's secret.
func (d *demo) client(ctx context.Context, file *demoClient, want oauth.Client) {
	if d.err != nil {
		return
	}
	known := file.ClientID != "" // an older demo did not have all clients
	if _, err := uuid.Parse(file.ClientID); err != nil {
		*file = demoClient{ClientID: uuid.NewString()}
	}
	if len(want.RedirectURIs) > 0 {
		file.RedirectURI = want.RedirectURIs[0]
	}
	if !want.Public && !oauth.LooksLikeClientSecret(file.ClientSecret) {
		file.ClientSecret, _ = oauth.NewSecret(d.now)
	}
	if want.Public {
		file.ClientSecret = ""
	}
	there, err := d.store.Client(ctx, file.ClientID)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		want.Created = d.now
		d.keep(ctx, file, want, audit.ClientCreated, d.store.CreateClient)
		if known {
			d.note("the client %s did not exist any more and is registered again", want.Name)
		}
	case err != nil:
		d.fail("read the demo's client", err)
	case !sameClient(there, &want, file.ClientSecret):
		want.Created, want.Version = there.Created, there.Version
		d.keep(ctx, file, want, audit.ClientChanged, d.store.UpdateClient)
		d.note("the client %s did not match and is set again", want.Name)
	}
}

// keep stores a client whose only secret is the file's.
func (d *demo) keep(ctx context.Context, file *demoClient, c oauth.Client, action audit.Action,
	write func(context.Context, *oauth.Client) error) {
	c.ID = file.ClientID
	if !c.Public {
		_, kept := oauth.NewSecret(d.now)
		kept.Hash = oauth.HashOf(file.ClientSecret)
		c.Secrets = []oauth.Secret{kept}
	}
	d.fail("check the demo's client", c.CheckRegistration())
	if d.err == nil {
		ctx = audit.With(ctx, audit.Event{Action: action, Subject: audit.OfClient(c.ID),
			Details: demoDetails})
		d.fail("keep the demo's client", write(ctx, &c))
	}
}

// sameClient reports whether a client is as wanted and has that secret.
func sameClient(c, want *oauth.Client, secret string) bool {
	hash := oauth.HashOf(secret)
	holds := slices.ContainsFunc(c.Secrets, func(s oauth.Secret) bool { return s.Hash == hash })
	return !c.Disabled && c.Public == want.Public && c.Operator == want.Operator &&
		c.DetailApproved == want.DetailApproved &&
		c.LoopbackAnyPort == want.LoopbackAnyPort && c.Scopes == want.Scopes &&
		c.Grants == want.Grants && reflect.DeepEqual(c.Options, want.Options) &&
		slices.Contains(c.RedirectURIs, demoRedirect) == (len(want.RedirectURIs) > 0) &&
		holds == !want.Public
}
