package me

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
)

const (
	// paramBefore is the parameter with the number of the last event on the page before.
	paramBefore = "before"
	historyRows = 10 // events on a page
)

// history shows one page of the person's security history.
func (s *service) history(p *person) {
	before, err := strconv.ParseInt(string(p.HTTP.QueryArgs().Peek(paramBefore)), 10, 64)
	if err != nil || before < 1 {
		before = 0
	}
	events, err := s.audit.Events(p.Ctx, audit.Filter{UserID: p.User.ID, Before: before,
		Since:  p.User.Created, // an import may give the id of an account that is gone
		Newest: true, Limit: historyRows + 1})
	if err != nil {
		s.WriteFailure(p.HTTP, "read the history", err)
		return
	}
	page := pages.MeHistory{Account: p.Account(), More: len(events) > historyRows,
		Later: before != 0}
	names := map[string]any{}
	for _, e := range events[:min(len(events), historyRows)] {
		shown, err := s.shownEvent(p, e, names)
		if err != nil {
			s.WriteFailure(p.HTTP, "read a client", err)
			return
		}
		page.Events = append(page.Events, shown)
	}
	s.WritePage(p.HTTP, fasthttp.StatusOK, page)
}

// shownEvent returns an event in plain words. names holds the names of apps by client id.
func (s *service) shownEvent(p *person, e audit.Event, names map[string]any) (
	shown pages.HistoryEvent, err error) {
	id := clientOf(&e)
	if _, known := names[id]; !known && id != "" {
		if names[id], err = s.appName(p, id); err != nil {
			return shown, err
		}
	}
	shown = pages.HistoryEvent{Number: e.Number, Text: sentenceOf(&e, names[id]),
		Count: e.Count, Time: texts.Moment(e.Time),
		At: e.Time.UTC().Format(time.RFC3339)}
	if actorOf(&e) == audit.User { // where operators and servers are is not the person's business
		shown.Place, shown.Near = e.From, s.placeOf(e.From)
		if e.Browser != "" {
			shown.Device = texts.Device(e.Browser)
		}
	}
	return shown, nil
}

// clientOf returns the id of the client that an event is about; "" = none.
func clientOf(e *audit.Event) string {
	if e.Actor.Kind == audit.Client &&
		(e.Action == audit.TokensRevoked || e.Action == audit.FamilyReused) {
		return e.Actor.ID
	}
	switch e.Action {
	case audit.SignIn, audit.Authorized, audit.ConsentGiven, audit.ConsentWithdrawn,
		audit.DeviceAllowed, audit.DeviceDenied, audit.TokensRevoked:
		return e.Target
	}
	return ""
}

// appName returns the name of a client, which may be gone: the value of a slot.
func (s *service) appName(p *person, id string) (any, error) {
	client, err := s.tokens.Client(p.Ctx, id)
	if errors.Is(err, oauth.ErrNotFound) {
		return texts.Of("history.deleted_app"), nil
	}
	if err != nil {
		return nil, err
	}
	return client.Name, nil
}

// actorOf returns who acted, as the subject of the event sees it: another person has acted at the
// console, as an operator.
func actorOf(e *audit.Event) audit.ActorKind {
	if e.Actor.Kind == audit.User && e.Actor.ID != "" &&
		audit.OfUser(e.Subject.UserID).String() != "user:"+e.Actor.ID {
		return audit.Operator
	}
	return e.Actor.Kind
}

// actorKeys are the actors that are not the person.
var actorKeys = map[audit.ActorKind]string{audit.Operator: "history.operator",
	audit.Client: "history.client", audit.System: "history.system"}

// eventKeys are the sentences of actions that need no more than the actor and the app.
var eventKeys = map[audit.Action]string{
	audit.UserRead: "user_read", audit.BrowserConfirmed: "browser",
	audit.AccountCreated: "created", audit.AccountDisabled: "disabled",
	audit.AccountEnabled: "enabled", audit.AccountDeleted: "deleted",
	audit.PasswordChanged: "password", audit.PasswordReset: "reset",
	audit.ConsentWithdrawn: "withdrawn", audit.DeviceAllowed: "device_allowed",
	audit.DeviceDenied: "device_denied", audit.PasskeyAdded: "passkey_added",
	audit.PasskeyRemoved: "passkey_removed",
}

// factorTexts are the sentences of changes of second factors, by the detail of the event.
var factorTexts = []struct{ detail, key string }{
	{"authenticator_added", "app_added"}, {"authenticator_removed", "app_removed"},
	{"security_key_added", "key_added"}, {"security_key_removed", "key_removed"},
	{"recovery_codes_replaced", "codes_replaced"},
}

