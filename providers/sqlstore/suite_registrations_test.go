package sqlstore_test

import (
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
	f.must(f.RegisterClient(f.ctx, c, most))
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

func awaitingClientsAreLimited(_ *testing.T, f *fixture) {
	first := f.register(f.awaiting())
	f.sameClient(first)
	f.register(f.awaiting())
	f.register(f.awaiting())
	f.wantError("one more", f.RegisterClient(f.ctx, f.awaiting(), most), oauth.ErrFull)
	f.confirm(first)
	f.sameClient(first)
	f.register(f.awaiting())
	f.wantError("one more", f.RegisterClient(f.ctx, f.awaiting(), most), oauth.ErrFull)
	f.newClient() // operators are not limited
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
		f.must(f.RegisterClient(f.ctx, c, number))
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
	errs := make(chan error, number)
	for range number {
		go func() { errs <- f.RegisterClient(f.ctx, f.awaiting(), most) }()
	}
	done := 0
	for range number {
		if err := <-errs; err == nil {
			done++
		} else {
			f.wantError("one too many", err, oauth.ErrFull)
		}
	}
	if done != most {
		t.Errorf("got %d clients, want %d", done, most)
	}
}
