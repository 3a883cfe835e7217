package sim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/providers/sim"
)

// budgetOf returns a response's status, X-Rl and X-Ttl.
func budgetOf(r *fasthttp.Response) string {
	return fmt.Sprintf("%d %s %s", r.StatusCode(), r.Header.Peek("X-Rl"), r.Header.Peek("X-Ttl"))
}

func single(s *sim.Server) string { return budgetOf(call(s, "GET", "/json/8.8.8.8", "")) }
func batch(s *sim.Server) string  { return budgetOf(call(s, "POST", "/batch", `["8.8.8.8"]`)) }

func TestFreeTierBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Config{Settings: sim.Settings{Tier: sim.TierFree}})
		time.Sleep(time.Hour) // the window starts with its first request
		for left := 44; left >= 0; left-- {
			if got, want := single(s), fmt.Sprintf("200 %d 60", left); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		for range 2 {
			if got := single(s); got != "429 0 59" {
				t.Errorf("beyond the budget: got %s, want 429 0 59", got)
			}
		}
		if got := batch(s); got != "200 14 60" {
			t.Errorf("batch window: got %s, want 200 14 60", got)
		}
		if got := s.Stats(); got.EmptyBudget != 2 || got.Violations != 2 || got.Requests != 48 ||
			got.Items != 46 {
			t.Errorf("got %+v, want 2 violations in 48 requests", got)
		}

		time.Sleep(58*time.Second + 499*time.Millisecond)
		if got := single(s); got != "429 0 1" {
			t.Errorf("a millisecond before the end of the window: got %s, want 429 0 1", got)
		}
		time.Sleep(time.Millisecond)
		if got := single(s); got != "200 44 60" {
			t.Errorf("new window: got %s, want 200 44 60", got)
		}
		time.Sleep(30 * time.Second)
		if got := batch(s); got != "200 14 60" {
			t.Errorf("new batch window: got %s, want 200 14 60", got)
		}
		if got := single(s); got != "200 43 30" {
			t.Errorf("middle of the window: got %s, want 200 43 30", got)
		}
	})
}

func TestBudgetSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := sim.Settings{Tier: sim.TierFree, Window: 5 * time.Second, SinglesPerWindow: 1,
			BatchesPerWindow: 2}
		s := sim.New(sim.Config{Settings: settings})
		for i, want := range []string{"200 1 5", "200 0 5", "429 0 5"} {
			if got := batch(s); got != want {
				t.Errorf("batch %d: got %s, want %s", i, got, want)
			}
		}
		single(s)
		if got := single(s); got != "429 0 5" {
			t.Errorf("got %s, want 429 0 5", got)
		}
		settings.SinglesPerWindow = 3
		if err := s.Change(settings); err != nil {
			t.Fatal(err)
		}
		if got := single(s); got != "200 1 5" {
			t.Errorf("larger budget in the same window: got %s, want 200 1 5", got)
		}
		s.Reset()
		if got := single(s); got != "200 0 5" {
			t.Errorf("after a reset: got %s, want 200 0 5", got)
		}
	})
}

func TestRejectedBodiesAreCharged(t *testing.T) {
	u := start(t, sim.Settings{Tier: sim.TierFree, BatchesPerWindow: 2})
	if got := u.do(http.MethodPost, "/batch", "nonsense"); got.status != 400 ||
		got.header.Get("X-Rl") != "1" {
		t.Errorf("got %d %s, want 400 1", got.status, got.header.Get("X-Rl"))
	}
	if got := u.do(http.MethodPost, "/batch", addresses(101)); got.status != 422 ||
		got.header.Get("X-Rl") != "0" {
		t.Errorf("got %d %s, want 422 0", got.status, got.header.Get("X-Rl"))
	}
}

func TestProTierNeedsKey(t *testing.T) {
	for _, row := range []struct {
		tier        sim.Tier
		key, params string
		want        string
	}{
		{sim.TierPro, "k3y", "?key=k3y", "200  "},
		{sim.TierPro, "k3y", "?key=wrong", "403  "},
		{sim.TierPro, "k3y", "", "403  "},
		{sim.TierPro, "", "?key=anything", "200  "},
		{sim.TierPro, "", "", "403  "},
		{sim.TierOpen, "k3y", "", "200  "},
		{"", "", "?key=wrong", "200  "},
		{sim.TierFree, "k3y", "?key=wrong", "200 44 60"},
	} {
		s := sim.New(sim.Config{Key: row.key, Settings: sim.Settings{Tier: row.tier}})
		if got := budgetOf(call(s, "GET", "/json/8.8.8.8"+row.params, "")); got != row.want {
			t.Errorf("%s %s %s: got %s, want %s", row.tier, row.key, row.params, got, row.want)
		}
		if got, want := s.Stats().Refused, strings.Count(row.want, "403"); got != int64(want) {
			t.Errorf("%s %s %s: got %d refused, want %d", row.tier, row.key, row.params, got, want)
		}
	}
}

func TestRepeatsWithinTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Config{})
		repeats := func(want int64) {
			t.Helper()
			if got := s.Stats().Repeats; got != want {
				t.Errorf("got %d repeats, want %d", got, want)
			}
		}
		call(s, "GET", "/json/8.8.8.8", "")
		call(s, "GET", "/json/example.com", "")
		call(s, "GET", "/json/10.0.0.1", "")
		call(s, "GET", "/json/10.0.0.1", "")
		repeats(0)
		time.Sleep(10*time.Minute - time.Nanosecond)
		call(s, "POST", "/batch", `["8.8.4.4","8.8.8.8"]`)
		repeats(1)
		time.Sleep(time.Nanosecond)
		call(s, "GET", "/json/EXAMPLE.com.", "")
		repeats(1)
		call(s, "GET", "/json/example.com", "")
		repeats(2)
		s.ResetStats()
		call(s, "GET", "/json/example.com", "")
		repeats(0)
	})
}
