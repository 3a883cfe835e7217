package stacktest_test

import (
	"context"
	"net/http"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/emulator"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

// offlineCity is the city of 9.0.0.0/8 in the offline files, which hold nothing else. With them
// every domain resolves to an address there.
const offlineCity = "Boxford"

// withFiles gives a service offline files as a fallback.
func withFiles(t *testing.T) stacktest.Option {
	t.Helper()
	path := filepath.Join(t.TempDir(), "city.mmdb")
	mmdbtest.WriteCity(t, path, map[string]geo.Location{"9.0.0.0/8": {
		Continent: "Europe", Country: "United Kingdom", CountryCode: "GB", City: offlineCity, Lat: 51.75,
		Lon: -1.25, Timezone: "Europe/London",
	}})
	resolve := func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("9.5.5.5")}, nil
	}
	return func(c *stack.Config) {
		c.Lookups.Files = mmdb.Config{Files: []string{path}, Resolver: resolve}
	}
}

// offline checks that r is the offline files' response, cached for a minute.
func (r reply) offline(t *testing.T, cache string, within time.Duration) {
	t.Helper()
	if i := r.item(t); r.Status != http.StatusOK || i.Location.City != offlineCity {
		t.Errorf("got %d %s, want 200 and the response of the files", r.Status, r.Body)
	}
	for name, want := range map[string]string{"X-Geo-Source": "mmdb", "X-Cache": cache,
		"Cache-Control": "private, max-age=60"} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	if r.took > within {
		t.Errorf("got the response after %v, want it within %v", r.took, within)
	}
}

func TestFilesRespondWhileBreakerIsOpen(t *testing.T) {
	inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
		s.lookup("9.0.0.1").located(t, "9.0.0.1", "miss")
		startFault(t, e, nil)
		for range failures {
			s.lookup("9.0.0.2").refused(t, http.StatusBadGateway, geo.CodeProviderUnreachable, slack)
		}
		s.breaker(open)
		s.lookup("9.0.0.1").located(t, "9.0.0.1", "hit")
		s.lookup("9.0.0.2").offline(t, "miss", slack)
		s.lookup("9.0.0.2").offline(t, "hit", slack)
		s.lookup("offline.com").offline(t, "miss", slack)
		s.lookup("8.1.1.1").refused(t, http.StatusBadGateway, geo.CodeProviderUnreachable, slack)

		mine := s.myIP("9.0.0.3")
		if mine.Status != http.StatusOK || mine.Header.Get("X-Geo-Source") != "mmdb" ||
			mine.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("got %d %v from my-ip, want 200 by mmdb and no-store", mine.Status, mine.Header)
		}
		many := s.bulk("9.0.0.1", "9.0.0.4", "8.1.1.1")
		if items := many.items(t); !items[0].OK || items[1].Location.City != offlineCity ||
			items[2].Error != "provider_unreachable" {
			t.Errorf("got %s, want a cached result, one of the files and an error", many.Body)
		}
		if got := many.Header.Get("X-Geo-Source"); got != "upstream, mmdb" {
			t.Errorf("got X-Geo-Source %q, want both", got)
		}

		endFault(t, e)
		eventually(t, func() bool { return s.lookup("8.1.1.1").Status == http.StatusOK },
			"the breaker to close")
		s.lookup("8.1.1.1").located(t, "8.1.1.1", "hit")
		s.lookup("9.0.0.5").located(t, "9.0.0.5", "miss")
	}, withFiles)
}

func TestFilesRespondOnEmptyBudget(t *testing.T) {
	inVirtualTime(t, emulator.Config{Singles: 1, Batches: 1}, ipapi.Free,
		func(t *testing.T, s *service, e *emulator.Emulator) {
			s.lookup("first.com").located(t, "first.com", "miss")
			s.bulk("8.1.1.1", "8.1.1.2")
			s.lookup("second.com").offline(t, "miss", slack)
			s.lookup("9.0.0.1").offline(t, "miss", slack)
			s.lookup("8.1.1.1").located(t, "8.1.1.1", "hit")
			r := s.lookup("8.1.1.3")
			r.refused(t, http.StatusTooManyRequests, geo.CodeRateLimited, slack)
			if got := r.retryAfter(t); got < 50 || got > 61 {
				t.Errorf("got Retry-After %d, want the rest of a minute", got)
			}
			if got := e.Stats(); got.Singles != 1 || got.Batches != 1 {
				t.Errorf("got %+v, want no request on an empty budget", got)
			}
		}, withFiles)
}

func TestFilesRespondInTimeWhenUpstreamHangs(t *testing.T) {
	inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
		startFault(t, e, emulator.Hang)
		s.lookup("9.0.0.1").offline(t, "miss", exchangeLimit+slack)
		s.lookup("silent.com").offline(t, "miss", exchangeLimit+slack)
		s.breaker(closed)
	}, withFiles)
}

func TestFilesRespondWhenUpstreamForbids(t *testing.T) {
	inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
		startFault(t, e, emulator.Status(403))
		s.lookup("9.0.0.1").offline(t, "miss", slack)
		s.lookup("held.com").offline(t, "miss", slack)
		s.breaker(open)
		if got := e.Stats().Requests(); got != 1 {
			t.Errorf("got %d requests to an upstream that responds with 403, want 1", got)
		}
	}, withFiles)
}
