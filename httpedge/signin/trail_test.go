package signin_test

import (
	"database/sql"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// auditedElsewhere are the actions that TestEachActionIsRecorded does not do, and who tests them.
var auditedElsewhere = map[audit.Action]string{
	audit.DeviceAllowed:     "TestDeviceDecisionsAreRecorded",
	audit.DeviceDenied:      "TestDeviceDecisionsAreRecorded",
	audit.ClientFailed:      "TestFailuresOfClients",
	audit.ClientRegistered:  "TestRegistrationIsRecorded",
	audit.ClientEnded:       "TestRegistrationIsRecorded",
	audit.LogoutLost:        "TestGivesUpAfterMaxAge",
	audit.ChangeUndone:      "TestLinkUndoesChange",
	audit.UsersListed:       "TestOperatorHidesNothing",
	audit.UsersExported:     "TestOperatorHidesNothing",
	audit.UsersImported:     "ImportedPartIsDoneOnce",
	audit.TrailRead:         "TestOperatorHidesNothing",
	audit.AdminRefused:      "TestOperatorHidesNothing",
	audit.BrowserConfirmed:  "the tests of codes for unknown browsers",
	audit.PasskeyAdded:      "TestEachChangeOfCredentials",
	audit.PasskeyRemoved:    "TestEachChangeOfCredentials",
	audit.FactorsChanged:    "TestFactorsAreRecorded",
	audit.ConnectionAdded:   "TestEachChangeOfCredentials",
	audit.ConnectionRemoved: "TestEachChangeOfCredentials",
	audit.PasskeyRefused:    "TestCopiedPasskeyIsRefused",
	audit.FactorUsed:        "TestFactorsAreRecorded",
	audit.MemberAdded:       "the tests of groups over the admin API",
	audit.MemberRemoved:     "the tests of groups over the admin API",
	audit.GroupCreated:      "the tests of groups over the admin API",
	audit.GroupChanged:      "the tests of groups over the admin API",
	audit.GroupDeleted:      "the tests of groups over the admin API",
	audit.AttributeChanged:  "the tests of groups over the admin API",
	audit.ClaimChanged:      "the tests of groups over the admin API",
	audit.InvitationSent:    "the tests of invitations",
	audit.InvitationEnded:   "the tests of invitations",
	audit.ProviderCreated:   "the tests of providers over the admin API",
	audit.ProviderChanged:   "the tests of providers over the admin API",
	audit.ProviderDeleted:   "the tests of providers over the admin API",
	audit.KeysDropped:       "TestDropTokenKeys: gatehouse keys drop works on the database itself",
}

// trail is a service whose audit trail is watched.
type trail struct {
	*testing.T
	stacktest.Reachable
	request string                      // id of all requests of a step
	done    []audit.Action              // of all steps
	secret  map[string]string           // names by value: what must not be in the trail
	data    map[audit.Action]audit.Data // of the last event of each action
}

// RoundTrip gives a request the id of the step.
func (a *trail) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("X-Request-Id", a.request)
	return (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
}

// mark says that a value must not be in the trail.
func (a *trail) mark(what, value string) string {
	a.Helper()
	if value == "" {
		a.Fatalf("got no %s", what)
	}
	a.secret[value] = what
	return value
}

// step calls do and checks the events that it records: all of them, in order. Their request and
// caller are the same for all, unless an event has the request "none".
func (a *trail) step(what string, do func(), want ...audit.Event) {
	a.Helper()
	a.request = "request-of-" + strings.ReplaceAll(what, " ", "-")
	after := a.lastEvent()
	do()
	ctx := audit.With(a.Context()) // without events: it waits for writes that nobody waits for
	if err := a.Store.Record(ctx); err != nil {
		a.Fatal(err)
	}
	got := a.events(audit.Filter{After: after, Limit: 100})
	for i := range got {
		a.done = append(a.done, got[i].Action)
		a.data[got[i].Action] = got[i].Data
		if got[i].Actor.Kind == audit.User && got[i].Browser == "" {
			a.Errorf("%s: got %+v, want the browser", what, got[i])
		}
		got[i].Number, got[i].Time, got[i].Browser, got[i].Data = 0, time.Time{}, "", nil
	}
	for i := range want {
		e := &want[i]
		if e.Outcome == "" {
			e.Outcome = audit.OK
		}
		if e.RequestID == "" {
			e.RequestID = a.request
		}
		e.Count, e.From = 1, "127.0.0.0/24"
		if e.RequestID == "none" {
			e.RequestID = ""
		}
	}
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		a.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

func (a *trail) events(f audit.Filter) []audit.Event {
	a.Helper()
	events, err := a.Store.Events(a.Context(), f)
	if err != nil {
		a.Fatal(err)
	}
	return slices.DeleteFunc(events, func(e audit.Event) bool {
		return e.Action == audit.ClientFailed // comes seconds later
	})
}

func (a *trail) lastEvent() int64 {
	a.Helper()
	events, err := a.Store.Events(a.Context(), audit.Filter{Newest: true, Limit: 1})
	if err != nil {
		a.Fatal(err)
	}
	for _, e := range events {
		return e.Number
	}
	return 0
}

// latestUser returns the id of the user who was created last.
func (a *trail) latestUser() int64 {
	a.Helper()
	users, err := a.Store.Users(a.Context(), 0, 1000)
	if err != nil || len(users) == 0 {
		a.Fatalf("got %d users and error %v", len(users), err)
	}
	return users[len(users)-1].ID
}

// about returns an event about a user by an actor.
func about(user int64, by audit.Actor, action audit.Action, details ...string) audit.Event {
	return audit.Event{Action: action, Subject: audit.OfUser(user), Details: details,
		Source: audit.Source{Actor: by}}
}

// aboutClient returns an event about a client by an actor.
func aboutClient(id string, by audit.Actor, action audit.Action, details ...string) audit.Event {
	return audit.Event{Action: action, Subject: audit.OfClient(id), Details: details,
		Source: audit.Source{Actor: by}}
}

func withTarget(e audit.Event, target string) audit.Event {
	e.Target = target
	return e
}

func person(id int64) audit.Actor {
	return audit.Actor{Kind: audit.User, ID: strconv.FormatInt(id, 10)}
}

// TestEachActionIsRecorded does each action over HTTP. Afterwards, no secret and no personal value
// of the run is in the trail.
func TestEachActionIsRecorded(t *testing.T) {
	location := sqlitetest.URL(t)
	mail := stacktest.NewMailbox()
	a := &trail{T: t, secret: map[string]string{}, data: map[audit.Action]audit.Data{}, Reachable: stacktest.Reachable{
		IdentityStack: stacktest.NewIdentity(t, mail.Deliver, stacktest.Database(location),
			stacktest.BehindProxy),
		Mail: mail,
	}}
	a.Client.Transport = a
	a.mark("caller", "127.0.0.1")
	a.mark("password", stacktest.Password)
	a.people()
	a.clients()
	a.operators()
	for _, action := range audit.Actions {
		if slices.Contains(a.done, action) == (auditedElsewhere[action] != "") {
			t.Errorf("%s: recorded here is %t; it is tested either here or elsewhere (%q)", action,
				slices.Contains(a.done, action), auditedElsewhere[action])
		}
	}
	for action, members := range map[audit.Action][]string{
		audit.SignIn: {"factors", "session"}, audit.SignOut: {"session"},
		audit.Authorized: {"session"}, audit.ClientChanged: {audit.After, audit.Before},
		audit.AddressChanged: {audit.After, audit.Before}, audit.PasswordReset: nil,
	} {
		if got := slices.Sorted(maps.Keys(a.data[action])); !slices.Equal(got, members) {
			t.Errorf("%s: got data %v, want %v", action, a.data[action], members)
		}
	}
	a.search(location)
}

// people does what people do on the pages.
func (a *trail) people() {
	st, c := a.IdentityStack, a.NewClient(a.T, nil)
	u := a.NewUser(a.T, a.mark("name", "Ada Marked"), a.mark("address", "marked-ada@example.com"))
	ada := person(u.ID)
	b := st.NewBrowser(a.T)
	signIn := func(b *stacktest.Browser, email, password string) {
		b.Send(b.Get("/login"), "email", email, "password", password).Shows(a.T, 200, "/me")
	}
	a.step("sign-in", func() { signIn(b, u.Email, stacktest.Password) },
		about(u.ID, ada, audit.SignIn, "password", "new_browser"))
	a.mark("session", b.Cookies()["gatehouse"])
	a.step("sign-in of a known browser", func() { signIn(b, u.Email, stacktest.Password) },
		about(u.ID, ada, audit.SignIn, "password"), about(u.ID, ada, audit.SignOut))
	a.step("wrong consent", func() {
		p := b.Get("/oauth/authorize?" + c.Request().Encode())
		p = b.Send(p, "account", stacktest.ChooserValue(u.ID))
		b.Send(p, "decision", "deny").FailsWith(a.T, st, "access_denied")
	})
	a.step("consent", func() { a.mark("access token", b.LetIn(c)) },
		withTarget(about(u.ID, ada, audit.ConsentGiven, "view-user"), c.ID),
		withTarget(about(u.ID, ada, audit.Authorized, "view-user"), c.ID))
	a.step("withdrawal", func() { b.SendTo(b.Get("/me/apps"), "/me/apps", "client_id", c.ID) },
		withTarget(about(u.ID, ada, audit.ConsentWithdrawn), c.ID))
	a.step("profile", func() {
		b.SendTo(b.Get("/me/profile"), "/me/profile", "bio", a.mark("bio", "marked biography"), "username",
			a.mark("username", "marked.ada")).Shows(a.T, 200, "/me/profile")
	}, about(u.ID, ada, audit.AccountChanged, "username", "bio"))
	a.step("profile without a change", func() {
		b.SendTo(b.Get("/me/profile"), "/me/profile").Shows(a.T, 200, "/me/profile")
	})
	email := a.mark("new address", "marked-new@example.com")
	a.step("address", func() {
		p := b.Send(b.Get("/me/email"), "email", email, "current_password", stacktest.Password)
		b.Send(p, "code", a.mark("code", a.Mail.Next(a.T, email).Code)).Shows(a.T, 200, "/me")
	}, about(u.ID, ada, audit.AddressChanged, "email"))
	a.step("phone", func() {
		p := b.Send(b.Get("/me/phone"), "phone_number", a.mark("phone", idaPhone),
			"current_password", stacktest.Password)
		b.Send(p, "code", a.Mail.Next(a.T, idaPhone).Code).Shows(a.T, 200, "/me")
	}, about(u.ID, ada, audit.AddressChanged, "phone_number"))
	word := a.mark("new password", "quiet tidal lamps 9")
	a.step("password", func() {
		b.Send(b.Get("/me/password"), "current_password", stacktest.Password, "new_password",
			word).Shows(a.T, 200, "/me")
	}, about(u.ID, ada, audit.PasswordChanged))
	away := st.NewBrowser(a.T)
	a.step("sign-in elsewhere", func() { signIn(away, email, word) },
		about(u.ID, ada, audit.SignIn, "password", "new_browser"))
	a.step("other sessions", func() { b.SendTo(b.Get("/me/sessions"), "/me/sessions", "all", "true") },
		about(u.ID, ada, audit.SignOut, "others"))
	a.step("other sessions again", func() {
		page := b.Get("/me/sessions")
		b.SendTo(page, "/me/sessions", "all", "true")
	})
	a.step("one session", func() {
		p := b.Get("/me/sessions")
		b.SendTo(p, "/me/sessions", "session", p.SessionIDs()[0]).Shows(a.T, 200, "/logout")
	}, about(u.ID, ada, audit.SignOut))
	a.step("reset", func() {
		p := b.Send(b.Get("/reset"), "email", email)
		b.Send(p, "code", a.Mail.Next(a.T, email).Code, "password",
			a.mark("third password", "seven old harbours")).Shows(a.T, 200, "/me")
	}, about(u.ID, ada, audit.PasswordReset), about(u.ID, ada, audit.SignIn, "reset"))
	a.step("sign-out", func() { b.Send(b.Get("/logout")).Shows(a.T, 200, "/logout") },
		about(u.ID, ada, audit.SignOut))
	a.newPeople(u.ID)
}

// newPeople registers people, and deletes an account.
func (a *trail) newPeople(last int64) {
	b := a.NewBrowser(a.T)
	next, nobody := last+1, audit.Actor{Kind: audit.User}
	a.step("registration", func() {
		p := b.Register("/register", a.mark("another address", "marked-ida@example.com"))
		b.Send(p, "code", a.Mail.Next(a.T, "marked-ida@example.com").Code).Shows(a.T, 200, "/me")
	}, about(next, nobody, audit.AccountCreated, "registration"),
		about(next, person(next), audit.SignIn, "registration", "new_browser"))
	a.step("deletion", func() {
		b.Send(b.Get("/me/delete"), "confirm", "delete", "current_password",
			a.mark("fourth password", stacktest.NewPassword)).Shows(a.T, 200, "/me/deleted")
	}, about(next, person(next), audit.AccountDeleted))
	next++
	a.step("registration by phone", func() {
		number := a.mark("another phone", "+14155550155")
		p := b.Send(b.Get("/register/phone"), "phone_number", number)
		code := a.Mail.Next(a.T, number).Code
		b.Send(p, "code", code, "name", "Marked Ida").Shows(a.T, 200, "/me")
	}, about(next, nobody, audit.AccountCreated, "phone"),
		about(next, person(next), audit.SignIn, "phone", "new_browser"))
	if got := a.latestUser(); got != next {
		a.Errorf("got user %d as the latest one, want %d", got, next)
	}
}

// clients does what clients do at the token endpoint.
func (a *trail) clients() {
	st, c := a.IdentityStack, a.NewClient(a.T, nil)
	a.mark("client secret", c.Secret)
	u := a.NewUser(a.T, "Bo", "marked-bo@example.com")
	by := audit.Actor{Kind: audit.Client, ID: c.ID}
	revoke := func(token string) {
		a.Helper()
		got := a.Send(a.T, "POST", st.URL+"/oauth/revoke", stacktest.Values("client_id", c.ID,
			"client_secret", c.Secret, "token", token).Encode(), "Content-Type",
			"application/x-www-form-urlencoded")
		if got.Status != 200 {
			a.Errorf("got %d %s, want 200", got.Status, got.Body)
		}
	}
	var access, refresh, code string
	access, refresh = st.NewToken(a.T, c, u.ID, oauth.ViewUser)
	a.mark("access token", access)
	a.mark("refresh token", refresh)
	a.step("revoke an access token", func() { revoke(access) },
		withTarget(about(u.ID, by, audit.TokensRevoked, "token"), c.ID))
	a.step("revoke a refresh token", func() { revoke(refresh) },
		withTarget(about(u.ID, by, audit.TokensRevoked, "family"), c.ID))
	a.step("revoke what has ended", func() { revoke(access); revoke(refresh); revoke("x") })
	a.step("own token", func() {
		access = st.PostToken(a.T,
			stacktest.Values(c.Credentials()...)).Object(a.T)["access_token"].(string)
	})
	a.step("revoke an own token", func() { revoke(access) },
		aboutClient(c.ID, by, audit.TokensRevoked, "token"))

	reused := func(family string) audit.Event {
		e := withTarget(about(u.ID, by, audit.FamilyReused), family)
		e.Outcome = audit.Refused
		return e
	}
	redeemed := func() string {
		code = a.mark("code", st.NewCode(a.T, c, u.ID, oauth.ViewUser))
		refresh = st.Redeem(a.T, c, code).Object(a.T)["refresh_token"].(string)
		return a.familyOf(refresh)
	}
	family := redeemed()
	a.step("replay of a code", func() {
		st.Redeem(a.T, c, code).FailsAs(a.T, 400, "invalid_grant")
	}, reused(family))
	a.step("replay again", func() { st.Redeem(a.T, c, code).FailsAs(a.T, 400, "invalid_grant") })
	family = redeemed()
	first := refresh
	rotate := func(token string) stacktest.Response {
		return st.PostToken(a.T, stacktest.Values("grant_type", "refresh_token", "client_id", c.ID,
			"client_secret", c.Secret, "refresh_token", token))
	}
	a.step("rotations", func() {
		for range 2 {
			refresh = rotate(refresh).Object(a.T)["refresh_token"].(string)
		}
	})
	a.step("reuse of a refresh token", func() { rotate(first).FailsAs(a.T, 400, "invalid_grant") },
		reused(family))
	a.step("a client that lies about its id", func() {
		st.PostToken(a.T, stacktest.Values("grant_type", "refresh_token", "client_id", c.ID,
			"client_secret",
			oauth.NewClientSecret(), "refresh_token", refresh)).FailsAs(a.T, 401, "invalid_client")
	})

	few := a.NewClient(a.T, func(c *oauth.Client) { c.TokensPerMinute = 1 })
	budget := aboutClient(few.ID, audit.Actor{Kind: audit.Client, ID: few.ID}, audit.BudgetReached,
		"tokens_per_minute")
	budget.Outcome, budget.RequestID = audit.Refused, "none"
	a.step("quota", func() {
		for range 5 {
			st.PostToken(a.T, stacktest.Values(few.Credentials()...))
		}
	}, budget)
}

func (a *trail) familyOf(refresh string) string {
	a.Helper()
	token, err := a.Store.RefreshToken(a.Context(), oauth.HashOf(refresh))
	if err != nil {
		a.Fatal(err)
	}
	return token.Family.ID.String()
}

// operators does what operators do with the admin API.
func (a *trail) operators() {
	o := a.NewOperator(a.T)
	a.mark("operator's token", o.Token)
	by := audit.Actor{Kind: audit.Operator, ID: o.ID}
	id, secret := "", ""
	a.request = "request-of-client"
	before := a.lastEvent()
	made := o.Do(201, "POST", "/clients", fmt.Sprintf(`{"name":%q,"redirect_uris":[%q]}`,
		a.mark("client's name", "Marked Shop"), stacktest.RedirectURI)).Object(a.T)
	id = made["client_id"].(string)
	a.mark("client's secret", made["client_secret"].(string))
	created := a.events(audit.Filter{After: before, Limit: 10})
	a.done = append(a.done, audit.ClientCreated)
	if len(created) != 1 || created[0].Action != audit.ClientCreated ||
		created[0].Subject != audit.OfClient(id) || created[0].Actor != by ||
		created[0].RequestID != a.request {
		a.Errorf("got %+v, want the creation of client %s", created, id)
	}
	client := "/clients/" + id
	does := func(status int, method, path, body string) func() {
		return func() { o.Do(status, method, path, body) }
	}
	a.step("client", does(200, "PATCH", client,
		`{"name":"Marked Store","scopes":["view-user","detail-user"],"tokens_per_minute":7}`),
		aboutClient(id, by, audit.ClientChanged, "name", "scopes", "tokens_per_minute"))
	a.step("client without a change", does(200, "PATCH", client, `{"name":"Marked Store"}`))
	a.step("bad change", does(400, "PATCH", client, `{"name":7}`))
	for _, row := range []struct {
		path   string
		action audit.Action
	}{
		{"approve", audit.ClientApproved}, {"unapprove", audit.ClientUnapproved},
		{"disable", audit.ClientDisabled}, {"enable", audit.ClientEnabled},
	} {
		a.step(row.path, does(200, "POST", client+"/"+row.path, ""),
			aboutClient(id, by, row.action))
		a.step(row.path+" again", does(200, "POST", client+"/"+row.path, ""))
	}
	a.request = "request-of-secret"
	rotated := o.Do(201, "POST", client+"/secrets", "").Object(a.T)
	secret = rotated["secret_id"].(string)
	a.mark("second secret", rotated["client_secret"].(string))
	got := a.events(audit.Filter{Newest: true, Limit: 1})[0]
	if got.Action != audit.SecretCreated || got.Subject != audit.OfClient(id) || got.Target != secret || got.Actor != by {
		a.Errorf("got %+v, want secret %s of client %s", got, secret, id)
	}
	a.done = append(a.done, audit.SecretCreated)
	a.step("third secret", does(409, "POST", client+"/secrets", ""))
	a.step("secret", does(200, "DELETE", client+"/secrets/"+secret, ""),
		withTarget(aboutClient(id, by, audit.SecretRevoked), secret))
	a.step("client deletion", does(204, "DELETE", client, ""),
		aboutClient(id, by, audit.ClientDeleted))
	a.step("client deletion again", does(404, "DELETE", client, ""))
	resource := audit.Event{Action: audit.ResourceCreated, Target: "https://notes.example/api",
		Source: audit.Source{Actor: by}}
	a.step("resource", does(201, "POST", "/resources", `{"uri":"https://notes.example/api"}`), resource)
	a.step("resource again", does(409, "POST", "/resources", `{"uri":"https://notes.example/api"}`))
	changed := resource
	changed.Action, changed.Details = audit.ResourceChanged, []string{"scopes"}
	a.step("resource change", does(200, "PUT", "/resources",
		`{"uri":"https://notes.example/api","scopes":["notes:read"]}`), changed)
	resource.Action = audit.ResourceDeleted
	a.step("resource deletion", does(204, "DELETE", "/resources/1", ""), resource)

	next := a.latestUser() + 1
	user := "/users/" + strconv.FormatInt(next, 10)
	a.step("user", does(201, "POST", "/users", fmt.Sprintf(
		`{"name":"Marked Cy","email":%q,"password":%q}`, a.mark("Cy's address",
			"marked-cy@example.com"), a.mark("Cy's password", "rapid green trams"))),
		about(next, by, audit.AccountCreated, "operator"))
	a.step("members of a user", does(200, "PATCH", user,
		`{"name":"Marked Cyd","email":"marked-cyd@example.com","address":"4711 Marked Road"}`),
		about(next, by, audit.AddressChanged, "email"),
		about(next, by, audit.AccountChanged, "name", "address"))
	a.step("disable a user", does(200, "POST", user+"/disable", ""),
		about(next, by, audit.AccountDisabled))
	a.step("enable a user", does(200, "POST", user+"/enable", ""),
		about(next, by, audit.AccountEnabled))
	a.step("enable a user again", does(200, "POST", user+"/enable", ""),
		about(next, by, audit.UserRead)) // the response shows the profile
	a.step("reset a password", does(204, "POST", user+"/reset-password",
		`{"password":"slow blue ferries"}`), about(next, by, audit.PasswordReset))
	a.step("revoke tokens", does(204, "POST", user+"/revoke-tokens", ""),
		about(next, by, audit.TokensRevoked, "user"))
	a.step("user deletion", does(204, "DELETE", user, ""), about(next, by, audit.AccountDeleted))

	rotation := func(details ...string) audit.Event {
		return audit.Event{Action: audit.KeysRotated, Target: "forms", Details: details,
			Source: audit.Source{Actor: by}}
	}
	a.step("keys", does(200, "POST", "/keys/rotate", `{"purpose":"forms"}`), rotation())
	a.step("keys again", does(409, "POST", "/keys/rotate", `{"purpose":"forms"}`))
	a.step("keys now", does(200, "POST", "/keys/rotate", `{"purpose":"forms","now":true}`),
		rotation("now"))
}

// search looks for marked values in all columns of the trail.
func (a *trail) search(location string) {
	a.Helper()
	path := strings.TrimPrefix(location, "sqlite:")
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro")
	if err != nil {
		a.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			a.Error(err)
		}
	}()
	var dump strings.Builder
	for _, table := range []string{"audit", "audit_counts"} {
		rows, err := db.Query("SELECT * FROM " + table)
		if err != nil {
			a.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			a.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				a.Fatal(err)
			}
			operators := slices.Contains(columns, "data") &&
				fmt.Sprint(*values[slices.Index(columns, "actor_kind")].(*any)) == "operator"
			for i, v := range values {
				if columns[i] == "data" && operators { // which has what operators have changed
					continue
				}
				fmt.Fprintf(&dump, "%s=%v ", columns[i], *v.(*any))
			}
			dump.WriteByte('\n')
		}
		if err := rows.Err(); err != nil {
			a.Fatal(err)
		}
	}
	text := strings.ToLower(dump.String())
	if len(text) < 1000 {
		a.Fatalf("got a trail of %d bytes, want a longer one", len(text))
	}
	for value, what := range a.secret {
		if strings.Contains(text, strings.ToLower(value)) {
			a.Errorf("got the %s in the trail", what)
		}
	}
	if at := strings.Index(text, "marked"); at >= 0 {
		a.Errorf("got a mark in the trail: …%s", text[max(0, at-120):min(len(text), at+60)])
	}
}
