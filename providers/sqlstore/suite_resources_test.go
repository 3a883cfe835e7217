package sqlstore_test

import (
	"reflect"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var resourceTests = map[string]func(*testing.T, *fixture){
	"ResourceRoundTrip":           resourceRoundTrip,
	"ResourceNumbersAreNotReused": resourceNumbers,
	"ConsentKeepsResources":       consentResources,
}

func (f *fixture) resource(uri string, scopes ...string) oauth.Resource {
	f.Helper()
	r := oauth.Resource{URI: uri, Scopes: scopes, Created: f.now}
	f.must(f.CreateResource(f.ctx, &r))
	return r
}

func resourceRoundTrip(t *testing.T, f *fixture) {
	all, err := f.Resources(f.ctx)
	if err != nil || len(all) != 0 {
		t.Errorf("got %v, %v, want none", all, err)
	}
	want := []oauth.Resource{f.resource("https://b.example/", "read", "write"),
		f.resource("https://a.example/", "x")}
	all, err = f.Resources(f.ctx)
	if err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("got %+v, %v, want %+v", all, err, want)
	}
	named := want[1]
	named.Name, named.Texts = "Notes", map[string]string{"x": "Read “your” notes"}
	f.must(f.ReplaceResource(f.ctx, &want[1], &named))
	named.Number = 0
	another := named
	another.URI = "https://c.example/"
	f.must(f.CreateResource(f.ctx, &another))
	if all, err = f.Resources(f.ctx); err != nil || len(all) != 3 ||
		!reflect.DeepEqual(all[1].Texts, named.Texts) || all[1].Name != named.Name ||
		!reflect.DeepEqual(all[2], another) {
		t.Errorf("got %+v, %v, want names and texts", all, err)
	}
	again := oauth.Resource{URI: want[0].URI, Created: f.now}
	f.wantError("the same URI", f.CreateResource(f.ctx, &again), oauth.ErrConflict)
}

func resourceNumbers(t *testing.T, f *fixture) {
	first := f.resource("https://a.example/")
	f.must(f.DeleteResource(f.ctx, first.Number))
	f.wantError("delete again", f.DeleteResource(f.ctx, first.Number), oauth.ErrNotFound)
	f.wantError("delete an unknown one", f.DeleteResource(f.ctx, 77), oauth.ErrNotFound)
	if all, err := f.Resources(f.ctx); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v, want none", all, err)
	}
	if second := f.resource("https://a.example/"); second.Number != first.Number+1 {
		t.Errorf("got number %d after %d, want the next one", second.Number, first.Number)
	}
}

func consentResources(t *testing.T, f *fixture) {
	var before time.Time
	for i, step := range []struct{ add, want string }{
		{"", ""}, {"1:3", "1:3"}, {"", "1:3"}, {"1:3 2:0", "1:3 2:0"},
	} {
		granted := f.now.Add(time.Duration(i) * time.Second)
		f.must(f.GrantConsent(f.ctx, &account.Consent{UserID: f.user.ID, ClientID: f.client.ID,
			Scopes: 1, Resources: step.add, Granted: granted, Used: granted}, before))
		got, err := f.Consent(f.ctx, f.user.ID, f.client.ID)
		f.must(err)
		all, err := f.Consents(f.ctx, f.user.ID)
		f.must(err)
		if got.Resources != step.want || len(all) != 1 || all[0].Resources != step.want {
			t.Errorf("step %d: got %q, want %q", i, got.Resources, step.want)
		}
		before = got.Granted
	}
}
