package sqlstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

var keyTests = map[string]func(*testing.T, *fixture){
	"KeysAreNeededForLongest":       keysAreNeeded,
	"FirstKeys":                     firstKeys,
	"KeyRotation":                   keyRotation,
	"KeyRotationDrops":              keyRotationDrops,
	"RotationOfOnePurposeKeepsRest": rotationOfOnePurpose,
	"OrderOfKeys":                   orderOfKeys,
	"SigningKeys":                   signingKeys,
}

// keys returns the keys of a purpose.
func (f *fixture) keys(purpose oauth.Purpose, now time.Time) []oauth.Key {
	f.Helper()
	keys, err := f.Keys(f.ctx, now)
	f.must(err)
	return slices.DeleteFunc(keys, func(k oauth.Key) bool { return k.Purpose != purpose })
}

func firstKeys(t *testing.T, f *fixture) {
	secrets := map[string]bool{string(make([]byte, 32)): true}
	for _, purpose := range oauth.Purposes {
		keys := f.keys(purpose, f.now)
		if len(keys) != 1 || keys[0].Number != 1 || keys[0].Purpose != purpose ||
			keys[0].Made.IsZero() || !keys[0].Expires.IsZero() {
			t.Fatalf("%s: got %v, want key 1", purpose, keys)
		}
		secret := string(keys[0].Secret[:])
		if purpose.IsSigning() {
			secret = keys[0].Private
		}
		if secrets[secret] || purpose.IsSigning() && !keys[0].Starts.Equal(keys[0].Made) {
			t.Errorf("%s: got %v, want a secret of its own, in use at once", purpose, keys)
		}
		secrets[secret] = true
	}
}

// sameKeys checks numbers, secrets and times.
func (f *fixture) sameKeys(what string, got, want []oauth.Key) {
	f.Helper()
	show := func(keys []oauth.Key) string {
		var s strings.Builder
		for _, k := range keys {
			fmt.Fprintf(&s, "%v %x %v %v, ", k, k.Secret[:4], k.Made, k.Expires)
		}
		return s.String()
	}
	if len(got) != len(want) || show(got) != show(want) {
		f.Errorf("%s: got %s, want %s", what, show(got), show(want))
	}
}

func keyRotation(t *testing.T, f *fixture) {
	begin := f.keys(oauth.TokenKeys, f.now)
	later := f.now.Add(time.Hour)
	rotation := oauth.KeyRotation{Purpose: oauth.TokenKeys, Now: f.now, Expires: later}
	f.must(f.RotateKeys(f.ctx, rotation))
	second := f.keys(oauth.TokenKeys, f.now)
	former := begin[0]
	former.Expires = later
	if len(second) != 2 || second[0].Number != 2 || !second[0].Made.Equal(f.now) ||
		!second[0].Expires.IsZero() || second[0].Secret == former.Secret {
		t.Fatalf("got %v, want a new key 2 first", second)
	}
	f.sameKeys("former", second[1:], []oauth.Key{former})
	err := f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: oauth.TokenKeys,
		Now: later.Add(-time.Millisecond), Expires: later.Add(time.Hour)})
	f.wantError("rotation while the former key is in use", err, oauth.ErrKeysInUse)
	f.sameKeys("after a refused rotation", f.keys(oauth.TokenKeys, f.now), second)
	f.sameKeys("when the former has expired", f.keys(oauth.TokenKeys, later), second[:1])
	f.must(f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: oauth.TokenKeys, Now: later,
		Expires: later.Add(time.Hour)}))
	third := f.keys(oauth.TokenKeys, later)
	if len(third) != 2 || third[0].Number != 3 || third[1].Secret != second[0].Secret {
		t.Errorf("got %v, want key 3 and key 2", third)
	}
	if all := f.keys(oauth.TokenKeys, time.Time{}); len(all) != 2 {
		t.Errorf("got %d stored keys, want the first one deleted", len(all))
	}
}

// keysAreNeeded has two processes say how long they need the keys. The longest time counts.
func keysAreNeeded(t *testing.T, f *fixture) {
	for _, needed := range []time.Duration{time.Hour, 3 * time.Hour, time.Minute} {
		f.must(f.NeedKeys(f.ctx, map[oauth.Purpose]time.Duration{oauth.TokenKeys: needed}))
	}
	for i, want := range []time.Duration{3 * time.Hour, time.Hour} {
		now := f.now.Add(time.Duration(i) * 24 * time.Hour)
		f.must(f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: oauth.TokenKeys, Now: now,
			Expires: now.Add(time.Minute), Needed: time.Hour}))
		if former := f.keys(oauth.TokenKeys, now)[1]; !former.Expires.Equal(now.Add(want)) {
			t.Errorf("rotation %d: got the former key until %v, want %v", i, former.Expires, now.Add(want))
		}
	}
}

func keyRotationDrops(t *testing.T, f *fixture) {
	rotation := oauth.KeyRotation{Purpose: oauth.TokenKeys, Now: f.now, Expires: f.now.Add(time.Hour)}
	f.must(f.RotateKeys(f.ctx, rotation))
	before := f.keys(oauth.TokenKeys, f.now)
	rotation.Drop = true
	f.must(f.RotateKeys(f.ctx, rotation))
	after := f.keys(oauth.TokenKeys, time.Time{})
	if len(after) != 1 || after[0].Number != 3 || after[0].Secret == before[0].Secret {
		t.Errorf("got %v, want key 3 only", after)
	}
}

