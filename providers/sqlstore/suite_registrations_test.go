package sqlstore_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

var registrationTests = map[string]func(*testing.T, *fixture){
	"AwaitingClientsAreLimited":          awaitingClientsAreLimited,
	"RegistrantsAreLimited":              registrantsAreLimited,
	"SettledClientsAwaitNothing":         settledClients,
	"UnconsentedClientsEnd":              unconsentedClientsEnd,
	"ConsentedClientsStayWhileUsed":      consentedClientsStay,
	"ClientsWithRefreshTokensStay":       refreshedClientsStay,
	"DisabledClientsStay":                disabledClientsStay,
	"ClientsOfOperatorsStay":             operatorsClientsStay,
	"ManyClientsEndInSteps":              manyClientsEnd,
	"EndsOfClientsAreTold":               endsAreTold,
	"SelfRegisteredOfAccountAreLimited":  selfRegisteredAreLimited,
	"ConcurrentRegistrationsKeepTheRoom": registrationsAtOnce,
}

// most is how many clients may await a consent in these tests.
const most = 3

// awaiting returns a client that registers itself.
func (f *fixture) awaiting() *oauth.Client {
	return &oauth.Client{ID: uuid.NewString(), Name: "Agent", Public: true, Created: f.now,
		RedirectURIs: []string{"http://localhost/cb"}, Awaits: f.now.Add(oauth.ConsentWithin),
		Options: oauth.ClientOptions{SelfRegistered: true}}
}

func (f *fixture) register(c *oauth.Client) *oauth.Client {
	f.Helper()
	return f.registerFrom("", c)
}

// registerFrom registers a client of a caller, "" = not known, and checks which one ends for it.
func (f *fixture) registerFrom(caller string, c *oauth.Client, ended ...*oauth.Client) *oauth.Client {
	f.Helper()
	r := oauth.Registrant{Most: most}
	if caller != "" {
		r.Caller = netip.MustParseAddr(caller)
	}
	got, err := f.RegisterClient(f.ctx, c, r)
	f.must(err)
	var want []oauth.EndedClient
	for _, c := range ended {
		want = append(want, oauth.EndedClient{ID: c.ID})
	}
	if !slices.Equal(got, want) {
		f.Errorf("a client of %q: got %v ended, want %v", caller, got, want)
	}
	return c
}

// confirm has the fixture's user consent to a client now.
func (f *fixture) confirm(c *oauth.Client) {
	f.Helper()
	c.Awaits = time.Time{}
	f.must(f.UpdateClient(f.ctx, c))
	f.must(f.GrantConsent(f.ctx, f.consentTo(c), time.Time{}))
}

func (f *fixture) consentTo(c *oauth.Client) *account.Consent {
	return &account.Consent{UserID: f.user.ID, ClientID: c.ID, Scopes: 1, Granted: f.now, Used: f.now}
}

// ends checks which clients EndClients ends after a time.
func (f *fixture) ends(after time.Duration, want ...oauth.EndedClient) {
	f.Helper()
	got, err := f.EndClients(f.ctx, f.now.Add(after))
	f.must(err)
	if !slices.Equal(got, want) {
		f.Errorf("after %v: got %v ended, want %v", after, got, want)
	}
	for _, c := range got {
		_, err := f.Client(f.ctx, c.ID)
		f.wantError("ended client", err, oauth.ErrNotFound)
	}
}

func settledClients(_ *testing.T, f *fixture) {
	listed := func(after string) (ids []string) {
		page, err := f.SettledClients(f.ctx, after, 10)
		f.must(err)
		for _, c := range page {
			ids = append(ids, c.ID)
		}
		return ids
	}
	c, other := f.register(f.awaiting()), f.register(f.awaiting())
	if got, want := listed(""), []string{f.client.ID}; !slices.Equal(got, want) {
		f.Errorf("got %v before a consent, want %v", got, want)
	}
	f.confirm(c)
	if got := listed(""); len(got) != 2 || slices.Contains(got, other.ID) {
		f.Errorf("got %v after a consent, want all but %s", got, other.ID)
	}
	if got := listed(max(c.ID, f.client.ID)); len(got) != 0 {
		f.Errorf("got %v after the last one, want none", got)
	}
}