// sentenceOf returns what happened to an account. app is the name of the client that it is about;
// nil = none.
func sentenceOf(e *audit.Event, app any) texts.Text {
	// done returns the sentence of what the person did, or somebody else.
	done := func(key string, slots ...any) texts.Text {
		who, other := actorKeys[actorOf(e)]
		if !other {
			return texts.Of("history.you_"+key, slots...)
		}
		return texts.Of("history."+key, append(slots, "who", texts.Of(who))...)
	}
	if key, ok := eventKeys[e.Action]; ok {
		return done(key, "app", app)
	}
	switch e.Action {
	case audit.SignIn:
		return signInText(e, app)
	case audit.Authorized:
		if place, ok := e.Data["audience"].(string); ok { // an ID-JAG, which the app got
			return texts.Of("history.acts_at", "app", app, "place", place)
		}
		if place, ok := e.Data["provider"].(string); ok { // an ID-JAG, which the app sent
			return texts.Of("history.acts_through", "app", app, "place", place)
		}
		if used := resourceTexts(e); used != nil {
			return texts.Of("history.authorized_for", "app", app, "permissions", texts.List(used))
		}
		return texts.Of("history.authorized", "app", app)
	case audit.ChangeUndone:
		return texts.Of("history.change_undone", "members", members(e))
	case audit.SignOut:
		switch {
		case slices.Contains(e.Details, "all"):
			return done("ended_all")
		case slices.Contains(e.Details, "others"):
			return done("ended_others")
		case actorOf(e) != audit.User:
			return done("ended_one")
		}
		return texts.Of("history.you_signed_out")
	case audit.AccountChanged, audit.AddressChanged:
		return done("changed", "members", members(e))
	case audit.ConnectionAdded, audit.ConnectionRemoved:
		return done(string(e.Action))
	case audit.ConsentGiven:
		scopes, _ := oauth.ParseScopes(strings.Join(e.Details, " "))
		granted := append(permissionTexts(scopes), resourceTexts(e)...)
		if granted == nil {
			granted = []texts.Text{texts.Of("permission.exists")}
		}
		return done("consent", "app", app, "permissions", texts.List(granted))
	case audit.TokensRevoked:
		switch {
		case e.Actor.Kind == audit.Client:
			return texts.Of("history.client_ended", "app", app)
		case slices.Contains(e.Details, "user"):
			return done("ended_apps")
		}
		return done("ended_app", "app", app)
	case audit.MemberAdded:
		return texts.Of("history.member_added", "group", e.Target)
	case audit.MemberRemoved:
		return texts.Of("history.member_removed", "group", e.Target)
	case audit.FamilyReused:
		if app != nil {
			return texts.Of("history.reused", "app", app)
		}
		return texts.Of("history.reused_unknown")
	case audit.PasskeyRefused:
		return texts.Of("history.passkey_refused")
	case audit.FactorsChanged:
		for _, row := range factorTexts {
			if slices.Contains(e.Details, row.detail) {
				return done(row.key)
			}
		}
	case audit.FactorUsed:
		switch {
		case e.Outcome == audit.Failed:
			return texts.Of("history.wrong_factor")
		case slices.Contains(e.Details, "recovery_code"):
			return texts.Of("history.used_recovery")
		case slices.Contains(e.Details, "security_key"):
			return texts.Of("history.used_key")
		}
		return texts.Of("history.used_app")
	case audit.BudgetReached:
		if slices.Contains(e.Details, "second_factors") {
			return texts.Of("history.many_factors")
		}
		if slices.Contains(e.Details, "passwords") {
			return texts.Of("history.many_passwords")
		}
		return texts.Of("history.many_attempts")
	}
	return texts.Of("history.something", "action", strings.ReplaceAll(string(e.Action), "_", " "))
}

// signInText describes a sign-in or an attempt.
func signInText(e *audit.Event, app any) texts.Text {
	has := func(means string) bool { return slices.Contains(e.Details, means) }
	key := "signed_in"
	switch {
	case e.Outcome == audit.Failed && has("password"):
		key = "wrong_password"
	case e.Outcome == audit.Failed:
		key = "wrong_code"
	case e.Outcome == audit.Refused:
		key = "kept_out"
	case has("password"):
		key = "by_password"
	case has("passkey"):
		key = "by_passkey"
	case has("phone"):
		key = "by_phone"
	case has("registration"):
		key = "by_registration"
	case has("reset"):
		key = "by_reset"
	case has("provider"):
		key = "by_provider"
	}
	text := texts.Of("history." + key)
	if has("new_browser") {
		text = texts.Of("history.in_new_browser", "what", text)
	}
	if app != nil {
		text = texts.Of("history.for_app", "what", text, "app", app)
	}
	return text
}

// resourceTexts says what a consent lets an app do at the APIs of others.
func resourceTexts(e *audit.Event) (used []texts.Text) {
	all, _ := e.Data["resources"].([]any)
	for _, one := range all {
		r, _ := one.(map[string]any)
		if uri, ok := r["resource"].(string); ok {
			used = append(used, texts.Of("permission.resource_used", "place", uri))
		}
	}
	return used
}

// memberNames are the members of an account that have a text.
var memberNames = []string{"email", "phone_number", "name", "username", "gender", "bio",
	"place_of_birth", "date_of_birth", "address", "profile_picture", "phone_sign_in",
	"attributes"}

// members returns the changed members, as in "name, username and gender".
func members(e *audit.Event) texts.Text {
	var words []texts.Text
	for _, name := range e.Details {
		if slices.Contains(memberNames, name) {
			words = append(words, texts.Of("member."+name))
		}
	}
	if words == nil {
		return texts.Of("member.account")
	}
	return texts.List(words)
}

// permissionTexts returns what scopes let a client do. Each text follows "can" or "will be able
// to".
func permissionTexts(scopes oauth.Scopes) []texts.Text {
	var all []texts.Text
	for _, p := range pages.Permissions(scopes, 0) {
		all = append(all, p.Text)
	}
	return all
}
