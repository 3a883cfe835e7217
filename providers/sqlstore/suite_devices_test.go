package sqlstore_test

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

var deviceTests = map[string]func(*testing.T, *fixture){
	"DeviceCodeRoundTrip":                deviceRoundTrip,
	"DeviceCodeIsDecidedOnce":            deviceDecidedOnce,
	"DeniedDeviceCodeHasNoGrant":         deviceDenied,
	"AllowedDeviceCodeIsRedeemedOnce":    deviceRedeemed,
	"ExpiredDeviceCodeIsNotDecided":      deviceExpired,
	"DeviceConsentIsKeptApart":           deviceConsent,
	"DeviceCodeEndsWithClientOrUser":     deviceEnds,
	"SweepDeletesDeviceCodes":            deviceSweep,
	"DeviceDecisionsAtOnceHaveOneWinner": deviceRace,
	"LargestNetworkMakesRoomForDevices":  deviceRoom,
}

// device returns a device code of the fixture's client.
func (f *fixture) device() *oauth.DeviceCode {
	return &oauth.DeviceCode{Hash: newHash(), UserCode: newHash(), ClientID: f.client.ID,
		Scopes: oauth.ViewUser | oauth.OpenID, DefaultScopes: true, Place: "Kyōto, Japan",
		Created: f.now, Expires: f.now.Add(oauth.DeviceCodeLifetime)}
}

// grant returns what the fixture's user grants to a device.
func (f *fixture) grant(c *oauth.DeviceCode) *oauth.AuthorizationCode {
	f.Helper()
	return &oauth.AuthorizationCode{Hash: c.Hash, ClientID: c.ClientID, UserID: f.user.ID,
		Scopes: c.Scopes, DefaultScopes: c.DefaultScopes, Expires: c.Expires, Epochs: f.epochs(),
		Details: oauth.GrantDetails{AuthTime: 1_800_000_000}}
}

func deviceRoundTrip(t *testing.T, f *fixture) {
	c := f.device()
	f.must(f.SaveDeviceCode(f.ctx, c))
	for _, read := range []func() (*oauth.DeviceCode, error){
		func() (*oauth.DeviceCode, error) { return f.DeviceCode(f.ctx, c.Hash) },
		func() (*oauth.DeviceCode, error) { return f.DeviceCodeFor(f.ctx, c.UserCode) },
	} {
		got, err := read()
		f.must(err)
		if !reflect.DeepEqual(got, c) {
			t.Errorf("got %+v, want %+v", got, c)
		}
	}
	_, err := f.DeviceCode(f.ctx, c.UserCode)
	f.wantError("unknown device code", err, oauth.ErrNotFound)
	_, err = f.DeviceCodeFor(f.ctx, c.Hash)
	f.wantError("unknown user code", err, oauth.ErrNotFound)
	again := f.device()
	again.UserCode = c.UserCode
	f.wantError("user code in use", f.SaveDeviceCode(f.ctx, again), oauth.ErrConflict)
	again = f.device()
	again.ClientID = "nobody"
	f.wantError("unknown client", f.SaveDeviceCode(f.ctx, again), oauth.ErrNotFound)
}

func deviceDecidedOnce(t *testing.T, f *fixture) {
	for _, grants := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		c := f.device()
		f.must(f.SaveDeviceCode(f.ctx, c))
		for i, allow := range grants {
			var grant *oauth.AuthorizationCode
			if allow {
				grant = f.grant(c)
			}
			err := f.DecideDeviceCode(f.ctx, c.Hash, grant, f.now)
			if i == 0 {
				f.must(err)
			} else {
				f.wantError("second decision", err, oauth.ErrConflict)
			}
		}
		got, err := f.DeviceCode(f.ctx, c.Hash)
		f.must(err)
		if want := map[bool]oauth.Decision{true: oauth.Allowed, false: oauth.Denied}[grants[0]]; got.Decision != want {
			t.Errorf("got decision %d, want %d", got.Decision, want)
		}
		_, err = f.AuthorizationCode(f.ctx, c.Hash)
		if grants[0] != (err == nil) {
			t.Errorf("got error %v for the grant, want one %v", err, !grants[0])
		}
	}
	unknown := f.device()
	f.wantError("unknown code", f.DecideDeviceCode(f.ctx, unknown.Hash, nil, f.now),
		oauth.ErrNotFound)
}