// awaitingClientsAreLimited fills the room from one /48. Others take the places of its oldest ones.
func awaitingClientsAreLimited(_ *testing.T, f *fixture) {
	later := func(after time.Duration) *oauth.Client {
		c := f.awaiting()
		c.Awaits = c.Awaits.Add(after)
		return c
	}
	second := f.registerFrom("2001:db8:1:2::1", later(time.Second))
	first := f.registerFrom("2001:db8:1:1::1", later(0))
	third := f.registerFrom("2001:db8:1:3::1", later(2*time.Second))
	f.sameClient(first)
	other := f.registerFrom("192.0.2.1", later(0), first)
	_, err := f.Client(f.ctx, first.ID)
	f.wantError("crowded out", err, oauth.ErrNotFound)
	f.registerFrom("192.0.2.2", later(time.Second), second)
	f.confirm(other)
	f.sameClient(other)
	f.registerFrom("2001:db8:1:4::1", later(3*time.Second)) // the consent gave its place back
	f.registerFrom("2001:db8:1:5::1", later(4*time.Second), third)
	f.newClient() // operators are not limited
}

// registrantsAreLimited registers from one /48 until its limit. A consent gives a place back.
func registrantsAreLimited(_ *testing.T, f *fixture) {
	until := time.Time{}
	register := func(caller string, ok bool) *oauth.Client {
		f.Helper()
		c := f.awaiting()
		_, err := f.RegisterClient(f.ctx, c,
			oauth.Registrant{Caller: netip.MustParseAddr(caller), PerCaller: 2, Most: 100})
		var crowded *oauth.CrowdedError
		switch {
		case ok:
			f.must(err)
		case !errors.As(err, &crowded) || !crowded.Until.Equal(until):
			f.Errorf("%s: got %v, want a *oauth.CrowdedError until %v", caller, err, until)
		}
		return c
	}
	first := register("2001:db8:0:1::1", true)
	until = first.Awaits
	register("2001:db8:0:1::2", true)
	register("2001:db8:0:1::3", false)
	for i := range 6 {
		register(fmt.Sprintf("2001:db8:0:2%d::1", i), true)
	}
	register("2001:db8:0:3::1", false) // the /48 has four times as many
	register("192.0.2.1", true)
	f.confirm(first)
	register("2001:db8:0:1::3", true)
	register("2001:db8:0:1::4", false)
}

func unconsentedClientsEnd(_ *testing.T, f *fixture) {
	c := f.register(f.awaiting())
	f.ends(oauth.ConsentWithin - time.Millisecond)
	f.sameClient(c)
	f.ends(oauth.ConsentWithin, oauth.EndedClient{ID: c.ID})
	for range most {
		f.register(f.awaiting())
	}
}

func consentedClientsStay(_ *testing.T, f *fixture) {
	c := f.register(f.awaiting())
	f.confirm(c)
	used := 60 * 24 * time.Hour
	consent := f.consentTo(c)
	consent.Used = f.now.Add(used)
	for _, after := range []time.Duration{2 * oauth.ConsentWithin, used} {
		f.ends(after)
		f.sameClient(c)
	}
	f.must(f.UseConsent(f.ctx, consent))
	f.ends(used + oauth.ReviewEvery)
	f.ends(used + oauth.ClientIdle - time.Millisecond)
	f.ends(used + oauth.ClientIdle) // it was looked at less than ReviewEvery ago
	f.ends(used+oauth.ClientIdle+oauth.ReviewEvery, oauth.EndedClient{ID: c.ID, Idle: true})
	_, err := f.Consent(f.ctx, f.user.ID, c.ID)
	f.wantError("consent to the ended client", err, account.ErrNotFound)
}

func refreshedClientsStay(_ *testing.T, f *fixture) {
	c := f.register(f.awaiting())
	f.confirm(c)
	expires := f.now.Add(oauth.ClientIdle + 10*24*time.Hour)
	code := oauth.AuthorizationCode{Hash: newHash(), ClientID: c.ID, UserID: f.user.ID,
		Expires: f.now.Add(time.Minute), Epochs: oauth.Epochs{Client: c.Epoch, User: f.user.Epoch}}
	refresh := newHash()
	redeem := &oauth.Redeem{Code: code.Hash, Now: f.now, Refresh: &refresh, Family: oauth.Family{
		ID: uuid.New(), ClientID: c.ID, UserID: f.user.ID, Generation: 1, Advanced: f.now,
		Expires: expires, Ends: expires, AccessExpires: f.now.Add(time.Hour)}}
	f.do(&oauth.SaveCode{Code: code}, redeem)
	if redeem.Outcome != oauth.OutcomeDone {
		f.Fatalf("got outcome %v, want tokens", redeem.Outcome)
	}
	f.ends(oauth.ClientIdle + oauth.ReviewEvery)
	f.do(&oauth.Revoke{FamilyID: redeem.Family.ID,
		Grant: oauth.Grant{UserID: f.user.ID, ClientID: c.ID}})
	f.ends(oauth.ClientIdle+3*oauth.ReviewEvery, oauth.EndedClient{ID: c.ID, Idle: true})
}

