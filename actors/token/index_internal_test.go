package token

import (
	"strconv"
	"testing"
	"time"
	"unsafe"

	"gatehouse/actors/oauth"
)

// TestIndexDropsRemovedActors finds more actors than one bucket holds, all with the same tag, and
// then does not find those that were removed.
func TestIndexDropsRemovedActors(t *testing.T) {
	d := newDirectory()
	var hashes []oauth.Hash
	for i := range 7 {
		a := &tokenActor{hash: oauth.Hash{0: 5, 31: byte(i)}} // one bucket, one tag
		hashes = append(hashes, a.hash)
		addActor(t, d, a)
	}
	for range 2 {
		for i := range hashes {
			if a := d.find(&hashes[i]); a == nil || a.hash != hashes[i] {
				t.Fatalf("got %v for token %d, want its actor", a, i)
			}
		}
	}
	last := d.find(&hashes[2])
	d.find(&hashes[0])
	if taken := d.take(hashes[:1]); len(taken) != 1 || d.find(&hashes[0]) != nil {
		t.Error("got the actor of a revoked token")
	}
	d.find(&hashes[2])
	if !d.remove(last) || d.find(&hashes[2]) != nil || d.remove(last) {
		t.Error("got an actor that was removed")
	}
	for _, i := range []int{1, 3, 4, 5, 6} {
		if a := d.find(&hashes[i]); a == nil || a.hash != hashes[i] {
			t.Errorf("got %v for token %d, want its actor", a, i)
		}
	}
}

// addActor inserts an actor into a directory without loading it.
func addActor(t *testing.T, d *directory, a *tokenActor) {
	t.Helper()
	shard := d.shard(&a.hash)
	shard.mu.Lock()
	shard.loading[a.hash] = a
	shard.mu.Unlock()
	if !d.insert(a) {
		t.Fatal("got an insert refused")
	}
}

func TestIndexSizeFollowsDirectory(t *testing.T) {
	d := newDirectory()
	var all []*tokenActor
	for i := range 10_000 {
		a := &tokenActor{hash: oauth.HashOf(strconv.Itoa(i))}
		all = append(all, a)
		addActor(t, d, a)
	}
	if got := len(d.index.Load().buckets); got < 2_500 || got > 10_000 {
		t.Errorf("got %d buckets for 10,000 actors, want one to four actors in each", got)
	}
	missed := 0
	for range 10 {
		missed = 0
		for _, a := range all {
			if d.index.Load().find(&a.hash) != a {
				missed++
			}
			d.find(&a.hash)
		}
	}
	if missed > 300 {
		t.Errorf("got %d of 10,000 actors missing in the index, want few", missed)
	}
	last := all[0]
	for range 50 {
		d.find(&last.hash)
	}
	if d.index.Load().find(&last.hash) != last {
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

// TestHotStructuresFitCacheLines checks that an actor fits two cache lines and a bucket one.
func TestHotStructuresFitCacheLines(t *testing.T) {
	actor, bucket := unsafe.Sizeof(tokenActor{}), unsafe.Sizeof(bucket{})
	if actor > 192 || bucket != 64 {
		t.Errorf("got %d bytes an actor and %d a bucket, want at most 192 and 64", actor, bucket)
	}
}

func TestPanicRefusesItsRequestOnly(t *testing.T) {
	f := newFixture(t, nil)
	token, now := f.token("app", oauth.ViewUser), time.Now()
	wantVerdict(t, "before", f.Admit(token, BasicProfile, now), Admitted)
	hash := oauth.HashOf(token)
	a := f.directory.find(&hash)
	client := a.session.client
	a.session.client = nil
	wantVerdict(t, "with a broken session", f.Admit(token, BasicProfile, now), TryLater)
	a.session.client = client
	wantVerdict(t, "after", f.Admit(token, BasicProfile, now), Admitted)
}
