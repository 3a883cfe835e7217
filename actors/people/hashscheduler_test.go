package people

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/account"
)

// hashTime is the time of a hash in these tests.
const hashTime = 40 * time.Millisecond

var (
	attacker = netip.MustParseAddr("2001:db8::1")
	person   = netip.MustParseAddr("192.0.2.1")
	ann      = &account.User{ID: 7}
)

// stranger and known return contexts of payers.
func stranger(t *testing.T, caller netip.Addr) context.Context {
	return paidBy(t.Context(), &account.User{}, false, caller)
}

func known(t *testing.T, u *account.User) context.Context {
	return paidBy(t.Context(), u, true, attacker)
}

// hash takes a slot for hashTime.
func hash(ctx context.Context, s *hashScheduler) error {
	return s.run(ctx, func() { time.Sleep(hashTime) })
}

// flood starts n goroutines that hash from addresses of one /48 until ctx ends. A refused one tries
// again after 10 ms. They count their hashes.
func flood(ctx context.Context, s *hashScheduler, n int, hashes *atomic.Int64) {
	for i := range n {
		caller := attacker.As16()
		caller[7] = byte(i)
		paying := paidBy(ctx, &account.User{}, false, netip.AddrFrom16(caller))
		go func() {
			for ctx.Err() == nil {
				if hash(paying, s) != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				hashes.Add(1)
			}
		}()
	}
}

// TestFloodOfHashesDelaysNobody floods one slot from a /48 for a minute. Others wait for one hash
// of the flood at most, and the flood gets its CPU time.
func TestFloodOfHashesDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHashScheduler(nil, 1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var hashes atomic.Int64
		begun := time.Now()
		flood(ctx, s, 30, &hashes)
		for name, paying := range map[string]context.Context{
			"a stranger": stranger(t, person), "a known browser": known(t, ann),
			"an operator": t.Context(),
		} {
			for range 10 {
				time.Sleep(time.Second + 7*time.Millisecond)
				asked := time.Now()
				err := hash(paying, s)
				if took := time.Since(asked); err != nil || took > 2*hashTime {
					t.Errorf("%s: got %v after %v, want a hash within %v", name, err, took, 2*hashTime)
				}
			}
		}
		time.Sleep(time.Minute - time.Since(begun))
		most := hashCPUBurst + time.Since(begun)/hashCPUShare + 2*hashTime
		if used := time.Duration(hashes.Load()) * hashTime; used > most || used < most*3/4 {
			t.Errorf("got %v of CPU time in %v, want at most %v and not much less", used,
				time.Since(begun), most)
		}
		stop()
		synctest.Wait()
		time.Sleep(time.Second)
	})
}

// TestSlotIsKeptForKnownBrowsers floods two slots from many networks.
func TestSlotIsKeptForKnownBrowsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHashScheduler(nil, 2)
		for i := range hashQueue + 1 {
			go func() {
				_ = hash(stranger(t, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})), s)
			}()
		}
		synctest.Wait()
		if err := hash(stranger(t, person), s); !errors.Is(err, account.ErrBusy) {
			t.Errorf("a stranger: got %v, want account.ErrBusy", err)
		}
		asked := time.Now()
		if err := hash(known(t, ann), s); err != nil ||
			time.Since(asked) != hashTime {
			t.Errorf("a known browser: got %v after %v, want a slot at once", err, time.Since(asked))
		}
		time.Sleep(time.Minute)
	})
}

// TestQueueOfOnePayerIsBounded refuses a payer's further hashes, which does not take the place of
// others.
func TestQueueOfOnePayerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHashScheduler(nil, 4)
		ended := make(chan error, 100)
		for range 100 {
			go func() { ended <- hash(stranger(t, attacker), s) }()
		}
		synctest.Wait()
		if busy, _ := s.turns.Used(); busy != hashesAtOnce || len(ended) != 100-hashesAtOnce-hashesWaiting {
			t.Errorf("got %d hashes running and %d refused, want %d and %d", busy, len(ended),
				hashesAtOnce, 100-hashesAtOnce-hashesWaiting)
		}
		if s.checkRoom(stranger(t, attacker)) == nil || s.checkRoom(stranger(t, person)) != nil {
			t.Error("got room for the payer or none for another, want the reverse")
		}
		time.Sleep(time.Second)
		for range 100 {
			if err := <-ended; err != nil && !errors.Is(err, account.ErrBusy) {
				t.Error(err)
			}
		}
	})
}

// TestFullLaneMakesRoom fills a lane with several hashes of each payer. A further payer takes the
// place of one of them.
func TestFullLaneMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHashScheduler(nil, 1)
		refused := make(chan error, 100)
		for i := range 10 {
			for range hashesWaiting {
				go func() {
					paying := stranger(t, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
					if err := hash(paying, s); err != nil {
						refused <- err
					}
				}()
			}
		}
		synctest.Wait()
		before := len(refused)
		go func() {
			if err := hash(stranger(t, person), s); err != nil {
				t.Errorf("got %v, want a place in the queue", err)
			}
		}()
		synctest.Wait()
		_, waiting := s.turns.Used()
		if got := len(refused) - before; got != 1 || waiting != hashQueue {
			t.Errorf("got %d more refused and %d waiting, want 1 and %d", got, waiting, hashQueue)
		}
		time.Sleep(time.Minute)
	})
}

// TestAddressesThatComeAgainMakeRoom floods a slot from more addresses than may wait, without a
// pause. Another one always gets a place.
func TestAddressesThatComeAgainMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHashScheduler(nil, 1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for i := range hashQueue + 16 {
			paying := paidBy(ctx, &account.User{}, false, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
			go func() {
				for ctx.Err() == nil {
					if hash(paying, s) != nil {
						time.Sleep(hashTime)
					}
				}
			}()
		}
		time.Sleep(2 * (hashQueue + 16) * hashTime) // each has had a hash
		for i := range 10 {
			asked := time.Now()
			err := hash(stranger(t, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})), s)
			if took := time.Since(asked); err != nil || took > (hashQueue+2)*hashTime {
				t.Errorf("got %v after %v, want a hash within %v", err, took, (hashQueue+2)*hashTime)
			}
		}
		stop()
		time.Sleep(time.Minute)
	})
}

// TestCallerMayStopWaiting ends the request of a hash that waits, and of one that has its slot.
func TestCallerMayStopWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHashScheduler(nil, 1)
		go func() { _ = hash(stranger(t, attacker), s) }()
		synctest.Wait()
		ctx, leave := context.WithCancel(stranger(t, person))
		left := make(chan error, 1)
		go func() { left <- hash(ctx, s) }()
		synctest.Wait()
		leave()
		err := <-left
		if _, waiting := s.turns.Used(); !errors.Is(err, context.Canceled) || waiting != 0 {
			t.Errorf("got %v and %d waiting, want the end of its context and none", err, waiting)
		}
		time.Sleep(time.Second)
		if busy, _ := s.turns.Used(); busy != 0 {
			t.Errorf("got %d slots in use, want none", busy)
		}
	})
}

// TestKnownBrowsersPayThemselves uses up the CPU time of an office's address. Known browsers there
// are served, also more than the address may use.
func TestKnownBrowsersPayThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHashScheduler(nil, 2)
		for s.checkRoom(stranger(t, attacker)) == nil {
			if err := hash(stranger(t, attacker), s); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 200 {
			if err := hash(known(t, &account.User{ID: int64(i + 1)}), s); err != nil {
				t.Fatalf("person %d: got %v, want a hash", i+1, err)
			}
		}
	})
}