func deviceDenied(t *testing.T, f *fixture) {
	c := f.device()
	f.must(f.SaveDeviceCode(f.ctx, c))
	f.must(f.DecideDeviceCode(f.ctx, c.Hash, nil, f.now))
	_, err := f.Consent(f.ctx, f.user.ID, f.client.ID)
	f.wantError("consent", err, account.ErrNotFound)
}

func deviceRedeemed(t *testing.T, f *fixture) {
	c := f.device()
	f.must(f.SaveDeviceCode(f.ctx, c))
	early := f.redeem(c.Hash, f.now)
	f.do(early)
	f.outcome("before the decision", early.Outcome, oauth.OutcomeGone)
	grant := f.grant(c)
	ctx := audit.With(f.ctx, audit.Event{Action: audit.DeviceAllowed,
		Subject: audit.OfUser(f.user.ID), Target: c.ClientID})
	f.must(f.DecideDeviceCode(ctx, c.Hash, grant, f.now))
	got, err := f.AuthorizationCode(f.ctx, c.Hash)
	f.must(err)
	if !reflect.DeepEqual(got, grant) {
		t.Errorf("grant: got %+v, want %+v", got, grant)
	}
	events, err := f.Events(f.ctx, audit.Filter{Action: audit.DeviceAllowed, Limit: 9})
	f.must(err)
	if len(events) != 1 || events[0].Target != c.ClientID {
		t.Errorf("audit trail: got %v, want one event", events)
	}
	first, replay := f.redeem(c.Hash, f.now), f.redeem(c.Hash, f.now)
	f.do(first, replay)
	f.outcome("first", first.Outcome, oauth.OutcomeDone)
	f.outcome("replay", replay.Outcome, oauth.OutcomeReused)
}

func deviceExpired(_ *testing.T, f *fixture) {
	c := f.device()
	f.must(f.SaveDeviceCode(f.ctx, c))
	f.wantError("at its end", f.DecideDeviceCode(f.ctx, c.Hash, f.grant(c), c.Expires),
		oauth.ErrConflict)
	f.must(f.DecideDeviceCode(f.ctx, c.Hash, f.grant(c), c.Expires.Add(-time.Millisecond)))
}

func deviceConsent(t *testing.T, f *fixture) {
	allow := func(scopes oauth.Scopes, now time.Time) {
		t.Helper()
		c := f.device()
		c.Scopes = scopes
		f.must(f.SaveDeviceCode(f.ctx, c))
		f.must(f.DecideDeviceCode(f.ctx, c.Hash, f.grant(c), now))
	}
	check := func(want account.Consent) {
		t.Helper()
		want.UserID, want.ClientID = f.user.ID, f.client.ID
		got, err := f.Consent(f.ctx, f.user.ID, f.client.ID)
		f.must(err)
		if *got != want {
			t.Errorf("got %+v, want %+v", *got, want)
		}
	}
	allow(oauth.ViewUser, f.now)
	check(account.Consent{Devices: uint16(oauth.ViewUser), Granted: f.now, Used: f.now})
	later := f.now.Add(time.Minute)
	f.must(f.GrantConsent(f.ctx, &account.Consent{UserID: f.user.ID, ClientID: f.client.ID,
		Scopes: uint16(oauth.DetailUser), Granted: later, Used: later}, f.now))
	allow(oauth.OpenID, f.now)
	check(account.Consent{Scopes: uint16(oauth.DetailUser),
		Devices: uint16(oauth.ViewUser | oauth.OpenID), Granted: later, Used: later})
	f.do(&oauth.Revoke{Consent: &oauth.Grant{UserID: f.user.ID, ClientID: f.client.ID}})
	_, err := f.Consent(f.ctx, f.user.ID, f.client.ID)
	f.wantError("withdrawn", err, account.ErrNotFound)
}

