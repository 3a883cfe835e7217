package sqlstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var revocationTests = map[string]func(*testing.T, *fixture){
	"RevokeAccessToken":      revokeAccessToken,
	"RevokeFamily":           revokeFamily,
	"RevokeUser":             revokeUser,
	"RevokeClient":           revokeClient,
	"RevokeConsent":          revokeConsent,
	"RevokeNeedsOneSelector": revokeNeedsOneSelector,
	"RevokeUnknownIsNoError": revokeUnknown,
	"EpochsGrow":             epochsGrow,
	"NewPassword":            replacePassword,
	"NewPasswordConflict":    replacePasswordConflict,
	"EndsOfUserAreLimited":   endsOfUserAreLimited,
	"RevokeTokenByEpoch":     revokeTokenByEpoch,
}

// endsOfUserAreLimited ends as many access tokens of one user as are kept, at two clients. Then the
// epoch of this user grows, and nothing of others ends.
func endsOfUserAreLimited(t *testing.T, f *fixture) {
	r, other, redeemed := f.family(), f.family(), f.family()
	crowd := f.newCrowd()
	var ops []oauth.Operation
	for i := range oauth.MaxUserEnds {
		token := first(r)
		token.end.UserID = f.user.ID
		if i%2 == 1 {
			token.end.ClientID = crowd.clients[1].ID
		}
		ops = append(ops, &oauth.Revoke{Token: &token.end})
	}
	for batch := range slices.Chunk(ops, 100) {
		f.do(batch...)
	}
	for what, op := range map[string]*oauth.Revoke{
		"another user's token": {Token: &oauth.TokenEnd{ID: newTokenID(), UserID: crowd.users[1].ID,
			ClientID: f.client.ID, Expires: f.now.Add(time.Hour)}},
		"the client's token": {Token: &oauth.TokenEnd{ID: newTokenID(), ClientID: f.client.ID,
			Expires: f.now.Add(time.Hour)}},
	} {
		f.do(op)
		f.ended(what, op.Ended, tokenEnd(access{end: *op.Token}))
	}
	before := f.lastChange()
	_, kept, err := f.Ends(f.ctx, f.now)
	f.must(err)
	byEpoch := oauth.End{UserID: f.user.ID}
	family := familyRevocation(r.Family)
	replay := f.redeem(redeemed.Code, f.now)
	f.do(family, replay)
	f.ended("family", family.Ended, byEpoch)
	f.outcome("replay", replay.Outcome, oauth.OutcomeReused)
	f.ended("replay", replay.Ended, byEpoch)
	f.changed("beyond the limit", before, oauth.Change{UserID: f.user.ID},
		oauth.Change{UserID: f.user.ID})
	if _, after, err := f.Ends(f.ctx, f.now); err != nil || len(after) != len(kept) {
		t.Errorf("got %d ends, error %v, want %d as before", len(after), err, len(kept))
	}
	for what, ended := range map[string]*oauth.Redeem{"revoked": r, "replayed": redeemed} {
		f.alive(what, first(ended), false)
		got, err := f.RefreshToken(f.ctx, *ended.Refresh)
		f.must(err)
		if !got.Family.Revoked || !got.Family.AccessExpires.IsZero() {
			t.Errorf("%s: got %+v, want it revoked without access tokens", what, got.Family)
		}
	}
	f.alive("other access token of the user", first(other), false)
	next := f.rotate(other.Family, 1, f.now, 0)
	f.do(next)
	f.outcome("other refresh token of the user", next.Outcome, oauth.OutcomeDone)
	f.alive("its access token", issued(other.Family, next.Epochs), true)
	f.alive("another user's access token", first(crowd.family[1][0]), true)
}

// revokeTokenByEpoch ends a token of a user by the user's epoch.
func revokeTokenByEpoch(t *testing.T, f *fixture) {
	r := f.family()
	token := first(r)
	token.end.UserID = f.user.ID
	op := &oauth.Revoke{Token: &token.end, ByEpoch: true}
	f.do(op)
	f.ended("token", op.Ended, oauth.End{UserID: f.user.ID})
	f.alive("token", token, false)
	next := f.rotate(r.Family, 1, f.now, 0)
	f.do(next)
	f.alive("after the use of the refresh token", issued(r.Family, next.Epochs), true)
}

// crowd holds two users at two clients. Each pair has a family and an unused code.
type crowd struct {
	users   [2]*account.User
	clients [2]*oauth.Client
	family  [2][2]*oauth.Redeem
	code    [2][2]oauth.AuthorizationCode
	machine [2]access // token of a client, without a user
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
			c.code[i][j], c.machine[j] = f.code(), f.machine()
			f.do(&oauth.SaveCode{Code: c.code[i][j]})
			f.must(f.GrantConsent(f.ctx, &account.Consent{UserID: u.ID, ClientID: client.ID,
				Scopes: 1, Granted: f.now}, time.Time{}))
		}
	}
	f.user, f.client = c.users[0], c.clients[0]
	return c
}

