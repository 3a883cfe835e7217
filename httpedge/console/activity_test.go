package console_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

var (
	eventRow = regexp.MustCompile(`<li><div>(.*)\n<p class="small soft"><time`)
	markup   = regexp.MustCompile(`<[^>]*>`)
)

// sentences returns what a page says of events.
func sentences(p stacktest.Page) (all []string) {
	for _, found := range eventRow.FindAllStringSubmatch(p.Body, -1) {
		all = append(all, html.UnescapeString(markup.ReplaceAllString(found[1], "")))
	}
	return all
}

// TestActivityInPlainWords shows events of each kind to an operator.
func TestActivityInPlainWords(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	d := st.Describe(t)
	o := newOperator(t, st)
	u := st.NewUser(t, "Kofi", kofi)
	c := st.NewClient(t, func(c *oauth.Client) { c.Name = "<Atlas> & Sons" })
	operator := audit.Actor{Kind: audit.User, ID: id(o.user)}
	person, nobody := audit.Actor{Kind: audit.User, ID: id(u)}, audit.Actor{Kind: audit.User}
	program, agent := audit.Actor{Kind: audit.Operator, ID: c.ID}, audit.Actor{Kind: audit.Client, ID: c.ID}
	gone := "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for _, row := range []struct {
		by   audit.Actor
		e    audit.Event
		want string
	}{
		{person, audit.Event{Action: audit.SignIn, Subject: audit.OfUser(u.ID), Details: []string{"password"}}, "Kofi signed in"},
		{nobody, audit.Event{Action: audit.SignIn, Outcome: audit.Failed, Subject: audit.OfUser(u.ID)}, "Somebody failed to sign in to the account of Kofi"},
		{operator, audit.Event{Action: audit.AccountDisabled, Subject: audit.OfUser(u.ID)}, "Ada Lovelace disabled the account of Kofi"},
		{operator, audit.Event{Action: audit.SignOut, Subject: audit.OfUser(u.ID), Details: []string{"all"}}, "Ada Lovelace ended sessions: the account of Kofi"},
		{person, audit.Event{Action: audit.AccountChanged, Subject: audit.OfUser(u.ID), Details: []string{"name", "phone_number"}}, "Kofi changed their own account: name, phone number"},
		{program, audit.Event{Action: audit.ClientDisabled, Subject: audit.OfClient(c.ID)}, "<Atlas> & Sons disabled <Atlas> & Sons"},
		{person, audit.Event{Action: audit.ConsentGiven, Subject: audit.OfUser(u.ID), Target: c.ID}, "Kofi let <Atlas> & Sons use their own account"},
		{agent, audit.Event{Action: audit.Authorized, Subject: audit.OfUser(u.ID), Target: c.ID}, "<Atlas> & Sons got access in the name of the account of Kofi"},
		{audit.Actor{}, audit.Event{Action: audit.KeysRotated, Target: "forms"}, "The service made new keys: forms"},
		{program, audit.Event{Action: audit.ClientDeleted, Subject: audit.OfClient(gone)}, "<Atlas> & Sons deleted a deleted app (" + gone + ")"},
		{operator, audit.Event{Action: audit.UserRead, Subject: audit.OfUser(9999)}, "Ada Lovelace looked at the account of a deleted person (9999)"},
		{audit.Actor{}, audit.Event{Action: "something_new", Subject: audit.OfUser(u.ID)}, "The service: something new (the account of Kofi)"},
	} {
		ctx := audit.With(audit.WithSource(t.Context(), audit.Source{Actor: row.by}), row.e)
		stacktest.Must(t, st.Store.Record(ctx))
		p := o.Get("/console/activity")
		if got := sentences(p); len(got) == 0 || got[0] != row.want {
			t.Errorf("got %q, want %q first", got, row.want)
		}
	}
	if e := newest(t, st, audit.TrailRead); e.Actor != operator {
		t.Errorf("got %+v, want the operator who read", e)
	}
	p := o.Get("/console/activity?user=" + id(u) + "&action=account_disabled")
	if got := sentences(p); len(got) != 1 || !strings.HasPrefix(got[0], "Ada Lovelace disabled") {
		t.Errorf("got %q, want the selected event", got)
	}
	if e := newest(t, st, audit.TrailRead); e.Data["user"] != float64(u.ID) || e.Data["action"] != "account_disabled" {
		t.Errorf("got %+v, want what was selected", e)
	}
	if got := sentences(o.Get("/console/activity?client=" + c.ID + "&action=client_disabled")); len(got) != 1 {
		t.Errorf("got %q, want the event of the app", got)
	}
	tomorrow := time.Now().AddDate(0, 0, 1).UTC().Format(time.DateOnly)
	if got := sentences(o.Get("/console/activity?since=" + tomorrow)); len(got) != 0 {
		t.Errorf("got %q, want nothing since tomorrow", got)
	}
	for field, wrong := range map[string]string{"user": "x", "client": "!", "since": "yesterday", "action": "fly"} {
		p := o.Once(http.MethodGet, "/console/activity?"+field+"="+wrong, nil)
		if p.Status != http.StatusUnprocessableEntity || !strings.Contains(p.Body, `id="`+field+`-wrong"`) {
			t.Errorf("%s: got %d %s, want 422", field, p.Status, p.Body)
		}
	}
	p.Says(t, "Ready", "One server", "0 messages are waiting", "forms", "just now", "The server has none of its own.")
	d.Covers("GET /console/activity 200")
}

// TestActivityIsPaged goes through the trail by links.
func TestActivityIsPaged(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	for range 60 {
		stacktest.Must(t, st.Store.Record(audit.With(t.Context(), audit.Event{Action: audit.KeysDropped})))
	}
	count, next := 0, "/console/activity?action=keys_dropped"
	for range 4 {
		p := o.Get(next)
		count += len(sentences(p))
		link := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(p.Body)
		if link == nil {
			break
		}
		next = html.UnescapeString(link[1])
	}
	if count != 60 {
		t.Errorf("got %d events on all pages, want 60", count)
	}
}
