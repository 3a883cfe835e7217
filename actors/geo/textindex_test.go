package geo_test

import (
	"fmt"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

// resultFor is an answer to q.
func resultFor(q geo.Query, city string, now time.Time) *geo.Entry {
	return geo.NewEntry(q, geo.Answer{Result: geo.Result{IP: q.Addr(), Location: geo.Location{City: city}}}, geo.SourceUpstream, now)
}

// use makes the cache know that the entry for q is in use, as a look-up does whose text the front does not find.
func use(t *testing.T, c *geo.Cache, q geo.Query, now time.Time) {
	t.Helper()
	if c.Get(q, now) == nil {
		t.Fatalf("%s is not in the cache", q)
	}
}

func TestFindTakesTheCanonicalFormOnly(t *testing.T) {
	for _, text := range []string{"8.8.8.8", "2001:4860:4860::8888", "example.com"} {
		cache, q := newCache(t, 10), query(t, text)
		e := resultFor(q, "Rome", epoch)
		cache.Put(q, e)
		if got := cache.Find(text, epoch); got != e {
			t.Errorf("got %v for %s, want the entry", got, text)
		}
		for _, other := range []string{"", text + ".", " " + text, text[1:], "EXAMPLE.com", "2001:4860:4860:0::8888", "8.8.8.9"} {
			if got := cache.Find(other, epoch); got != nil {
				t.Errorf("got %s for %q, want nothing", got.Body, other)
			}
		}
	}
}

func TestFindKnowsWhatTheCacheKnows(t *testing.T) {
	cache, q := newCache(t, 2), query(t, "8.8.8.8")
	find := func(step string, now time.Time, want *geo.Entry) {
		t.Helper()
		if got := cache.Find("8.8.8.8", now); got != want {
			t.Errorf("%s: got %v, want %v", step, got, want)
		}
	}
	first, second := resultFor(q, "Rome", epoch), resultFor(q, "Bari", epoch)
	find("before it came", epoch, nil)
	cache.Put(q, first)
	find("in the cache", epoch, first)
	other := query(t, "8.8.8.1")
	cache.Put(other, resultFor(other, "Rome", epoch))
	find("when others have come in, of which the cache has to be told", epoch, nil)
	use(t, cache, q, epoch)
	find("told", epoch, first)
	cache.Put(q, second)
	find("replaced", epoch, second)
	late := epoch.Add(10 * time.Minute)
	find("at the end of its time", late.Add(-1), second)
	find("after its time", late, nil)
	cache.Put(q, geo.NewEntry(q, geo.Answer{Err: &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}}, geo.SourceUpstream, epoch))
	find("not found", epoch, nil)
	cache.Put(q, first)
	for _, text := range []string{"8.8.8.2", "8.8.8.3"} {
		other := query(t, text)
		cache.Put(other, resultFor(other, "Rome", epoch))
	}
	find("evicted", epoch, nil)
}

// TestFindKeepsTheOrderOfUse evicts what nobody asked for, although the rest was looked up by its text alone.
func TestFindKeepsTheOrderOfUse(t *testing.T) {
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
	for text, kept := range map[string]bool{"8.8.8.1": true, "8.8.8.2": false, "8.8.8.3": true, "8.8.8.4": true} {
		if got := cache.Peek(query(t, text), later) != nil; got != kept {
			t.Errorf("got %s kept %t, want %t", text, got, kept)
		}
	}
}

// TestWhatIsFoundStaysWhileOthersComeAndGo looks one entry up by its text alone, while ten times as many as the cache holds come in.
func TestWhatIsFoundStaysWhileOthersComeAndGo(t *testing.T) {
	const size = 100
	cache, q := newCache(t, size), query(t, "9.9.9.9")
	cache.Put(q, resultFor(q, "Rome", epoch))
	told := 0
	for i := range 10 * size {
		if cache.Find("9.9.9.9", epoch) == nil {
			use(t, cache, q, epoch)
			told++
		}
		other := query(t, fmt.Sprintf("8.8.%d.%d", i/256, i%256))
		cache.Put(other, resultFor(other, "Rome", epoch))
	}
	if told < 10 || told > 300 { // each 12 times, and while another has its place
		t.Errorf("the cache was told %d times in %d, want at least once in 100 and not often", told, 10*size)
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

// TestFullCacheIsFoundByText fills a cache to the brim: most of it must be found by its text, and nothing wrong.
func TestFullCacheIsFoundByText(t *testing.T) {
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
		t.Errorf("got %d of %d found, want most", found, size)
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