// rotateConcurrently rotates keys concurrently, through stores on one database. It checks that one
// rotation succeeds and the others get ErrKeysInUse.
func rotateConcurrently(t *testing.T, stores []oauth.Store, now time.Time) {
	t.Helper()
	var ended sync.WaitGroup
	var rotated atomic.Int32
	for i := range 8 {
		ended.Go(func() {
			err := stores[i%len(stores)].RotateKeys(t.Context(), oauth.KeyRotation{
				Purpose: oauth.TokenKeys, Now: now, Expires: now.Add(time.Hour)})
			switch {
			case err == nil:
				rotated.Add(1)
			case !errors.Is(err, oauth.ErrKeysInUse):
				t.Errorf("got %v, want %v", err, oauth.ErrKeysInUse)
			}
		})
	}
	ended.Wait()
	if got := rotated.Load(); got != 1 {
		t.Errorf("got %d rotations, want 1", got)
	}
	keys, err := stores[0].Keys(t.Context(), now)
	if err != nil || len(keys) != len(oauth.Purposes)+1 || keys[0].Number != 2 {
		t.Errorf("got %v, error %v, want key 2 and key 1 for tokens", keys, err)
	}
}

func rotationOfOnePurpose(t *testing.T, f *fixture) {
	want := f.keys(oauth.BrowserKeys, f.now)
	for _, purpose := range []oauth.Purpose{oauth.TokenKeys, oauth.FormKeys} {
		f.must(f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: purpose, Now: f.now,
			Expires: f.now.Add(time.Hour), Drop: true}))
	}
	f.sameKeys("browsers", f.keys(oauth.BrowserKeys, f.now), want)
}

// orderOfKeys rotates the keys of the first and of the last purpose. The list has those that have
// expired as well.
func orderOfKeys(t *testing.T, f *fixture) {
	for _, purpose := range []oauth.Purpose{oauth.BrowserKeys, oauth.TokenKeys} {
		f.must(f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: purpose, Now: f.now,
			Expires: f.now.Add(time.Hour)}))
	}
	keys, err := f.Keys(f.ctx, f.now)
	f.must(err)
	const want = "[tokens key 2 tokens key 1 forms key 1 browsers key 2 browsers key 1 cluster key 1 factors key 1 rs256 key 1 es256 key 1]"
	if got := fmt.Sprint(keys); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	later, err := f.Keys(f.ctx, f.now.Add(time.Hour))
	f.must(err)
	if got := fmt.Sprint(later); got != "[tokens key 2 forms key 1 browsers key 2 cluster key 1 factors key 1 rs256 key 1 es256 key 1]" {
		t.Errorf("an hour later: got %s, want the current ones", got)
	}
	list, err := f.ListKeys(f.ctx)
	f.must(err)
	if len(list) != len(keys) {
		t.Fatalf("got a list of %d keys, want %d", len(list), len(keys))
	}
	for i, k := range keys {
		info := oauth.KeyInfo{Purpose: k.Purpose, Number: k.Number, Made: k.Made,
			Starts: k.Starts, Expires: k.Expires, File: list[i].File}
		if list[i] != info || info.File == "" {
			t.Errorf("got %+v, want that of %v and the name of its key file", list[i], k)
		}
	}
}

// signingKeys makes keys of one signing purpose after the first. Former ones refuse no rotation,
// but one that is not in use yet does.
func signingKeys(t *testing.T, f *fixture) {
	long := strings.Repeat("\x00a key pair", 200)
	rotate := func(now, starts time.Time, private string) error {
		return f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: oauth.RS256Keys, Now: now,
			Starts: starts, Expires: starts.Add(100 * time.Hour), Private: private})
	}
	hours := func(n time.Duration) time.Time { return f.now.Add(n * time.Hour) }
	f.must(rotate(f.now, f.now, long))
	f.must(rotate(hours(1), hours(2), "second"))
	f.wantError("before the second is used", rotate(hours(1), hours(3), "x"), oauth.ErrKeysInUse)
	f.must(rotate(hours(2), hours(3), "third"))
	keys := f.keys(oauth.RS256Keys, hours(3))
	if len(keys) != 4 || keys[0].Private != "third" || keys[1].Private != "second" ||
		keys[2].Private != long || !keys[0].Starts.Equal(hours(3)) || !keys[0].Expires.IsZero() ||
		!keys[2].Expires.Equal(hours(102)) || keys[0].Secret != [32]byte{} {
		t.Errorf("got %v, want all with what they were made of", keys)
	}
	if got := f.keys(oauth.RS256Keys, hours(102)); len(got) != 2 {
		t.Errorf("got %v when the first has expired, want two", got)
	}
	f.must(rotate(hours(3), hours(5), "fourth"))
	f.must(rotate(hours(4), hours(4), "at once"))
	if got := f.keys(oauth.RS256Keys, hours(4)); len(got) != 6 || got[0].Private != "at once" ||
		got[1].Private != "fourth" || !got[1].Expires.Equal(hours(104)) {
		t.Errorf("got %v, want a key that starts before the fourth, and all others", got)
	}
}
