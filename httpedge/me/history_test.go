package me_test

import (
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/geo"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

var (
	historyRow = regexp.MustCompile(`(?s)<li><div>(.*?)\n<p class="small soft">(.*?)</p>`)
	markup     = regexp.MustCompile(`<[^>]*>`)
)

// historyOf returns the sentences of a page, and the lines below them.
func historyOf(p stacktest.Page) (sentences, lines []string) {
	for _, found := range historyRow.FindAllStringSubmatch(p.Body, -1) {
		sentences = append(sentences, html.UnescapeString(markup.ReplaceAllString(found[1], "")))
		lines = append(lines, html.UnescapeString(markup.ReplaceAllString(found[2], "")))
	}
	return sentences, lines
}

// TestHistoryInPlainWords shows events of each kind to the person whom they are about.
func TestHistoryInPlainWords(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u, other := st.NewUser(t, "Ada", ada), st.NewUser(t, "Bo", "bo@example.com")
	c := st.NewClient(t, func(c *oauth.Client) { c.Name = "<Atlas> & Sons" })
	api := st.NewClient(t, func(c *oauth.Client) { c.Name = "Notes" })
	b, _ := st.SignedIn(t, ada)
	you, nobody := audit.Actor{Kind: audit.User, ID: strconv.FormatInt(u.ID, 10)}, audit.Actor{Kind: audit.User}
	operator := audit.Actor{Kind: audit.Operator, ID: "op"}
	console := audit.Actor{Kind: audit.User, ID: strconv.FormatInt(other.ID, 10)}
	app := audit.Actor{Kind: audit.Client, ID: c.ID}
	gone := audit.Actor{Kind: audit.Client, ID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}
	const seesName = " see your name, email address, username, profile picture and gender"
	for _, row := range []struct {
		by      audit.Actor
		action  audit.Action
		outcome audit.Outcome
		target  string
		details string
		count   int
		want    string
	}{
		{you, audit.SignIn, "", "", "password", 1, "You signed in with your password"},
		{you, audit.SignIn, "", "", "password new_browser", 1,
			"You signed in with your password in a new browser"},
		{you, audit.SignIn, "", "", "phone", 1, "You signed in with a code to your phone"},
		{you, audit.SignIn, "", "", "registration new_browser", 1,
			"You signed in for the first time in a new browser"},
		{you, audit.SignIn, "", "", "reset", 1, "You signed in after you set a new password"},
		{you, audit.SignIn, "", "", "key", 1, "You signed in"},
		{nobody, audit.SignIn, audit.Failed, "", "password", 12,
			"Somebody entered a wrong password (12 times)"},
		{nobody, audit.SignIn, audit.Failed, "", "password new_browser", 1,
			"Somebody entered a wrong password in a new browser"},
		{nobody, audit.SignIn, audit.Failed, "", "phone", 2,
			"Somebody entered a wrong code (2 times)"},
		{nobody, audit.SignIn, audit.Refused, "", "password", 1,
			"Somebody was kept from signing in"},
		{you, audit.SignOut, "", "", "", 1, "You signed out"},
		{you, audit.SignOut, "", "", "others", 1, "You ended all other sessions"},
		{you, audit.BrowserConfirmed, "", "", "", 1, "You confirmed a new browser with a code"},
		{nobody, audit.AccountCreated, "", "", "registration", 1, "You created the account"},
		{operator, audit.AccountCreated, "", "", "operator", 1, "An operator created the account"},
		{audit.Actor{}, audit.AccountCreated, "", "", "demo", 1, "The service created the account"},
		{you, audit.AccountChanged, "", "", "name", 1, "You changed your name"},
		{operator, audit.AccountChanged, "", "", "username gender bio", 1,
			"An operator changed your username, gender and text about you"},
		{you, audit.AccountChanged, "", "", "something_new", 1, "You changed your account"},
		{you, audit.AddressChanged, "", "", "email phone_number", 1,
			"You changed your email address and phone number"},
		{operator, audit.AccountDisabled, "", "", "", 1, "An operator disabled the account"},
		{console, audit.AccountDisabled, "", "", "", 1, "An operator disabled the account"},
		{console, audit.SignOut, "", "", "all", 1, "An operator ended all sessions"},
		{operator, audit.AccountEnabled, "", "", "", 1, "An operator enabled the account again"},
		{you, audit.AccountDeleted, "", "", "", 1, "You deleted the account"},
		{you, audit.PasswordChanged, "", "", "", 1, "You changed your password"},
		{nobody, audit.PasswordReset, "", "", "", 1, "You set a new password with a code"},
		{operator, audit.PasswordReset, "", "", "", 1, "An operator set a new password"},
		{you, audit.ConsentGiven, "", c.ID, "view-user", 1, "You let <Atlas> & Sons" + seesName},
		{you, audit.ConsentGiven, "", api.ID, "", 1, "You let Notes use https://notes.example/"},
		{you, audit.Authorized, "", api.ID, "openid", 1,
			"You signed in to Notes, which may use https://notes.example/"},
		{app, audit.Authorized, "", c.ID, "audience", 1,
			"<Atlas> & Sons got access to https://other.example in your name"},
		{app, audit.Authorized, "", c.ID, "provider", 1,
			"<Atlas> & Sons got access in your name through https://other.example"},
		{operator, audit.SignOut, "", "", "", 1, "An operator ended a session of yours"},
		{you, audit.ConsentGiven, "", gone.ID, "", 1,
			"You let a deleted app know that you have an account"},
		{you, audit.ConsentWithdrawn, "", c.ID, "", 1,
			"You removed <Atlas> & Sons from your account"},
		{app, audit.TokensRevoked, "", c.ID, "family", 1, "You were signed out of <Atlas> & Sons"},
		{operator, audit.TokensRevoked, "", "", "user", 1,
			"An operator ended the access of all apps"},
		{operator, audit.TokensRevoked, "", c.ID, "consent", 1,
			"An operator ended the access of <Atlas> & Sons"},
		{app, audit.FamilyReused, audit.Refused, "f", "", 1,
			"The access of <Atlas> & Sons was ended, because one of its codes or tokens was used again"},
		{audit.Actor{}, audit.FamilyReused, audit.Refused, "f", "", 1,
			"The access of an app was ended, because one of its codes or tokens was used again"},
		{nobody, audit.BudgetReached, "", "", "passwords", 1,
			"Too many wrong passwords were entered"},
		{nobody, audit.BudgetReached, audit.Refused, "", "codes", 1,
			"There were too many attempts, and more were refused for a while"},
		{operator, audit.KeysRotated, "", "", "", 1, "Something else happened: keys rotated"},
	} {
		ctx := audit.WithSource(t.Context(), audit.Source{Actor: row.by,
			Caller: netip.MustParseAddr("127.0.0.1")})
		var data audit.Data
		if row.target == api.ID {
			data = audit.Data{"resources": oauth.Recorded([]oauth.Reach{{URI: "https://notes.example/"}})}
		}
		if row.by == app && row.action == audit.Authorized { // an ID-JAG
			data = audit.Data{row.details: "https://other.example"}
		}
		if err := st.Store.Record(audit.With(ctx, audit.Event{Action: row.action,
			Outcome: row.outcome, Subject: audit.OfUser(u.ID), Target: row.target, Data: data,
			Details: strings.Fields(row.details), Count: row.count}, audit.Event{
			Action: audit.SignOut, Subject: audit.OfUser(other.ID)})); err != nil {
			t.Fatal(err)
		}
		p := b.Get("/me/history")
		sentences, lines := historyOf(p)
		if p.Shows(t, 200, "/me/history"); len(sentences) == 0 || sentences[0] != row.want {
			t.Errorf("%s: got %q, want %q first", row.action, sentences, row.want)
			continue
		}
		if got, want := strings.HasSuffix(lines[0], " UTC · from 127.0.0.0/24"),
			row.by.Kind == audit.User && row.by != console; got != want || !strings.Contains(lines[0], " UTC") {
			t.Errorf("%s: got %q, want a time, and a place is %t", row.action, lines[0], want)
		}
	}
	if p := b.Once(http.MethodPost, "/me/history", stacktest.Values("a", "b")); p.Status != 405 {
		t.Errorf("got %d for a POST, want 405", p.Status)
	}
}

// TestHistoryIsPaged goes from page to page by links. Nobody sees events of others.
func TestHistoryIsPaged(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	u, bo := st.NewUser(t, "Ada", ada), st.NewUser(t, "Bo", "bo@example.com")
	b, p := st.SignedIn(t, ada)
	p.Says(t, `<a href="/me/history">History</a>`)
	const count = 60
	for i := range count {
		ctx := audit.With(t.Context(),
			audit.Event{Action: audit.SignIn, Outcome: audit.Failed, Subject: audit.OfUser(u.ID),
				Details: []string{"password"}, Count: i + 2},
			audit.Event{Action: audit.AccountEnabled, Subject: audit.OfUser(bo.ID)},
			audit.Event{Action: audit.AccountEnabled, Subject: audit.OfClient("x"),
				Source: audit.Source{Actor: audit.Actor{Kind: audit.User, ID: strconv.FormatInt(u.ID, 10)}}})
		stacktest.Must(t, st.Store.Record(ctx))
	}
	var all []string
	older := regexp.MustCompile(`<a href="(/me/history\?before=\d+)" rel="next">Older events</a>`)
	next := "/me/history"
	for pages := 0; next != ""; pages++ {
		p := b.Get(next)
		p.Shows(t, 200, "/me/history")
		if len(p.Body) >= 20<<10 || pages > 10 {
			t.Fatalf("got page %d with %d bytes, want few pages of less than 20 KiB", pages,
				len(p.Body))
		}
		if got := strings.Contains(p.Body, ">Newest events</a>"); got != (pages > 0) {
			t.Errorf("got a link to the newest events on page %d: %t", pages, got)
		}
		sentences, _ := historyOf(p)
		all = append(all, sentences...)
		next = ""
		if found := older.FindStringSubmatch(p.Body); found != nil {
			next = found[1]
		}
	}
	want := []string{"You signed in with your password in a new browser"}
	for i := range count {
		want = append(want, fmt.Sprintf("Somebody entered a wrong password (%d times)", i+2))
	}
	slices.Reverse(want)
	if !slices.Equal(all, want) {
		t.Errorf("got %d sentences %q, want %d", len(all), all, len(want))
	}
	b.Get("/me/history?before=1").Says(t, "Nothing is recorded before that.")
	for _, bad := range []string{"x", "-1", "0", "9999999999999999999999", ""} {
		if got, _ := historyOf(b.Get("/me/history?before=" + bad)); len(got) == 0 ||
			got[0] != want[0] {
			t.Errorf("before=%s: got %q, want the newest events", bad, got)
		}
	}
	d.Covers("GET /me/history 200")
}

// TestHistoryOfAnIDThatIsUsedAgain imports a user with the id of one who is deleted: nobody sees what
// the former one did.
func TestHistoryOfAnIDThatIsUsedAgain(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	ids := func(n int) {
		t.Helper()
		before := time.Now().UnixMilli()
		for time.Now().UnixMilli() == before { // times have milliseconds
			time.Sleep(time.Millisecond)
		}
		o.Do(200, "POST", "/users/import", fmt.Sprintf(`{"import":"6ba7b810-9dad-11d1-80b4-00c04fd430c%d","users":[`+
			`{"line":1,"user":{"id":77,"name":"N","email":"%s","email_verified":true}}]}`, n, ada))
		o.Do(204, "POST", "/users/77/reset-password", `{"password":"`+stacktest.Password+`"}`)
	}
	ids(1)
	st.SignedIn(t, ada)
	o.Do(204, "DELETE", "/users/77", "")
	ids(2)
	b, _ := st.SignedIn(t, ada)
	sentences, _ := historyOf(b.Get("/me/history"))
	if len(sentences) != 2 {
		t.Errorf("got %q, want the new password and the sign-in of the new account", sentences)
	}
}

// TestPlacesAreShown knows by the database files where somebody signed in. The address of the test is
// in no other list.
func TestPlacesAreShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "city.mmdb")
	mmdbtest.WriteCity(t, path, map[string]geo.Location{"127.0.0.0/8": {Country: "United States",
		CountryCode: "US", City: "Honolulu"}})
	provider := stacktest.NewProvider()
	st := stacktest.NewIdentity(t, stacktest.WithProvider(provider), func(c *stack.Config) {
		c.Lookups.Files = mmdb.Config{Files: []string{path}}
	})
	st.NewUser(t, "Ada", ada)
	b, p := st.SignedIn(t, ada)
	for _, page := range []stacktest.Page{p, b.Get("/me/sessions"), b.Get("/me/history")} {
		page.Says(t, "near <bdi>Honolulu, United States</bdi>", `<time datetime="`)
	}
	if n := provider.Asked("127.0.0.1") + provider.Asked("127.0.0.0"); n != 0 {
		t.Errorf("got %d upstream queries about a person, want none", n)
	}
}
