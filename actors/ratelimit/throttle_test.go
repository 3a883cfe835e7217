package ratelimit_test

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/ratelimit"
)

var (
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	here  = netip.MustParseAddr("192.0.2.1")
	there = netip.MustParseAddr("192.0.2.2")
)

func TestThrottleLimitsEachCaller(t *testing.T) {
	th := ratelimit.NewThrottle(3, 10*time.Second, 100)
	for _, c := range []struct {
		name   string
		caller netip.Addr
		after  time.Duration
		want   time.Duration
	}{
		{"first of the burst", here, 0, 0},
		{"second", here, 0, 0},
		{"third", here, 0, 0},
		{"after the burst", here, 0, 10 * time.Second},
		{"another address", there, 0, 0},
		{"the same as IPv6", netip.MustParseAddr("::ffff:192.0.2.1"), 0, 10 * time.Second},
		{"later", here, 4 * time.Second, 6 * time.Second},
		{"one interval later", here, 10 * time.Second, 0},
		{"one more", here, 10 * time.Second, 10 * time.Second},
		{"an hour later", here, time.Hour, 0},
		{"a whole burst again", here, time.Hour, 0},
	} {
		if got := th.Take(c.caller, noon.Add(c.after)); got != c.want {
			t.Errorf("%s: got %v to wait, want %v", c.name, got, c.want)
		}
	}
}

// TestThrottleLimitsIPv6Networks uses up the burst of a /64, then twice as much in its /56 and four
// times as much in its /48.
func TestThrottleLimitsIPv6Networks(t *testing.T) {
	th := ratelimit.NewThrottle(1, 8*time.Second, 100)
	for _, c := range []struct {
		caller string
		want   time.Duration
	}{
		{"2001:db8::1", 0},
		{"2001:db8::ffff:1", 8 * time.Second}, // the same /64
		{"2001:db8:0:1::1", 0},
		{"2001:db8:0:2::1", 4 * time.Second}, // the same /56
		{"2001:db8:0:100::1", 0},
		{"2001:db8:0:200::1", 0},
		{"2001:db8:0:300::1", 2 * time.Second}, // the same /48
		{"2001:db8:1::1", 0},
	} {
		if got := th.Take(netip.MustParseAddr(c.caller), noon); got != c.want {
			t.Errorf("%s: got %v to wait, want %v", c.caller, got, c.want)
		}
	}
	th.Forgive(netip.MustParseAddr("2001:db8:0:100::1"))
	if th.Take(netip.MustParseAddr("2001:db8:0:300::1"), noon) != 0 {
		t.Error("got a wait, want room in the /48 after an attempt was forgiven")
	}
}

// TestThrottleMemoryIsBounded lets a million IPv4 addresses fail, and one IPv6 /48 for each 64 of
// them.
func TestThrottleMemoryIsBounded(t *testing.T) {
	const size, flood = 10_000, 1_000_000
	th := ratelimit.NewThrottle(20, 6*time.Second, size)
	var v4 [4]byte
	v6 := [16]byte{0x20, 0x01}
	for i := range uint32(flood) {
		now := noon.Add(time.Duration(i) * time.Microsecond)
		binary.BigEndian.PutUint32(v4[:], 1<<24+i)
		th.Take(netip.AddrFrom4(v4), now)
		if i%64 == 0 {
			binary.BigEndian.PutUint32(v6[2:6], i)
			th.Take(netip.AddrFrom16(v6), now)
		}
	}
	if got := th.Remembered(); got != 3*size {
		t.Errorf("got %d callers in memory, want %d", got, 3*size)
	}
}

func TestThrottleForgetsOldestCallers(t *testing.T) {
	th := ratelimit.NewThrottle(1, time.Hour, 10)
	address := func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	}
	for i := range 1000 {
		th.Take(address(i), noon)
	}
	for i := 999; i >= 980; i-- {
		if remembered := th.Take(address(i), noon) > 0; remembered != (i >= 990) {
			t.Errorf("caller %d: got remembered %v, want the last ten only", i, remembered)
		}
	}
}

func TestThrottleCountsSimultaneousAttempts(t *testing.T) {
	th := ratelimit.NewThrottle(5, time.Minute, 10)
	var taken atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			if th.Take(here, noon) == 0 {
				taken.Add(1)
			}
		})
	}
	callers.Wait()
	if taken.Load() != 5 {
		t.Errorf("got %d attempts, want 5", taken.Load())
	}
	th.Forgive(here)
	if th.Take(here, noon) != 0 || th.Take(here, noon) == 0 {
		t.Error("got none or two attempts for one that was forgiven")
	}
}
