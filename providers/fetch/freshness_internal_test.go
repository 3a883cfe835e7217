package fetch

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestFreshness(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		control, age, expires string
		want                  time.Duration
	}{
		{"", "", "", time.Minute},
		{"max-age=600", "", "", 10 * time.Minute},
		{`public, Max-Age="600"`, "", "", 10 * time.Minute},
		{"max-age=600", "60", "", 9 * time.Minute},
		{"max-age=600", "600", "", time.Minute},
		{"max-age=1", "", "", time.Minute},
		{"max-age=99999999999", "", "", time.Minute},
		{"max-age=2000000000", "", "", 24 * time.Hour},
		{"max-age=-5", "", "", time.Minute},
		{"no-store, max-age=600", "", "", time.Minute},
		{"max-age=600, no-cache", "", "", time.Minute},
		{"", "", "Thu, 01 Jan 2026 01:00:00 GMT", time.Hour},
		{"max-age=600", "", "Thu, 01 Jan 2026 01:00:00 GMT", 10 * time.Minute},
		{"", "", "Thu, 01 Jan 2025 01:00:00 GMT", time.Minute},
		{"", "", "Thu, 01 Jan 2099 01:00:00 GMT", 24 * time.Hour},
		{"", "", "0", time.Minute},
	} {
		h := http.Header{}
		for name, value := range map[string]string{"Cache-Control": row.control, "Age": row.age,
			"Expires": row.expires} {
			if value != "" {
				h.Set(name, value)
			}
		}
		if got := Freshness(h, now); got != row.want {
			t.Errorf("%q, age %q, expires %q: got %v, want %v",
				row.control, row.age, row.expires, got, row.want)
		}
	}
}

func TestMaxAgeShortensFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		f.cache.Add("x", document{[]byte("{}"), time.Now(), time.Hour})
		for _, step := range []struct {
			wait, maxAge time.Duration
			want         bool
		}{
			{59 * time.Second, time.Nanosecond, true}, {time.Second, time.Nanosecond, false},
			{0, 2 * time.Minute, true}, {time.Minute, 2 * time.Minute, false},
			{58*time.Minute - 1, 0, true}, {1, 0, false},
		} {
			time.Sleep(step.wait)
			if _, got := f.cached("x", step.maxAge); got != step.want {
				t.Errorf("after %v, max age %v: got %t, want %t", step.wait, step.maxAge, got, step.want)
			}
		}
	})
}
