package console

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
)

// names finds the names of people and apps in events, each once. The first failure is in err.
type names struct {
	service *service
	ctx     context.Context
	known   map[string]any // values of slots
	err     error
}

// shown returns an event in plain words.
func (n *names) shown(e *audit.Event) pages.ActivityEvent {
	shown := pages.ActivityEvent{Action: string(e.Action), HistoryEvent: pages.HistoryEvent{
		Number: e.Number, Text: n.sentence(e), Count: e.Count, Time: texts.Moment(e.Time),
		At: e.Time.UTC().Format(time.RFC3339), Place: e.From}}
	if e.Subject.UserID != 0 {
		shown.Who = pathOfPerson(e.Subject.UserID)
	}
	if id := appOf(e); id != "" {
		shown.App = pathOfApp(id)
	}
	return shown
}

// withApp are the actions whose target is a client.
var withApp = []audit.Action{audit.SignIn, audit.Authorized, audit.ConsentGiven,
	audit.ConsentWithdrawn, audit.DeviceAllowed, audit.DeviceDenied, audit.TokensRevoked,
	audit.LogoutLost, audit.ClientRegistered, audit.ClientEnded}

// appOf returns the id of the client that an event is about; "" = none.
func appOf(e *audit.Event) string {
	id := e.Subject.ClientID
	if id == "" && slices.Contains(withApp, e.Action) {
		id = e.Target
	}
	if id == "" && e.Actor.Kind == audit.Client {
		id = e.Actor.ID
	}
	if !oauth.IsClientID(id) {
		return ""
	}
	return id
}

// sentence returns what happened: who did what, to whom.
func (n *names) sentence(e *audit.Event) texts.Text {
	key := string(e.Action)
	switch {
	case e.Action == audit.SignIn && e.Outcome != audit.OK:
		key += "_" + string(e.Outcome)
	case e.Action == audit.SignOut && !slices.Contains(e.Details, "all") &&
		!slices.Contains(e.Details, "others"):
		key = "session_ended"
	case e.Action == audit.Authorized && e.Actor.Kind == audit.Client: // by an ID-JAG
		key = "authorized_by_app"
	case e.Action == audit.PasswordReset:
		key = string(audit.PasswordChanged)
	case e.Action == audit.AddressChanged:
		key = string(audit.AccountChanged)
	case e.Action == audit.TokensRevoked && e.Subject.UserID == 0:
		key = "tokens_of_app_revoked"
	}
	if !slices.Contains(sentences, key) {
		text := texts.Of("trail.something", "who", n.actor(e), "action",
			strings.ReplaceAll(string(e.Action), "_", " "))
		if e.Subject.UserID != 0 {
			text = texts.Of("trail.something_about", "what", text, "account", n.account(e))
		}
		return text
	}
	return texts.Of("trail."+key, "who", n.actor(e), "account", n.account(e), "app", n.app(e),
		"target", e.Target, "what", strings.ReplaceAll(strings.Join(e.Details, ", "), "_", " "))
}

// sentences are the keys that a sentence has.
var sentences = []string{
	"sign_in", "sign_in_failed", "sign_in_refused", "sign_out", "session_ended", "browser_confirmed",
	"account_created", "account_changed", "account_disabled", "account_enabled", "account_deleted",
	"password_changed", "change_undone", "consent_given", "authorized", "authorized_by_app",
	"consent_withdrawn",
	"device_allowed", "device_denied", "logout_lost", "tokens_revoked", "tokens_of_app_revoked",
	"family_reused", "client_created", "client_changed", "client_deleted", "secret_created",
	"secret_revoked", "client_approved", "client_unapproved", "client_disabled", "client_enabled",
	"resource_created", "resource_changed", "resource_deleted", "keys_rotated", "keys_dropped",
	"user_read", "users_listed", "users_imported", "users_exported", "trail_read", "admin_refused",
	"member_added", "member_removed", "group_created", "group_changed", "group_deleted",
	"invitation_sent", "invitation_ended", "factors_changed", "factor_used", "passkey_added",
	"passkey_removed", "passkey_refused", "connection_added", "connection_removed",
	"client_registered", "client_ended", "client_failed", "budget_reached",
}

// actor returns who acted.
func (n *names) actor(e *audit.Event) any {
	switch {
	case e.Actor.Kind == audit.System:
		return texts.Of("history.system")
	case e.Actor.ID == "":
		return texts.Of("trail.somebody")
	case e.Actor.Kind == audit.User:
		id, _ := strconv.ParseInt(e.Actor.ID, 10, 64)
		return n.person(id)
	}
	return n.client(e.Actor.ID)
}

// account returns whose account an event is about.
func (n *names) account(e *audit.Event) any {
	switch id := e.Subject.UserID; {
	case id == 0:
		return texts.Of("trail.no_account")
	case e.Actor.Kind == audit.User && e.Actor.ID == strconv.FormatInt(id, 10):
		return texts.Of("trail.own_account")
	default:
		return texts.Of("trail.account_of", "whom", n.person(id))
	}
}

// app returns the app that an event is about.
func (n *names) app(e *audit.Event) any {
	if id := appOf(e); id != "" {
		return n.client(id)
	}
	return texts.Of("trail.some_app")
}

// person returns the name of a person, who may be gone.
func (n *names) person(id int64) any {
	return n.find("user "+strconv.FormatInt(id, 10), func() (any, error) {
		u, err := n.service.people.User(n.ctx, id)
		if errors.Is(err, account.ErrNotFound) {
			return texts.Of("trail.deleted_person", "id", strconv.FormatInt(id, 10)), nil
		}
		if err != nil {
			return nil, err
		}
		return u.Name, nil
	})
}

// client returns the name of a client, which may be gone.
func (n *names) client(id string) any {
	return n.find("client "+id, func() (any, error) {
		c, err := n.service.tokens.Client(n.ctx, id)
		if errors.Is(err, oauth.ErrNotFound) {
			return texts.Of("trail.deleted_app", "id", id), nil
		}
		if err != nil {
			return nil, err
		}
		return c.Name, nil
	})
}

// find returns what is known by a key, or finds it.
func (n *names) find(key string, find func() (any, error)) any {
	if value, ok := n.known[key]; ok || n.err != nil {
		return value
	}
	value, err := find()
	if err != nil {
		n.err = err
		return nil
	}
	n.known[key] = value
	return value
}
