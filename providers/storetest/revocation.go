package storetest

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var revocationTests = map[string]func(*testing.T, *world){
	"RevokeAccessToken":         revokeAccessToken,
	"RevokeFamily":              revokeFamily,
	"RevokeUser":                revokeUser,
	"RevokeUserButOneFamily":    revokeUserButOneFamily,
	"RevokeClient":              revokeClient,
	"RevokeConsent":             revokeConsent,
	"RevokeNothingIsAnError":    revokeNothing,
	"RevokeWhatIsGoneIsNoError": revokeWhatIsGone,
}

// crowd is two users at two clients: a family of each, a code that nobody came for, and a token of no family.
type crowd struct {
	users   [2]*account.User
	clients [2]*oauth.Client
	family  [2][2]*oauth.Redeem
	code    [2][2]oauth.AuthorizationCode
	direct  [2][2]oauth.AccessToken // of user and client, without a family
	machine [2]oauth.AccessToken    // of a client
}

func (w *world) newCrowd() *crowd {
	c := &crowd{
		users: [2]*account.User{w.user, w.newUser()}, clients: [2]*oauth.Client{w.client, w.newClient()},
	}
	for i, u := range c.users {
		for j, client := range c.clients {
			w.user, w.client = u, client
			c.family[i][j] = w.family()
			c.code[i][j], c.direct[i][j], c.machine[j] = w.code(), w.token(), w.token()
			c.direct[i][j].UserID = u.ID
			w.do(&oauth.SaveCode{Code: c.code[i][j]}, &oauth.Issue{Token: c.direct[i][j]}, &oauth.Issue{Token: c.machine[j]})
			w.must(w.SaveConsent(w.ctx, &account.Consent{UserID: u.ID, ClientID: client.ID, Scopes: 1, Granted: w.now}))
		}
	}
	w.user, w.client = c.users[0], c.clients[0]
	return c
}

// check checks what is left of each user at each client.
func (c *crowd) check(w *world, ended func(user, client int) bool) {
	w.Helper()
	for i := range c.users {
		for j := range c.clients {
			w.user, w.client = c.users[i], c.clients[j]
			want := !ended(i, j)
			w.alive("access token of a family", c.family[i][j].Access.Hash, want)
			w.alive("access token of no family", c.direct[i][j].Hash, want)
			rotate := w.rotate(c.family[i][j].Family, 1, w.now, 0)
			redeem := w.redeem(c.code[i][j].Hash, w.now)
			w.do(rotate, redeem)
			outcome := oauth.OutcomeDone
			if !want {
				outcome = oauth.OutcomeGone
			}
			w.outcome("rotate", rotate.Outcome, outcome)
			w.outcome("redeem", redeem.Outcome, outcome)
		}
	}
}

func (c *crowd) consents(w *world, ended func(user, client int) bool) {
	w.Helper()
	for i, u := range c.users {
		for j, client := range c.clients {
			_, err := w.Consent(w.ctx, u.ID, client.ID)
			if want := !ended(i, j); (err == nil) != want {
				w.Errorf("consent of user %d to client %d: got %v, want kept %t", i, j, err, want)
			}
		}
	}
}

func nothing(int, int) bool { return false }

func revokeAccessToken(t *testing.T, w *world) {
	r := w.family()
	op := &oauth.Revoke{Access: &r.Access.Hash}
	w.do(op)
	w.revoked("revoke", op.Revoked, r.Access.Hash)
	w.alive("access token", r.Access.Hash, false)
	next := w.rotate(r.Family, 1, w.now, 0)
	w.do(next)
	w.outcome("refresh token of the family", next.Outcome, oauth.OutcomeDone)
}

func revokeFamily(t *testing.T, w *world) {
	c := w.newCrowd()
	r := c.family[0][0]
	op := &oauth.Revoke{FamilyID: r.Family.ID}
	w.do(op)
	w.revoked("revoke", op.Revoked, r.Access.Hash)
	refresh, err := w.RefreshToken(w.ctx, *r.Refresh)
	w.must(err)
	if !refresh.Family.Revoked {
		t.Error("family: got live, want revoked")
	}
	w.alive("another family's token", c.family[0][1].Access.Hash, true)
	w.alive("the user's other token", c.direct[0][0].Hash, true)
	c.consents(w, nothing)
}

func revokeUser(t *testing.T, w *world) {
	c := w.newCrowd()
	op := &oauth.Revoke{UserID: c.users[0].ID}
	w.do(op)
	w.revoked("revoke", op.Revoked,
		c.family[0][0].Access.Hash, c.family[0][1].Access.Hash, c.direct[0][0].Hash, c.direct[0][1].Hash)
	c.check(w, func(user, _ int) bool { return user == 0 })
	w.alive("token of a client", c.machine[0].Hash, true)
	c.consents(w, nothing)
}

func revokeUserButOneFamily(t *testing.T, w *world) {
	c := w.newCrowd()
	kept := c.family[0][1]
	op := &oauth.Revoke{UserID: c.users[0].ID, KeepFamily: kept.Family.ID}
	w.do(op)
	w.revoked("revoke", op.Revoked, c.family[0][0].Access.Hash, c.direct[0][0].Hash, c.direct[0][1].Hash)
	w.alive("kept family's token", kept.Access.Hash, true)
	w.client = c.clients[1]
	next := w.rotate(kept.Family, 1, w.now, 0)
	w.do(next)
	w.outcome("kept family", next.Outcome, oauth.OutcomeDone)
}

func revokeClient(t *testing.T, w *world) {
	c := w.newCrowd()
	op := &oauth.Revoke{ClientID: c.clients[1].ID}
	w.do(op)
	for _, hash := range []oauth.Hash{c.family[0][1].Access.Hash, c.direct[1][1].Hash, c.machine[1].Hash} {
		w.alive("token of the client", hash, false)
	}
	c.check(w, func(_, client int) bool { return client == 1 })
	w.alive("token of the other client", c.machine[0].Hash, true)
	c.consents(w, nothing)
}

func revokeConsent(t *testing.T, w *world) {
	c := w.newCrowd()
	op := &oauth.Revoke{Consent: &oauth.Grant{UserID: c.users[1].ID, ClientID: c.clients[0].ID}}
	w.do(op)
	w.revoked("revoke", op.Revoked, c.family[1][0].Access.Hash, c.direct[1][0].Hash)
	ended := func(user, client int) bool { return user == 1 && client == 0 }
	c.check(w, ended)
	c.consents(w, ended)
	w.alive("token of the client", c.machine[0].Hash, true)
}

func revokeNothing(t *testing.T, w *world) {
	r := w.family()
	for what, op := range map[string]*oauth.Revoke{
		"nothing": {}, "two things": {FamilyID: r.Family.ID, UserID: w.user.ID}, "only what to keep": {KeepFamily: r.Family.ID},
	} {
		if err := w.submit(op)()[0]; err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
	w.alive("access token", r.Access.Hash, true)
}

func revokeWhatIsGone(t *testing.T, w *world) {
	hash := newHash()
	ops := []*oauth.Revoke{
		{Access: &hash}, {FamilyID: "none"}, {UserID: 4711}, {ClientID: "none"}, {Consent: &oauth.Grant{UserID: 4711, ClientID: "none"}},
	}
	for _, op := range ops {
		w.do(op)
		w.revoked("revoke", op.Revoked)
	}
}
