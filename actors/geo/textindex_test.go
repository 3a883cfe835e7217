package geo_test

import (
	"fmt"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

// resultFor returns an entry with a result for q.
func resultFor(q geo.Query, city string, now time.Time) *geo.Entry {
	return geo.NewEntry(geo.ResultTTL, q, geo.Answer{Result: geo.Result{IP: q.Addr(),
		Location: geo.Location{City: city}}}, geo.SourceUpstream, now)
}

// use gets the entry for q under the mutex, as a lookup does if Find returns nil.
func use(t *testing.T, c *geo.Cache, q geo.Query, now time.Time) {
	t.Helper()
	if c.Get(q, now) == nil {
		t.Fatalf("%s is not in the cache", q)
	}
}

func TestFindNeedsCanonicalForm(t *testing.T) {
	for _, text := range []string{"8.8.8.8", "2001:4860:4860::8888", "example.com"} {
		cache, q := newCache(t, 10), query(t, text)
		e := resultFor(q, "Rome", epoch)
		cache.Put(q, e)
		if got := cache.Find(text, epoch); got != e {
			t.Errorf("got %v for %s, want the entry", got, text)
		}
		for _, other := range []string{"", text + ".", " " + text, text[1:], "EXAMPLE.com",
			"2001:4860:4860:0::8888", "8.8.8.9"} {
			if got := cache.Find(other, epoch); got != nil {
				t.Errorf("got %s for %q, want nil", got.Body, other)
			}
		}
	}
}

func TestFindFollowsCache(t *testing.T) {
	cache, q := newCache(t, 2), query(t, "8.8.8.8")
	find := func(step string, now time.Time, want *geo.Entry) {
		t.Helper()
		if got := cache.Find("8.8.8.8", now); got != want {
			t.Errorf("%s: got %v, want %v", step, got, want)
		}
	}
	first, second := resultFor(q, "Rome", epoch), resultFor(q, "Bari", epoch)
	find("before Put", epoch, nil)
	cache.Put(q, first)
	find("after Put", epoch, first)
	other := query(t, "8.8.8.1")
	cache.Put(other, resultFor(other, "Rome", epoch))
	find("due to move in the LRU", epoch, nil)
	use(t, cache, q, epoch)
	find("moved", epoch, first)
	cache.Put(q, second)
	find("replaced", epoch, second)
	late := epoch.Add(10 * time.Minute)
	find("about to expire", late.Add(-1), second)
	find("expired", late, nil)
	cache.Put(q,
		geo.NewEntry(geo.ResultTTL, q, geo.Answer{Err: &geo.Error{Code: geo.CodeInvalidQuery,
			Reason: geo.ReasonNotFound}}, geo.SourceUpstream, epoch))
	find("not found", epoch, nil)
	cache.Put(q, first)
	for _, text := range []string{"8.8.8.2", "8.8.8.3"} {
		other := query(t, text)
		cache.Put(other, resultFor(other, "Rome", epoch))
	}
	find("evicted", epoch, nil)
}

// TestFindKeepsLRUOrder checks that Find counts as use: the entry that was not looked up is
// evicted.
func TestFindKeepsLRUOrder(t *testing.T) {
	cache := newCache(t, 3)
	look := func(text string, now time.Time) {
		if cache.Find(text, now) == nil {
			use(t, cache, query(t, text), now)
		}
	}
	for _, text := range []string{"8.8.8.1", "8.8.8.2", "8.8.8.3"} {
		q := query(t, text)
		cache.Put(q, resultFor(q, "Rome", epoch))
		look(text, epoch)
	}
	later := epoch.Add(2 * time.Second)
	look("8.8.8.1", later)
	look("8.8.8.3", later)
	fresh := query(t, "8.8.8.4")
	cache.Put(fresh, resultFor(fresh, "Rome", later))
	for text, kept := range map[string]bool{"8.8.8.1": true, "8.8.8.2": false, "8.8.8.3": true,
		"8.8.8.4": true} {
		if got := cache.Peek(query(t, text), later) != nil; got != kept {
			t.Errorf("got %s kept %t, want %t", text, got, kept)
		}
	}
}

// TestUsedEntryIsNotEvicted looks one entry up with Find while ten times the cache's size comes in.
func TestUsedEntryIsNotEvicted(t *testing.T) {
	const size = 100
	cache, q := newCache(t, size), query(t, "9.9.9.9")
	cache.Put(q, resultFor(q, "Rome", epoch))
	moves := 0
	for i := range 10 * size {
		if cache.Find("9.9.9.9", epoch) == nil {
			use(t, cache, q, epoch)
			moves++
		}
		other := query(t, fmt.Sprintf("8.8.%d.%d", i/256, i%256))
		cache.Put(other, resultFor(other, "Rome", epoch))
	}
	if moves < 10 || moves > 300 { // every 12 puts, and while another entry has its slot
		t.Errorf("got %d lookups under the mutex of %d, want 10 to 300", moves, 10*size)
	}
}

func TestFindCountsHits(t *testing.T) {
	cache, q := newCache(t, 10), query(t, "8.8.8.8")
	cache.Put(q, resultFor(q, "Rome", epoch))
	use(t, cache, q, epoch)
	for range 3 {
		cache.Find("8.8.8.8", epoch)
	}
	cache.Find("8.8.8.9", epoch)
	if s := cache.Stats(); s.Hits != 4 || s.Misses != 0 {
		t.Errorf("got %d hits and %d misses, want 4 and 0", s.Hits, s.Misses)
	}
}

// TestFindInFullCache checks that Find finds most entries of a full cache, and only right ones.
func TestFindInFullCache(t *testing.T) {
	const size = 5000
	cache := newCache(t, size)
	text := func(i int) string { return fmt.Sprintf("8.8.%d.%d", i/256, i%256) }
	for i := range size {
		q := query(t, text(i))
		cache.Put(q, resultFor(q, text(i), epoch))
	}
	for i := range size {
		use(t, cache, query(t, text(i)), epoch)
	}
	found := 0
	for i := range size {
		e := cache.Find(text(i), epoch)
		if e == nil {
			continue
		}
		if found++; !e.IsFor(text(i)) {
			t.Fatalf("got %s for %s", e.Body, text(i))
		}
	}
	if found < size*7/10 {
		t.Errorf("found %d of %d, want at least 70 %%", found, size)
	}
}

func BenchmarkFind(b *testing.B) {
	const n = 4096
	cache, err := geo.NewCache(100_000)
	if err != nil {
		b.Fatal(err)
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("8.8.%d.%d", i/256, i%256)
		q, fault := geo.ParseQuery(texts[i])
		if fault != nil {
			b.Fatal(fault)
		}
		cache.Put(q, resultFor(q, "Rome", epoch))
		cache.Get(q, epoch)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		cache.Find(texts[i%n], epoch)
		i++
	}
}