// check checks for each user and client whether the family, its access token and the code are
// revoked.
func (c *crowd) check(f *fixture, revoked func(user, client int) bool) {
	f.Helper()
	for i := range c.users {
		for j := range c.clients {
			f.user, f.client = c.users[i], c.clients[j]
			want := !revoked(i, j)
			f.alive("access token", first(c.family[i][j]), want)
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

func tokenEnd(token access) oauth.End {
	return oauth.End{Token: token.end.ID, ClientID: token.end.ClientID, Expires: token.end.Expires}
}

func revokeAccessToken(t *testing.T, f *fixture) {
	r := f.family()
	token, sibling := first(r), first(r)
	op, again := &oauth.Revoke{Token: &token.end}, &oauth.Revoke{Token: &token.end}
	f.do(op)
	f.do(again)
	f.ended("revoke", op.Ended, tokenEnd(token))
	f.ended("revoke again", again.Ended)
	f.alive("access token", token, false)
	f.alive("another access token of the family", sibling, true)
	next := f.rotate(r.Family, 1, f.now, 0)
	f.do(next)
	f.outcome("refresh token of the family", next.Outcome, oauth.OutcomeDone)
	expired := f.machine()
	expired.end.Expires = f.now
	late := &oauth.Revoke{Token: &expired.end}
	f.do(late)
	f.ended("revoke an expired token", late.Ended)
	_, ends, err := f.Ends(f.ctx, f.now)
	f.must(err)
	f.ended("stored", ends, tokenEnd(token))
}

func revokeFamily(t *testing.T, f *fixture) {
	c := f.newCrowd()
	r := c.family[0][0]
	op, again := familyRevocation(r.Family), familyRevocation(r.Family)
	f.do(op)
	f.do(again)
	f.ended("revoke", op.Ended, f.familyEnd(r.Family))
	f.ended("revoke again", again.Ended)
	refresh, err := f.RefreshToken(f.ctx, *r.Refresh)
	f.must(err)
	if !refresh.Family.Revoked {
		t.Error("family: got live, want revoked")
	}
	f.alive("its access token", first(r), false)
	f.alive("another family's token", first(c.family[0][1]), true)
	c.consents(f, nothing)
}

func revokeUser(t *testing.T, f *fixture) {
	c := f.newCrowd()
	op := &oauth.Revoke{UserID: c.users[0].ID}
	f.do(op)
	f.ended("revoke", op.Ended)
	c.check(f, func(user, _ int) bool { return user == 0 })
	f.alive("token of a client", c.machine[0], true)
	c.consents(f, nothing)
	if _, ends, err := f.Ends(f.ctx, f.now); err != nil || len(ends) != 0 {
		t.Errorf("got %d ends, error %v, want none: the epoch ends all tokens", len(ends), err)
	}
}

func revokeClient(t *testing.T, f *fixture) {
	c := f.newCrowd()
	op := &oauth.Revoke{ClientID: c.clients[1].ID}
	f.do(op)
	f.ended("revoke", op.Ended)
	f.alive("token of the client", c.machine[1], false)
	c.check(f, func(_, client int) bool { return client == 1 })
	f.alive("token of the other client", c.machine[0], true)
	c.consents(f, nothing)
}

func revokeConsent(t *testing.T, f *fixture) {
	c := f.newCrowd()
	f.user, f.client = c.users[1], c.clients[0]
	second, before := f.family(), f.family()
	f.do(familyRevocation(before.Family))
	op := &oauth.Revoke{Consent: &oauth.Grant{UserID: c.users[1].ID, ClientID: c.clients[0].ID}}
	f.do(op)
	f.ended("revoke", op.Ended, f.familyEnd(c.family[1][0].Family), f.familyEnd(second.Family))
	revoked := func(user, client int) bool { return user == 1 && client == 0 }
	c.check(f, revoked)
	c.consents(f, revoked)
	f.alive("token of the client", c.machine[0], true)
}

func revokeNeedsOneSelector(t *testing.T, f *fixture) {
	r := f.family()
	for what, op := range map[string]*oauth.Revoke{
		"none": {}, "two": {FamilyID: r.Family.ID, UserID: f.user.ID},
	} {
		if err := f.submit(op)()[0]; err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
	f.alive("access token", first(r), true)
}

func revokeUnknown(t *testing.T, f *fixture) {
	for _, op := range []*oauth.Revoke{
		{FamilyID: uuid.New()}, {UserID: 4711}, {ClientID: "none"},
		{Consent: &oauth.Grant{UserID: 4711, ClientID: "none"}},
	} {
		f.do(op)
		f.ended("revoke", op.Ended)
	}
	if last, _, err := f.Changes(f.ctx, 0, 10); err != nil || last != 0 {
		t.Errorf("got %d changes, error %v, want none", last, err)
	}
}

// epochsGrow checks that epochs begin with the creation, in microseconds, and that only an end of
// all tokens raises them.
func epochsGrow(t *testing.T, f *fixture) {
	begin := f.epochs()
	low, high := f.now.UnixMicro(), time.Now().UnixMicro()
	for what, got := range map[string]int64{"user": begin.User, "client": begin.Client,
		"user as created": f.user.Epoch, "client as created": f.client.Epoch} {
		if got < low || got > high {
			t.Errorf("%s: got epoch %d, want one from %d to %d", what, got, low, high)
		}
	}
	f.user.Disabled, f.user.Epoch = true, 0
	f.client.Disabled, f.client.Epoch = true, 0
	f.must(f.UpdateUser(f.ctx, f.user))
	f.must(f.UpdateClient(f.ctx, f.client))
	if got := f.epochs(); got != begin {
		t.Errorf("after updates: got %+v, want %+v", got, begin)
	}
	if f.user.Epoch != begin.User || f.client.Epoch != begin.Client {
		t.Errorf("epochs of the updated: got %d and %d, want %+v", f.user.Epoch, f.client.Epoch,
			begin)
	}
	f.do(&oauth.Revoke{UserID: f.user.ID})
	next := f.epochs()
	if next.User <= begin.User || next.Client != begin.Client {
		t.Errorf("after the end of a user's tokens: got %+v after %+v", next, begin)
	}
	f.do(&oauth.Revoke{ClientID: f.client.ID})
	last := f.epochs()
	if last.User != next.User || last.Client <= next.Client {
		t.Errorf("after the end of a client's tokens: got %+v after %+v", last, next)
	}
}

func replacePassword(t *testing.T, f *fixture) {
	c := f.newCrowd()
	var sessions [3]*account.Session
	for i := range sessions {
		sessions[i] = &account.Session{Hash: newHash(), UserID: c.users[min(i, 1)].ID,
			Expires: f.now.Add(time.Hour)}
		f.endedTokens(f.CreateSession(f.ctx, sessions[i]))
	}
	kept := *sessions[0]
	kept.Hash = newHash()
	f.endedTokens(f.CreateSession(f.ctx, &kept))
	changed := *c.users[0]
	changed.PasswordHash, changed.Bio = "$argon2id$new", "new"
	before := f.lastChange()
	f.must(f.ChangeCredentials(f.ctx, &changed, account.CredentialChange{EndTokens: true, Keep: kept.Hash}))
	if changed.Epoch <= c.users[0].Epoch || changed.Version != c.users[0].Version+1 {
		t.Errorf("got epoch %d and version %d after %d and %d", changed.Epoch, changed.Version,
			c.users[0].Epoch, c.users[0].Version)
	}
	f.sameUser(&changed)
	f.changed("replace password", before, oauth.Change{UserID: changed.ID})
	for i, s := range append(sessions[:], &kept) {
		_, err := f.Session(f.ctx, s.Hash)
		if want := i != 0; (err == nil) != want {
			t.Errorf("session %d: got error %v, want it kept %t", i, err, want)
		}
	}
	c.users[0] = &changed
	c.check(f, func(user, _ int) bool { return user == 0 })
	c.consents(f, nothing)
}

func replacePasswordConflict(t *testing.T, f *fixture) {
	r := f.family()
	session := &account.Session{Hash: newHash(), UserID: f.user.ID, Expires: f.now.Add(time.Hour)}
	f.endedTokens(f.CreateSession(f.ctx, session))
	other := f.fullUser()
	f.must(f.CreateUser(f.ctx, other))
	stale, taken, unknown := *f.user, *f.user, *f.user
	stale.Version += 3
	taken.Email = other.Email
	unknown.ID = 4711
	before := f.lastChange()
	for _, test := range []struct {
		user *account.User
		want error
	}{{&stale, account.ErrConflict}, {&taken, account.ErrTaken}, {&unknown, account.ErrNotFound}} {
		version := test.user.Version
		f.wantError("replace password", f.ChangeCredentials(f.ctx, test.user, account.CredentialChange{EndTokens: true}), test.want)
		if test.user.Version != version || test.user.Epoch != f.user.Epoch {
			t.Errorf("%v: got a new version or epoch", test.want)
		}
	}
	f.sameUser(f.user)
	f.alive("access token", first(r), true)
	f.changed("refused", before)
	if _, err := f.Session(f.ctx, session.Hash); err != nil {
		t.Errorf("session: got %v, want none", err)
	}
	next := f.rotate(r.Family, 1, f.now, 0)
	f.do(next)
	f.outcome("rotate", next.Outcome, oauth.OutcomeDone)
}
