package token_test

import (
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

func TestEpochs(t *testing.T) {
	f := newFixture(t, nil)
	for _, row := range []struct {
		name   string
		change func(*oauth.AccessToken)
		want   token.Verdict
	}{
		{"of now", func(*oauth.AccessToken) {}, token.Admitted},
		{"below the user's", func(t *oauth.AccessToken) { t.Epochs.User-- }, token.TokenInvalid},
		{"below the client's", func(t *oauth.AccessToken) { t.Epochs.Client-- }, token.TokenInvalid},
		{"above the user's", func(t *oauth.AccessToken) { t.Epochs.User++ }, token.TokenInvalid},
		{"above the client's", func(t *oauth.AccessToken) { t.Epochs.Client++ }, token.TokenInvalid},
		{"of no user", func(t *oauth.AccessToken) { t.UserID, t.Epochs.User = 0, 0 }, token.InsufficientScope},
	} {
		for _, use := range []string{"first", "second"} {
			f.wantVerdict(t, row.name+", "+use+" use", f.seal(row.change), row.want)
		}
	}
}

// TestNewEpochEndsTokens gives the user or the client a new epoch. Only a new token is accepted,
// also after the user or client was disabled and enabled.
func TestNewEpochEndsTokens(t *testing.T) {
	f := newFixture(t, nil)
	for name, op := range map[string]*oauth.Revoke{
		"user": {UserID: 7}, "client": {ClientID: f.client.ID},
	} {
		used, unused := f.newTokens(t), f.newTokens(t)
		f.wantVerdict(t, name+": before", used.AccessToken, token.Admitted)
		if err := f.RevokeAll(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		f.wantVerdict(t, name+": in use", used.AccessToken, token.TokenInvalid)
		f.wantVerdict(t, name+": not in use", unused.AccessToken, token.TokenInvalid)
		later := f.newTokens(t).AccessToken
		f.wantVerdict(t, name+": new", later, token.Admitted)
		f.disableUser(t, true)
		f.updateClient(t, func(c *oauth.Client) { c.Disabled = true })
		f.wantVerdict(t, name+": disabled", later, token.TokenInvalid)
		f.disableUser(t, false)
		f.updateClient(t, func(c *oauth.Client) { c.Disabled = false })
		f.wantVerdict(t, name+": enabled again", later, token.Admitted)
		f.wantVerdict(t, name+": ended, enabled again", used.AccessToken, token.TokenInvalid)
	}
}

// TestTokenAheadOfRecordMakesOneRead has another process change the user's epoch and issue a token,
// before this one knows of the change.
func TestTokenAheadOfRecordMakesOneRead(t *testing.T) {
	f := newFixture(t, func(c *token.Config) { c.OtherWriters, c.Stale = true, time.Hour })
	f.store.followError = oauth.ErrBusy
	f.wantVerdict(t, "before", f.seal(nil), token.Admitted)
	reads := func() (n int) {
		f.store.locked(func() { n = f.store.userReads })
		return n
	}
	newEpoch := func() { f.store.mustPerform(&oauth.Revoke{UserID: 7}) }
	for _, row := range []struct {
		name   string
		change func()
		ahead  int64
		want   token.Verdict
	}{
		{"user", newEpoch, 0, token.Admitted},
		{"client", func() { f.store.mustPerform(&oauth.Revoke{ClientID: f.client.ID}) }, 0, token.Admitted},
		{"disabled", func() {
			newEpoch()
			f.disableInStore(true)
		}, 0, token.TokenInvalid},
		{"neither knows it", func() {}, 1, token.TokenInvalid},
	} {
		row.change()
		bearer := f.seal(func(t *oauth.AccessToken) { t.Epochs.User += row.ahead })
		before := reads()
		f.wantVerdict(t, row.name, bearer, row.want)
		if got := reads() - before; got != 1 {
			t.Errorf("%s: got %d reads of the user, want 1", row.name, got)
		}
		if row.ahead > 0 {
			continue
		}
		f.wantVerdict(t, row.name+", again", bearer, row.want)
		if got := reads() - before; got != 1 {
			t.Errorf("%s, again: got %d reads of the user, want 1", row.name, got)
		}
	}
}

// TestTokenInUseAheadOfRecord loses the epoch of a token in use, as a restored database does.
func TestTokenInUseAheadOfRecord(t *testing.T) {
	f := newFixture(t, nil)
	bearer := f.seal(nil)
	f.wantVerdict(t, "before", bearer, token.Admitted)
	f.store.exec("UPDATE users SET epoch = epoch - 1")
	if err := f.UserChanged(7, nil); err != nil {
		t.Error(err)
	}
	f.wantVerdict(t, "after", bearer, token.TokenInvalid)
	f.wantVerdict(t, "again", bearer, token.TokenInvalid)
}
