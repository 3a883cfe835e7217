package geo_test

import (
	"net/netip"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

func query(t *testing.T, s string) geo.Query {
	t.Helper()
	q, err := geo.ParseQuery(s)
	if err != nil {
		t.Fatalf("parse %q: %v", s, err)
	}
	return q
}

func newCache(t *testing.T, size int) *geo.Cache {
	t.Helper()
	c, err := geo.NewCache(size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func entryOf(city string, now time.Time) *geo.Entry {
	return geo.NewEntry(geo.ResultTTL, geo.Query{}, geo.Answer{Result: geo.Result{
		IP:       netip.MustParseAddr("8.8.8.8"),
		Location: geo.Location{City: city},
	}}, geo.SourceUpstream, now)
}

func TestCacheExpiresEntries(t *testing.T) {
	notFound := geo.NewEntry(geo.ResultTTL, geo.Query{}, geo.Answer{Err: &geo.Error{
		Code:   geo.CodeInvalidQuery,
		Reason: geo.ReasonNotFound}}, geo.SourceUpstream, epoch)
	for _, c := range []struct {
		name  string
		entry *geo.Entry
		after time.Duration
		live  bool
	}{
		{"a result just before ten minutes", entryOf("Rome", epoch), 10*time.Minute - 1, true},
		{"a result at ten minutes", entryOf("Rome", epoch), 10 * time.Minute, false},
		{"not found just before a minute", notFound, time.Minute - 1, true},
		{"not found at a minute", notFound, time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache, q := newCache(t, 10), query(t, "8.8.8.8")
			cache.Put(q, c.entry)
			if got := cache.Get(q, epoch.Add(c.after)) != nil; got != c.live {
				t.Errorf("got live %t, want %t", got, c.live)
			}
		})
	}
}

func TestCacheEvictsLeastRecentlyUsed(t *testing.T) {
	cache := newCache(t, 2)
	a, b, c := query(t, "a.com"), query(t, "b.com"), query(t, "c.com")
	cache.Put(a, entryOf("A", epoch))
	cache.Put(b, entryOf("B", epoch))
	if cache.Get(a, epoch) == nil {
		t.Fatal("got no answer for a, want one")
	}
	cache.Put(c, entryOf("C", epoch))
	if cache.Get(b, epoch) != nil {
		t.Error("got an answer for b, which was used least recently")
	}
	s := cache.Stats()
	if s.Entries != 2 || s.Evictions != 1 || s.Hits != 1 || s.Misses != 1 {
		t.Errorf("got %+v, want 2 entries, 1 eviction, 1 hit, 1 miss", s)
	}
}

func TestCacheCountsBytes(t *testing.T) {
	cache, q := newCache(t, 2), query(t, "a.com")
	cache.Put(q, entryOf("A", epoch))
	one := cache.Stats().Bytes
	cache.Put(q, entryOf("A", epoch))
	if got := cache.Stats().Bytes; got != one || one <= 0 {
		t.Errorf("got %d bytes after the same answer again, want %d", got, one)
	}
	cache.Put(query(t, "b.com"), entryOf("B", epoch))
	cache.Put(query(t, "c.com"), entryOf("C", epoch))
	if got := cache.Stats().Bytes; got != 2*one {
		t.Errorf("got %d bytes for two answers, want %d", got, 2*one)
	}
}

func TestFallbackNeverReplacesLiveAnswer(t *testing.T) {
	cache, q := newCache(t, 2), query(t, "a.com")
	live, offline := entryOf("online", epoch), entryOf("offline", epoch)
	cache.Put(q, live)
	if got := cache.PutFallback(q, offline, epoch); got != live {
		t.Error("got the offline answer, want the upstream's live one")
	}
	late := epoch.Add(geo.ResultTTL)
	offline = entryOf("offline", late)
	if got := cache.PutFallback(q, offline, late); got != offline ||
		cache.Peek(q, late) != offline {
		t.Error("got the upstream's expired answer, want the offline one")
	}
}

func TestReplaceNeedsOldAnswer(t *testing.T) {
	cache, q := newCache(t, 2), query(t, "a.com")
	old, newer, named := entryOf("old", epoch), entryOf("newer", epoch), entryOf("named", epoch)
	cache.Put(q, newer)
	if cache.Replace(q, old, named) || cache.Peek(q, epoch) != newer {
		t.Error("an unexpected answer was replaced")
	}
	if !cache.Replace(q, newer, named) || cache.Peek(q, epoch) != named {
		t.Error("got the old answer, want the new one")
	}
}

func TestAgeIsInWholeSeconds(t *testing.T) {
	e := entryOf("A", epoch)
	for after, want := range map[time.Duration]int{-time.Second: 0, 0: 0, 999 * time.Millisecond: 0,
		61500 * time.Millisecond: 61} {
		if got := e.Age(epoch.Add(after)); got != want {
			t.Errorf("after %v: got %d, want %d", after, got, want)
		}
	}
}

func TestCacheSizeIsPositive(t *testing.T) {
	if _, err := geo.NewCache(0); err == nil {
		t.Error("got a cache of no entries, want an error")
	}
}
