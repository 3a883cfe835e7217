package token

import (
	"crypto/rand"
	"testing"
	"time"
	"unsafe"

	"gatehouse/actors/oauth"
)

// TestIndexDropsRemovedActors finds more actors than one bucket holds, all with the same tag, and
// then does not find those that were removed.
func TestIndexDropsRemovedActors(t *testing.T) {
	d := newDirectory(DefaultMaxActive)
	var ids []oauth.TokenID
	for i := range 7 {
		// One bucket, one tag.
		ids = append(ids, addActor(t, d, oauth.TokenID{0: 5, 23: byte(i)}).id)
	}
	for range 2 {
		for i := range ids {
			if a := d.find(&ids[i]); a == nil || a.id != ids[i] {
				t.Fatalf("got %v for token %d, want its actor", a, i)
			}
		}
	}
	last := d.find(&ids[2])
	d.find(&ids[0])
	if !d.remove(d.find(&ids[0])) || d.find(&ids[0]) != nil {
		t.Error("got an actor that was removed at once")
	}
	d.find(&ids[2])
	if !d.remove(last) || d.find(&ids[2]) != nil || d.remove(last) {
		t.Error("got an actor that was removed")
	}
	for _, i := range []int{1, 3, 4, 5, 6} {
		if a := d.find(&ids[i]); a == nil || a.id != ids[i] {
			t.Errorf("got %v for token %d, want its actor", a, i)
		}
	}
}

// addActor inserts a new actor into a directory.
func addActor(t *testing.T, d *directory, id oauth.TokenID) *tokenActor {
	t.Helper()
	a := &tokenActor{id: id, session: session{client: &clientActor{}}}
	if d.insert(a) != a {
		t.Fatal("got an insert refused")
	}
	return a
}

func TestIndexSizeFollowsDirectory(t *testing.T) {
	d := newDirectory(DefaultMaxActive)
	var all []*tokenActor
	for range 10_000 {
		var id oauth.TokenID
		rand.Read(id[:])
		all = append(all, addActor(t, d, id))
	}
	if got := len(d.index.Load().buckets); got < 2_500 || got > 10_000 {
		t.Errorf("got %d buckets for 10,000 actors, want one to four actors in each", got)
	}
	missed := 0
	for range 10 {
		missed = 0
		for _, a := range all {
			if d.index.Load().find(&a.id) != a {
				missed++
			}
			d.find(&a.id)
		}
	}
	if missed > 300 {
		t.Errorf("got %d of 10,000 actors missing in the index, want few", missed)
	}
	last := all[0]
	for range 50 {
		d.find(&last.id)
	}
	if d.index.Load().find(&last.id) != last {
		t.Error("got an actor that is asked often missing in the index")
	}
	for _, a := range all {
		d.remove(a)
	}
	for range 10 {
		d.members(0, nil)
	}
	if got := len(d.index.Load().buckets); got != leastBuckets {
		t.Errorf("got %d buckets without actors, want %d", got, leastBuckets)
	}
}

// TestHotStructuresFitCacheLines checks that an actor fits four cache lines and a bucket one.
func TestHotStructuresFitCacheLines(t *testing.T) {
	actor, bucket := unsafe.Sizeof(tokenActor{}), unsafe.Sizeof(bucket{})
	if actor > 256 || bucket != 64 {
		t.Errorf("got %d bytes an actor and %d a bucket, want at most 256 and 64", actor, bucket)
	}
}

func TestPanicRefusesItsRequestOnly(t *testing.T) {
	f := newFixture(t, nil)
	token, now := f.token("app", oauth.ViewUser), time.Now()
	wantVerdict(t, "before", f.Admit(token, BasicProfile, now), Admitted)
	a := f.actor(token)
	client := a.session.client
	a.session.client = nil
	wantVerdict(t, "with a broken session", f.Admit(token, BasicProfile, now), TryLater)
	a.session.client = client
	wantVerdict(t, "after", f.Admit(token, BasicProfile, now), Admitted)
}
