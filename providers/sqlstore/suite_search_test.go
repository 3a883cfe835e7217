package sqlstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
)

var searchTests = map[string]func(*testing.T, *fixture){
	"SearchFindsParts":            searchFindsParts,
	"SearchEndsWithItsContext":    searchEndsWithContext,
	"PersonAsOperatorIsNotMerged": personAsOperatorIsNotMerged,
}

func searchFindsParts(t *testing.T, f *fixture) {
	for _, u := range []account.User{
		{Name: "Ölaf Übermut", Email: "Olaf@Example.org", Username: "Snow_Man"},
		{Name: "Rosa Liebermann", Email: "rosa@example.com"},
		{Name: `100% \ sure`},
	} {
		u.Created, u.Updated = f.now, f.now
		f.must(f.CreateUser(f.ctx, &u))
	}
	for text, want := range map[string][]string{
		"lieber": {"Rosa Liebermann"}, "LIEBER": {"Rosa Liebermann"}, "a l": {"Rosa Liebermann"},
		"Ölaf": {"Ölaf Übermut"}, "ölaf": {"Ölaf Übermut"}, "olaf@": {"Ölaf Übermut"},
		"EXAMPLE": {"Rosa Liebermann", "Ölaf Übermut"}, "snow_": {"Ölaf Übermut"}, "%": {`100% \ sure`},
		`\ s`: {`100% \ sure`}, "_": {"Ölaf Übermut"}, "nobody": nil, "": nil, "\x00": nil, "\xff": nil,
	} {
		found, err := f.FindUsers(f.ctx, text, 10)
		f.must(err)
		var got []string
		for _, u := range found {
			got = append(got, u.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if found, err := f.FindUsers(f.ctx, "a", 2); err != nil || len(found) != 2 {
		t.Errorf("got %d users, %v, want the limit of 2", len(found), err)
	}
	c := f.fullClient()
	f.must(f.CreateClient(f.ctx, c))
	for text, want := range map[string]int{"überA": 1, "app 🚀": 1, c.ID: 1, c.ID[:13]: 1, "nothing": 0, "": 0} {
		found, err := f.FindClients(f.ctx, text, 10)
		f.must(err)
		if len(found) != want || want == 1 && (found[0].ID != c.ID || len(found[0].RedirectURIs) != 3) {
			t.Errorf("%q: got %d clients, want %d", text, len(found), want)
		}
	}
}

func searchEndsWithContext(_ *testing.T, f *fixture) {
	ctx, cancel := context.WithDeadline(f.ctx, time.Now().Add(-time.Second))
	defer cancel()
	_, err := f.FindUsers(ctx, "a", 10)
	f.wantError("find users", err, context.DeadlineExceeded)
	_, err = f.FindClients(ctx, "a", 10)
	f.wantError("find clients", err, context.DeadlineExceeded)
}

// personAsOperatorIsNotMerged makes more changes than the rows of an hour: a person at the console
// hides none of them behind the others.
func personAsOperatorIsNotMerged(t *testing.T, f *fixture) {
	source := audit.Source{Actor: audit.Actor{Kind: audit.User, ID: "7"}, AsOperator: true}
	for range audit.MaxRows + 2 {
		f.must(f.Record(audit.With(audit.WithSource(f.ctx, source),
			audit.Event{Action: audit.ClientDisabled, Subject: audit.OfClient("shop")})))
	}
	got := f.events(audit.Filter{ClientID: "shop", Limit: 2 * audit.MaxRows})
	if len(got) != audit.MaxRows+2 || got[0].Actor != source.Actor {
		t.Errorf("got %d rows, the first by %+v, want one for each event, by the person", len(got),
			got[0].Actor)
	}
}
