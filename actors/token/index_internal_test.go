package token

import (
	"strconv"
	"testing"
	"time"
	"unsafe"

	"gatehouse/actors/oauth"
)

// TestIndexKnowsNobodyWhoWasTakenOut looks for more actors than a bucket holds, with the same tag, and for those that were taken out.
func TestIndexKnowsNobodyWhoWasTakenOut(t *testing.T) {
	d := newDirectory()
	var hashes []oauth.Hash
	for i := range 7 {
		a := &tokenActor{hash: oauth.Hash{0: 5, 31: byte(i)}} // all in one bucket
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
		t.Error("got a token that was taken out")
	}
	d.find(&hashes[2])
	if !d.remove(last) || d.find(&hashes[2]) != nil || d.remove(last) {
		t.Error("got a token that was removed")
	}
	for _, i := range []int{1, 3, 4, 5, 6} {
		if a := d.find(&hashes[i]); a == nil || a.hash != hashes[i] {
			t.Errorf("got %v for token %d, which is left", a, i)
		}
	}
}

// addActor puts an actor into a directory without loading it.
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

func TestIndexFitsTheDirectory(t *testing.T) {
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
		t.Errorf("got %d of 10,000 actors that were found by the lock alone, want few", missed)
	}
	last := all[0]
	for range 50 {
		d.find(&last.hash)
	}
	if d.index.Load().find(&last.hash) != last {
		t.Error("got no place for an actor that is often asked for")
	}
	for _, a := range all {
		d.remove(a)
	}
	for range 10 {
		d.members(0, nil)
	}
	if got := len(d.index.Load().buckets); got != leastBuckets {
		t.Errorf("got %d buckets for nobody, want %d", got, leastBuckets)
	}
}

// TestHotStructuresFitCacheLines: an actor fits two, a bucket one.
func TestHotStructuresFitCacheLines(t *testing.T) {
	if actor, bucket := unsafe.Sizeof(tokenActor{}), unsafe.Sizeof(bucket{}); actor > 128 || bucket != 64 {
		t.Errorf("got %d bytes an actor and %d a bucket, want at most 128 and 64", actor, bucket)
	}
}

func TestPanicRefusesItsRequestOnly(t *testing.T) {
	d := newFixture(t, nil)
	token, now := d.token("app", oauth.ViewUser), time.Now()
	wantVerdict(t, "before", d.Admit(token, BasicProfile, now), Admitted)
	hash := oauth.HashOf(token)
	a := d.directory.find(&hash)
	client := a.session.client
	a.session.client = nil
	wantVerdict(t, "with a broken session", d.Admit(token, BasicProfile, now), TryLater)
	a.session.client = client
	wantVerdict(t, "after", d.Admit(token, BasicProfile, now), Admitted)
}