func disabledClientsStay(_ *testing.T, f *fixture) {
	c, unconsented := f.register(f.awaiting()), f.register(f.awaiting())
	c.Disabled, unconsented.Disabled = true, true
	f.confirm(c)
	f.must(f.UpdateClient(f.ctx, unconsented))
	f.ends(2*oauth.ClientIdle, oauth.EndedClient{ID: unconsented.ID})
	f.sameClient(c)
}

func operatorsClientsStay(_ *testing.T, f *fixture) {
	f.client.Name = "New"
	f.must(f.UpdateClient(f.ctx, f.client))
	f.ends(10 * oauth.ClientIdle)
	f.sameClient(f.client)
}

func manyClientsEnd(t *testing.T, f *fixture) {
	const number = 120 // more than one step
	kept := map[string]bool{}
	for i := range number {
		c := f.awaiting()
		_, err := f.RegisterClient(f.ctx, c, oauth.Registrant{Most: number})
		f.must(err)
		if i%3 == 0 {
			f.confirm(c)
			kept[c.ID] = true
		}
		if len(kept) == oauth.MostSelfRegistered-1 {
			f.user = f.newUser()
		}
	}
	ended, err := f.EndClients(f.ctx, f.now.Add(2*oauth.ConsentWithin))
	f.must(err)
	for _, c := range ended {
		if kept[c.ID] || c.Idle {
			t.Errorf("got %v ended, which a person uses", c)
		}
	}
	if len(ended) != number-len(kept) {
		t.Errorf("got %d clients ended, want %d", len(ended), number-len(kept))
	}
}

func endsAreTold(t *testing.T, f *fixture) {
	c := f.register(f.awaiting())
	last, _, err := f.Changes(f.ctx, 0, 1000)
	f.must(err)
	f.ends(oauth.ConsentWithin, oauth.EndedClient{ID: c.ID})
	_, changes, err := f.Changes(f.ctx, last, 1000)
	f.must(err)
	if len(changes) != 1 || changes[0].ClientID != c.ID {
		t.Errorf("got changes %v, want that of the client", changes)
	}
	events, err := f.Events(f.ctx, audit.Filter{Action: audit.ClientEnded, Limit: 10})
	f.must(err)
	if len(events) != 1 || events[0].Target != c.ID || events[0].Details[0] != "unconsented" {
		t.Errorf("got events %v, want the end of the client", events)
	}
}

func selfRegisteredAreLimited(_ *testing.T, f *fixture) {
	var last *oauth.Client
	for range oauth.MostSelfRegistered {
		last = f.register(f.awaiting())
		f.confirm(last)
	}
	consent := f.consentTo(last)
	consent.Granted = f.now.Add(time.Second)
	f.must(f.GrantConsent(f.ctx, consent, f.now)) // more scopes for one of them
	one := f.register(f.awaiting())
	f.wantError("one more", f.GrantConsent(f.ctx, f.consentTo(one), time.Time{}),
		account.ErrTooManyClients)
	f.must(f.GrantConsent(f.ctx, f.consentTo(f.client), time.Time{})) // an operator's
	f.do(&oauth.Revoke{Consent: &oauth.Grant{UserID: f.user.ID, ClientID: last.ID}})
	f.must(f.GrantConsent(f.ctx, f.consentTo(one), time.Time{}))
}

func registrationsAtOnce(t *testing.T, f *fixture) {
	const number = 20
	type result struct {
		ended []oauth.EndedClient
		err   error
	}
	results := make(chan result, number)
	for range number {
		go func() {
			ended, err := f.RegisterClient(f.ctx, f.awaiting(), oauth.Registrant{Most: most})
			results <- result{ended, err}
		}()
	}
	ended := 0
	for range number {
		r := <-results
		f.must(r.err)
		ended += len(r.ended)
	}
	if ended != number-most {
		t.Errorf("got %d of %d clients ended, want all but %d", ended, number, most)
	}
}
