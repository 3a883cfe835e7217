package geo_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

const origin = "ip-api of http://ip-api.com"

// aCache returns a cache with a result that has data, one of a domain, and an error.
func aCache(t *testing.T) *geo.Cache {
	t.Helper()
	c := newCache(t, 10)
	located := geo.Answer{Result: resultOf(known)}
	q := query(t, "8.8.8.8")
	c.Put(q, geo.NewEntry(time.Hour, q, located, geo.SourceMMDB, epoch))
	q = query(t, "example.com")
	c.Put(q, geo.NewEntry(geo.ResultTTL, q, geo.Answer{Result: resultOf(geo.Data{})},
		geo.SourceUpstream, epoch))
	q = query(t, "absent.example.com")
	missing := &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}
	c.Put(q, geo.NewEntry(geo.ResultTTL, q, geo.Answer{Err: missing}, geo.SourceUpstream, epoch))
	return c
}

// saved returns the file of a cache at a time.
func saved(t *testing.T, c *geo.Cache, now time.Time) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := c.Save(&file, origin, now); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// held returns what a cache has of the queries of aCache at a time, with ages and lifetimes.
func held(t *testing.T, c *geo.Cache, now time.Time) string {
	t.Helper()
	var all strings.Builder
	for _, text := range []string{"8.8.8.8", "example.com", "absent.example.com"} {
		e := c.Peek(query(t, text), now)
		if e == nil {
			fmt.Fprintln(&all, text, "is not there")
			continue
		}
		o := geo.Outcome{Entry: e, Err: e.Err}
		fmt.Fprintln(&all, text, o.Source(), o.TTL(), o.Age(now), o.Err)
		if o.Err == nil {
			fmt.Fprintln(&all, string(o.AppendDetails(nil, text)))
		}
	}
	return all.String()
}

func TestCacheFile(t *testing.T) {
	c := aCache(t)
	file := saved(t, c, epoch.Add(time.Second))
	for after, want := range map[time.Duration]int{
		0: 3, time.Second: 3, time.Minute - 1: 3, time.Minute: 2, 10*time.Minute - 1: 2,
		10 * time.Minute: 1, time.Hour - 1: 1, time.Hour: 0,
		-1: 0, // the clock was set back
	} {
		now, loaded := epoch.Add(after), newCache(t, 10)
		n, err := loaded.Load(bytes.NewReader(file), origin, now)
		if n != want || err != nil {
			t.Errorf("after %v: got %d, %v, want %d", after, n, err, want)
		}
		if after < 0 {
			continue
		}
		if got, want := held(t, loaded, now), held(t, c, now); got != want {
			t.Errorf("after %v: got %s, want %s", after, got, want)
		}
	}
	if again := saved(t, c, epoch.Add(time.Hour)); len(again) >= 200 {
		t.Errorf("got %d bytes of expired results", len(again))
	}
}

// TestBrokenCacheFile reads files in which one bit has changed, and files that end early.
func TestBrokenCacheFile(t *testing.T) {
	file := saved(t, aCache(t), epoch)
	check := func(what string, broken []byte, origin string, want error) {
		t.Helper()
		c := newCache(t, 10)
		n, err := c.Load(bytes.NewReader(broken), origin, epoch)
		if n != 0 || c.Stats().Entries != 0 || err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: got %d results, error %v", what, n, err)
		}
	}
	for i := range file {
		for bit := range 8 {
			broken := bytes.Clone(file)
			broken[i] ^= 1 << bit
			check(fmt.Sprintf("bit %d of byte %d", bit, i), broken, origin, nil)
		}
		check(fmt.Sprintf("the first %d bytes", i), file[:i], origin, nil)
	}
	check("one byte more", append(bytes.Clone(file), 0), origin, geo.ErrFileDamaged)
	check("another origin", file, origin+" ", geo.ErrFileOrigin)
	newer := bytes.Clone(file)
	newer[len("gatehouse cache")]++
	check("another version", newer, origin, geo.ErrFileVersion)
}

// TestCacheFileKeepsTheOrder reads a file into a smaller cache, which keeps what was used last.
func TestCacheFileKeepsTheOrder(t *testing.T) {
	c := newCache(t, 100)
	for i := range 100 {
		q := query(t, fmt.Sprintf("9.9.9.%d", i))
		c.Put(q, geo.NewEntry(geo.ResultTTL, q, geo.Answer{}, geo.SourceSim, epoch))
	}
	small := newCache(t, 10)
	if _, err := small.Load(bytes.NewReader(saved(t, c, epoch)), origin, epoch); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if got := small.Peek(query(t, fmt.Sprintf("9.9.9.%d", i)), epoch) != nil; got != (i >= 90) {
			t.Errorf("got %t for address %d", got, i)
		}
	}
}

// FuzzCacheFile reads files whose sum is right and whose content is not.
func FuzzCacheFile(f *testing.F) {
	f.Add([]byte("\x00"))
	f.Add([]byte("\x01\x02\x0a\x078.8.8.8\x03sim\x00\x01}\x00\x00"))
	f.Add([]byte("\x01\x02\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, body []byte) {
		of := sha256.Sum256([]byte(origin))
		file := append(append([]byte("gatehouse cache\x01"), of[:]...), body...)
		sum := sha256.Sum256(file)
		c := newCache(t, 10)
		_, err := c.Load(bytes.NewReader(append(file, sum[:]...)), origin, time.Unix(0, 1))
		if err != nil && !errors.Is(err, geo.ErrFileDamaged) {
			t.Errorf("got %v, want %v", err, geo.ErrFileDamaged)
		}
	})
}
