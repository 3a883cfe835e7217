package geo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
)

var errDown = errors.New("down")

func newBreaker() *geo.Breaker {
	return geo.NewBreaker(geo.BreakerConfig{Failures: 3, Cooldown: 10 * time.Second,
		Hold: 10 * time.Minute})
}

// try runs an exchange that ends with err and reports whether the breaker let it through.
func try(b *geo.Breaker, err error) (passed bool) {
	b.Do(time.Now(), func() (geo.Reply, error) {
		passed = true
		return geo.Reply{}, err
	})
	return passed
}

func expect(t *testing.T, b *geo.Breaker, want geo.BreakerState, wantRest time.Duration) {
	t.Helper()
	if got, rest := b.State(time.Now()); got != want || rest != wantRest {
		t.Errorf("got state %d for %v, want %d for %v", got, rest, want, wantRest)
	}
}

func TestBreakerCountsFailuresOnly(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want geo.BreakerState
	}{
		{"network errors", errDown, geo.BreakerOpen},
		{"timeouts", fmt.Errorf("look up: %w", context.DeadlineExceeded), geo.BreakerOpen},
		{"rate limits", fmt.Errorf("look up: %w", geo.ErrThrottled), geo.BreakerClosed},
		{"cancelled exchanges", fmt.Errorf("look up: %w", context.Canceled), geo.BreakerClosed},
		{"successes", nil, geo.BreakerClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBreaker()
				for range 5 {
					try(b, c.err)
				}
				if got, _ := b.State(time.Now()); got != c.want {
					t.Errorf("got %d after five of them, want %d", got, c.want)
				}
			})
		})
	}
}

func TestBreakerOpensProbesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		try(b, errDown)
		try(b, errDown)
		try(b, nil) // resets the count
		try(b, errDown)
		try(b, errDown)
		expect(t, b, geo.BreakerClosed, 0)
		try(b, errDown)
		expect(t, b, geo.BreakerOpen, 10*time.Second)
		time.Sleep(4 * time.Second)
		expect(t, b, geo.BreakerOpen, 6*time.Second)
		if try(b, nil) {
			t.Error("an open breaker let an exchange through")
		}
		time.Sleep(6*time.Second + 1)
		expect(t, b, geo.BreakerHalfOpen, 0)
		try(b, errDown)
		expect(t, b, geo.BreakerOpen, 10*time.Second)
		time.Sleep(10*time.Second + 1)
		b.Do(time.Now(), func() (geo.Reply, error) {
			if try(b, nil) {
				t.Error("a half-open breaker let a second exchange through")
			}
			return geo.Reply{}, nil
		})
		expect(t, b, geo.BreakerClosed, 0)
	})
}

func TestForbiddenHoldsBreakerOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		try(b, fmt.Errorf("look up: %w", geo.ErrForbidden))
		expect(t, b, geo.BreakerOpen, 10*time.Minute)
		time.Sleep(9 * time.Minute)
		if try(b, nil) {
			t.Error("an exchange passed during the hold")
		}
		time.Sleep(time.Minute)
		expect(t, b, geo.BreakerClosed, 0)
		if !try(b, nil) {
			t.Error("no exchange passed after the hold")
		}
	})
}

func TestOpenBreakerReturnsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		for range 3 {
			try(b, errDown)
		}
		time.Sleep(3 * time.Second)
		_, err := b.Do(time.Now(), func() (geo.Reply, error) { return geo.Reply{}, nil })
		var refusal *geo.Error
		if !errors.As(err, &refusal) || refusal.Code != geo.CodeProviderUnreachable ||
			refusal.RetryAfter != 7*time.Second {
			t.Errorf("got %v, want provider_unreachable for 7s", err)
		}
	})
}
