package storetest

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var revocationTests = map[string]func(*testing.T, *fixture){
	"RevokeAccessToken":         revokeAccessToken,
	"RevokeFamily":              revokeFamily,
	"RevokeUser":                revokeUser,
	"RevokeUserExceptOneFamily": revokeUserExceptOneFamily,
	"RevokeClient":              revokeClient,
	"RevokeConsent":             revokeConsent,
	"RevokeNeedsOneSelector":    revokeNeedsOneSelector,
	"RevokeUnknownIsNoError":    revokeUnknown,
}

// crowd holds two users at two clients. Each pair has a family, an unused code, and a token without
// a family.
type crowd struct {
	users   [2]*account.User
	clients [2]*oauth.Client
	family  [2][2]*oauth.Redeem
	code    [2][2]oauth.AuthorizationCode
	direct  [2][2]oauth.AccessToken // token of user and client, without a family
	machine [2]oauth.AccessToken    // token of a client, without a user
}

func (f *fixture) newCrowd() *crowd {
	c := &crowd{
		users: [2]*account.User{f.user, f.newUser()}, clients: [2]*oauth.Client{f.client,
			f.newClient()},
	}
	for i, u := range c.users {
		for j, client := range c.clients {
			f.user, f.client = u, client
			c.family[i][j] = f.family()
			c.code[i][j], c.direct[i][j], c.machine[j] = f.code(), f.token(), f.token()
			c.direct[i][j].UserID = u.ID
			f.do(&oauth.SaveCode{Code: c.code[i][j]}, &oauth.Issue{Token: c.direct[i][j]},
				&oauth.Issue{Token: c.machine[j]})
			f.must(f.SaveConsent(f.ctx, &account.Consent{UserID: u.ID, ClientID: client.ID,
				Scopes: 1, Granted: f.now}))
		}
	}
	f.user, f.client = c.users[0], c.clients[0]
	return c
}

// check checks for each user and client whether the family, the code and the token are revoked.
func (c *crowd) check(f *fixture, revoked func(user, client int) bool) {
	f.Helper()
	for i := range c.users {
		for j := range c.clients {
			f.user, f.client = c.users[i], c.clients[j]
			want := !revoked(i, j)
			f.alive("access token with a family", c.family[i][j].Access.Hash, want)
			f.alive("access token without a family", c.direct[i][j].Hash, want)
			rotate := f.rotate(c.family[i][j].Family, 1, f.now, 0)
			redeem := f.redeem(c.code[i][j].Hash, f.now)
			f.do(rotate, redeem)
			outcome := oauth.OutcomeDone
			if !want {
				outcome = oauth.OutcomeGone
			}
			f.outcome("rotate", rotate.Outcome, outcome)
			f.outcome("redeem", redeem.Outcome, outcome)
		}
	}
}

// consents checks for each user and client whether the consent is revoked.
func (c *crowd) consents(f *fixture, revoked func(user, client int) bool) {
	f.Helper()
	for i, u := range c.users {
		for j, client := range c.clients {
			_, err := f.Consent(f.ctx, u.ID, client.ID)
			if want := !revoked(i, j); (err == nil) != want {
				f.Errorf("consent of user %d to client %d: got %v, want it kept %t",
					i, j, err, want)
			}
		}
	}
}

func nothing(int, int) bool { return false }

func revokeAccessToken(t *testing.T, f *fixture) {
	r := f.family()
	op := &oauth.Revoke{Access: &r.Access.Hash}
	f.do(op)
	f.revoked("revoke", op.Revoked, r.Access.Hash)
	f.alive("access token", r.Access.Hash, false)
	next := f.rotate(r.Family, 1, f.now, 0)
	f.do(next)
	f.outcome("refresh token of the family", next.Outcome, oauth.OutcomeDone)
}

func revokeFamily(t *testing.T, f *fixture) {
	c := f.newCrowd()
	r := c.family[0][0]
	op := &oauth.Revoke{FamilyID: r.Family.ID}
	f.do(op)
	f.revoked("revoke", op.Revoked, r.Access.Hash)
	refresh, err := f.RefreshToken(f.ctx, *r.Refresh)
	f.must(err)
	if !refresh.Family.Revoked {
		t.Error("family: got live, want revoked")
	}
	f.alive("another family's token", c.family[0][1].Access.Hash, true)
	f.alive("the user's other token", c.direct[0][0].Hash, true)
	c.consents(f, nothing)
}

func revokeUser(t *testing.T, f *fixture) {
	c := f.newCrowd()
	op := &oauth.Revoke{UserID: c.users[0].ID}
	f.do(op)
	f.revoked("revoke", op.Revoked,
		c.family[0][0].Access.Hash, c.family[0][1].Access.Hash, c.direct[0][0].Hash,
		c.direct[0][1].Hash)
	c.check(f, func(user, _ int) bool { return user == 0 })
	f.alive("token of a client", c.machine[0].Hash, true)
	c.consents(f, nothing)
}

func revokeUserExceptOneFamily(t *testing.T, f *fixture) {
	c := f.newCrowd()
	kept := c.family[0][1]
	op := &oauth.Revoke{UserID: c.users[0].ID, KeepFamily: kept.Family.ID}
	f.do(op)
	f.revoked("revoke", op.Revoked, c.family[0][0].Access.Hash, c.direct[0][0].Hash,
		c.direct[0][1].Hash)
	f.alive("kept family's token", kept.Access.Hash, true)
	f.client = c.clients[1]
	next := f.rotate(kept.Family, 1, f.now, 0)
	f.do(next)
	f.outcome("kept family", next.Outcome, oauth.OutcomeDone)
}

func revokeClient(t *testing.T, f *fixture) {
	c := f.newCrowd()
	op := &oauth.Revoke{ClientID: c.clients[1].ID}
	f.do(op)
	for _, hash := range []oauth.Hash{c.family[0][1].Access.Hash, c.direct[1][1].Hash,
		c.machine[1].Hash} {
		f.alive("token of the client", hash, false)
	}
	c.check(f, func(_, client int) bool { return client == 1 })
	f.alive("token of the other client", c.machine[0].Hash, true)
	c.consents(f, nothing)
}

func revokeConsent(t *testing.T, f *fixture) {
	c := f.newCrowd()
	op := &oauth.Revoke{Consent: &oauth.Grant{UserID: c.users[1].ID, ClientID: c.clients[0].ID}}
	f.do(op)
	f.revoked("revoke", op.Revoked, c.family[1][0].Access.Hash, c.direct[1][0].Hash)
	revoked := func(user, client int) bool { return user == 1 && client == 0 }
	c.check(f, revoked)
	c.consents(f, revoked)
	f.alive("token of the client", c.machine[0].Hash, true)
}

func revokeNeedsOneSelector(t *testing.T, f *fixture) {
	r := f.family()
	for what, op := range map[string]*oauth.Revoke{
		"none": {}, "two": {FamilyID: r.Family.ID,
			UserID: f.user.ID}, "only KeepFamily": {KeepFamily: r.Family.ID},
	} {
		if err := f.submit(op)()[0]; err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
	f.alive("access token", r.Access.Hash, true)
}

func revokeUnknown(t *testing.T, f *fixture) {
	hash := newHash()
	ops := []*oauth.Revoke{
		{Access: &hash}, {FamilyID: "none"}, {UserID: 4711}, {ClientID: "none"}, {Consent: &oauth.Grant{UserID: 4711, ClientID: "none"}},
	}
	for _, op := range ops {
		f.do(op)
		f.revoked("revoke", op.Revoked)
	}
}
