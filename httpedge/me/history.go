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
	"gatehouse/httpedge/pages"
)

const (
	// paramBefore is the parameter with the number of the last event on the page before.
	paramBefore = "before"
	historyRows = 25 // events on a page
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
	names := map[string]string{}
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
func (s *service) shownEvent(p *person, e audit.Event, names map[string]string) (
	shown pages.HistoryEvent, err error) {
	said := sentenceOf(&e)
	name, known := names[said.client]
	if said.client != "" && !known {
		if name, err = s.appName(p, said.client); err != nil {
			return shown, err
		}
		names[said.client] = name
	}
	shown = pages.HistoryEvent{Number: e.Number, Text: said.begin, App: name, End: said.end,
		Count: e.Count, Time: e.Time.UTC().Format("2 January 2006, 15:04 UTC"),
		At: e.Time.UTC().Format(time.RFC3339)}
	if e.Actor.Kind == audit.User { // where operators and servers are is not the person's business
		shown.Place = e.From
	}
	return shown, nil
}

// appName returns the name of a client, which may be gone.
func (s *service) appName(p *person, id string) (string, error) {
	client, err := s.tokens.Client(p.Ctx, id)
	if errors.Is(err, oauth.ErrNotFound) {
		return "a deleted app", nil
	}
	if err != nil {
		return "", err
	}
	return client.Name, nil
}

// sentence is an event in plain words: begin, the name of a client if there is one, and end.
type sentence struct {
	begin  string
	client string // id
	end    string
}

// sentenceOf returns what happened to an account.
func sentenceOf(e *audit.Event) sentence {
	who := map[audit.ActorKind]string{audit.User: "You", audit.Operator: "An operator",
		audit.Client: "An app", audit.System: "The service"}[e.Actor.Kind]
	plain := func(text string) sentence { return sentence{begin: text} }
	switch e.Action {
	case audit.SignIn:
		if e.Target != "" {
			return sentence{signInText(e) + " for", e.Target, ""}
		}
		return plain(signInText(e))
	case audit.Authorized:
		end := ""
		if texts := resourceTexts(e); texts != nil {
			end = ", which may " + strings.Join(texts, " and ")
		}
		return sentence{"You signed in to", e.Target, end}
	case audit.ChangeUndone:
		return plain("A change of " + members(e) + " was undone")
	case audit.UserRead:
		return plain(who + " looked at your account")
	case audit.SignOut:
		if slices.Contains(e.Details, "all") {
			return plain(who + " ended all sessions")
		}
		if slices.Contains(e.Details, "others") {
			return plain(who + " ended all other sessions")
		}
		if e.Actor.Kind != audit.User {
			return plain(who + " ended a session of yours")
		}
		return plain("You signed out")
	case audit.BrowserConfirmed:
		return plain(who + " confirmed a new browser with a code")
	case audit.AccountCreated:
		return plain(who + " created the account")
	case audit.AccountChanged, audit.AddressChanged:
		return plain(who + " changed " + members(e))
	case audit.AccountDisabled:
		return plain(who + " disabled the account")
	case audit.AccountEnabled:
		return plain(who + " enabled the account again")
	case audit.AccountDeleted:
		return plain(who + " deleted the account")
	case audit.PasswordChanged:
		return plain(who + " changed your password")
	case audit.PasswordReset:
		if e.Actor.Kind == audit.User {
			return plain("You set a new password with a code")
		}
		return plain(who + " set a new password")
	case audit.ConsentGiven:
		scopes, _ := oauth.ParseScopes(strings.Join(e.Details, " "))
		texts := append(permissionTexts(scopes), resourceTexts(e)...)
		if texts == nil {
			texts = []string{"know that you have an account"}
		}
		return sentence{who + " let", e.Target, " " + strings.Join(texts, " and ")}
	case audit.ConsentWithdrawn:
		return sentence{who + " removed", e.Target, " from your account"}
	case audit.DeviceAllowed:
		return sentence{who + " let", e.Target, " use the account on a device"}
	case audit.DeviceDenied:
		return sentence{who + " did not let", e.Target, " use the account on a device"}
	case audit.TokensRevoked:
		if e.Actor.Kind == audit.Client {
			return sentence{"You were signed out of", e.Actor.ID, ""}
		}
		if slices.Contains(e.Details, "user") {
			return plain(who + " ended the access of all apps")
		}
		return sentence{who + " ended the access of", e.Target, ""}
	case audit.FamilyReused:
		const why = " was ended, because one of its codes or tokens was used again"
		if e.Actor.Kind == audit.Client {
			return sentence{"The access of", e.Actor.ID, why}
		}
		return plain("The access of an app" + why)
	case audit.BudgetReached:
		if slices.Contains(e.Details, "passwords") {
			return plain("Too many wrong passwords were entered")
		}
		return plain("There were too many attempts, and more were refused for a while")
	}
	return plain("Something else happened: " + strings.ReplaceAll(string(e.Action), "_", " "))
}

// signInText describes a sign-in or an attempt.
func signInText(e *audit.Event) string {
	where := ""
	if slices.Contains(e.Details, "new_browser") {
		where = " in a new browser"
	}
	has := func(means string) bool { return slices.Contains(e.Details, means) }
	switch {
	case e.Outcome == audit.Failed && has("password"):
		return "Somebody entered a wrong password" + where
	case e.Outcome == audit.Failed:
		return "Somebody entered a wrong code" + where
	case e.Outcome == audit.Refused:
		return "Somebody was kept from signing in" + where
	case has("password"):
		return "You signed in with your password" + where
	case has("phone"):
		return "You signed in with a code to your phone" + where
	case has("registration"):
		return "You signed in for the first time" + where
	case has("reset"):
		return "You signed in after you set a new password" + where
	}
	return "You signed in" + where
}

// resourceTexts says what a consent lets an app do at the APIs of others.
func resourceTexts(e *audit.Event) (texts []string) {
	all, _ := e.Data["resources"].([]any)
	for _, one := range all {
		r, _ := one.(map[string]any)
		if uri, ok := r["resource"].(string); ok {
			texts = append(texts, "use "+uri)
		}
	}
	return texts
}

// memberWords are the members of an account in plain words.
var memberWords = map[string]string{
	"email": "email address", "phone_number": "phone number", "name": "name",
	"username": "username", "gender": "gender", "bio": "text about you",
	"place_of_birth": "place of birth", "date_of_birth": "date of birth", "address": "address",
	"profile_picture": "picture", "phone_sign_in": "sign-in by phone",
}

// members returns the changed members, as in "your name, username and gender".
func members(e *audit.Event) string {
	var words []string
	for _, name := range e.Details {
		if word, known := memberWords[name]; known {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return "your account"
	}
	last := len(words) - 1
	text := strings.Join(words[:last], ", ")
	if last > 0 {
		text += " and "
	}
	return "your " + text + words[last]
}