func deviceEnds(t *testing.T, f *fixture) {
	c, gone := f.device(), f.device()
	f.must(f.SaveDeviceCode(f.ctx, c))
	grant := f.grant(gone)
	user := f.newUser()
	grant.UserID = user.ID
	f.must(f.DeleteUser(f.ctx, user.ID, [32]byte{}))
	f.must(f.SaveDeviceCode(f.ctx, gone))
	f.wantError("deleted user", f.DecideDeviceCode(f.ctx, gone.Hash, grant, f.now),
		oauth.ErrNotFound)
	f.must(f.DeleteClient(f.ctx, f.client.ID))
	_, err := f.DeviceCode(f.ctx, c.Hash)
	f.wantError("deleted client", err, oauth.ErrNotFound)
	f.wantError("deleted client", f.DecideDeviceCode(f.ctx, c.Hash, nil, f.now), oauth.ErrNotFound)
}

func deviceSweep(t *testing.T, f *fixture) {
	c := f.device()
	f.must(f.SaveDeviceCode(f.ctx, c))
	f.sweep(c.Expires.Add(oauth.DeviceCodeLifetime-time.Millisecond), 0)
	f.sweep(c.Expires.Add(oauth.DeviceCodeLifetime), 1)
}

func deviceRace(t *testing.T, f *fixture) {
	c := f.device()
	f.must(f.SaveDeviceCode(f.ctx, c))
	const racers = 16
	errs := make([]error, racers)
	grants := make([]*oauth.AuthorizationCode, racers)
	for i := range grants {
		if i%2 == 0 {
			grants[i] = f.grant(c)
		}
	}
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() { errs[i] = f.DecideDeviceCode(f.ctx, c.Hash, grants[i], f.now) })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, oauth.ErrConflict) {
			t.Fatal(err)
		}
	}
	if won != 1 {
		t.Errorf("got %d decisions, want 1", won)
	}
}

// deviceRoom fills the room of a client from 27 networks. Further codes take the places of the oldest
// ones of these, and not of another network's.
func deviceRoom(t *testing.T, f *fixture) {
	save := func(caller string, after time.Duration) *oauth.DeviceCode {
		c := f.device()
		c.Caller, c.Created = netip.MustParseAddr(caller), c.Created.Add(after)
		f.must(f.SaveDeviceCode(f.ctx, c))
		return c
	}
	isOpen := func(c *oauth.DeviceCode) bool {
		stored, err := f.DeviceCode(f.ctx, c.Hash)
		f.must(err)
		return stored.Decision == 0 && stored.Expires.After(f.now.Add(time.Minute))
	}
	first := save("2001:db8:1::1", 0)
	honest := save("192.0.2.1", 0)
	bytes := "CAST('%s' || i AS BYTEA)"
	if strings.Contains(t.Name(), "/SQLite/") {
		bytes = "CAST('%s' || i AS BLOB)"
	}
	f.must(sqlstore.Execute(f.ctx, f.Store, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO device_codes (hash, user_code, client_id, scopes, default_scopes, place, created, expires, decision, network)
SELECT %s, %s, '%s', 1, TRUE, '', %d, %d, 0, '2001:db8:' || (1 + i %% 27) || '::/48' FROM n`,
		oauth.MostDevices-2, fmt.Sprintf(bytes, "h"), fmt.Sprintf(bytes, "u"), f.client.ID, f.now.UnixMilli()+2,
		f.now.Add(time.Hour).UnixMilli())))
	for i := range 120 { // more than make room at a time
		save(fmt.Sprintf("2001:db8:%d::1", 1+i%27), time.Second)
	}
	if isOpen(first) || !isOpen(honest) {
		t.Error("got another code dropped, want the oldest of the largest network")
	}
	err := f.DecideDeviceCode(f.ctx, first.Hash, f.grant(first), f.now)
	f.wantError("dropped code", err, oauth.ErrConflict)
	other := f.newClient()
	c := f.device()
	c.ClientID = other.ID
	f.must(f.SaveDeviceCode(f.ctx, c)) // another client has its own room
	if !isOpen(honest) {
		t.Error("got a code dropped for another client")
	}
}
