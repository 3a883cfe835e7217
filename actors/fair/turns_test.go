package fair_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gatehouse/actors/fair"
)

// payer returns the payer of "a/x" in class 1, and of "!a/x" in class 0: network a and key x.
func payer(name string) fair.Payer {
	rest, trusted := strings.CutPrefix(name, "!")
	network, key, _ := strings.Cut(rest, "/")
	p := fair.Payer{Class: 1, Key: key,
		Network: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, network[0]}), 32)}
	if trusted {
		p.Class = 0
	}
	return p
}

// TestTurns has payers wait, in that order, while another has the slot. It checks the order of
// their turns, and who is dropped.
func TestTurns(t *testing.T) {
	for _, row := range []struct{ what, wait, order, dropped string }{
		{"networks, and then keys", "a/x a/x a/x a/y b/z", "a/x b/z a/y a/x a/x", ""},
		{"the trusted class has every second turn", "a/x b/x c/x d/x !e/x !f/x", "!e/x a/x !f/x b/x c/x d/x", ""},
		{"a smaller network takes the place of a larger one's newest",
			"a/x a/x a/x a/y a/z b/x c/x d/x e/x", "a/y b/x c/x d/x e/x a/z", "a/x a/x a/x"},
		{"the largest takes no place", "a/x a/x a/x b/x b/x c/x a/y", "a/x b/x c/x a/x b/x a/x", "a/y"},
		{"nor one of as many", "a/x b/x c/x d/x e/x f/x g/x", "a/x b/x c/x d/x e/x f/x", "g/x"},
		{"the one that was served last", "f/x e/x d/x c/x b/x served/x a/x", "f/x e/x d/x c/x b/x a/x",
			"served/x"},
		{"a payer has a limit", "a/x a/x a/x a/x a/x b/x", "a/x b/x a/x a/x", "a/x a/x"},
		{"each class has its own room", "a/x b/x c/x d/x e/x f/x !a/x", "!a/x a/x b/x c/x d/x e/x f/x", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			turns := fair.NewTurns(1, fair.Class{Waiting: 6}, fair.Class{Waiting: 6, Own: 3})
			if err := turns.Enter(t.Context(), payer("served/x")); err != nil {
				t.Fatal(err)
			}
			var order, dropped []string
			next := make(chan struct{})
			for _, name := range strings.Fields(row.wait) {
				go func() {
					if err := turns.Enter(t.Context(), payer(name)); err != nil {
						dropped = append(dropped, name)
						return
					}
					order = append(order, name)
					<-next
					turns.Leave(payer(name))
				}()
				synctest.Wait()
			}
			turns.Leave(payer("served/x"))
			for synctest.Wait(); len(order)+len(dropped) < len(strings.Fields(row.wait)); synctest.Wait() {
				next <- struct{}{}
			}
			close(next)
			slices.Sort(dropped)
			if got := strings.Join(order, " "); got != row.order {
				t.Errorf("%s: got the order %s, want %s", row.what, got, row.order)
			}
			if got := strings.Join(dropped, " "); got != row.dropped {
				t.Errorf("%s: got %q dropped, want %q", row.what, got, row.dropped)
			}
		})
	}
}

// TestTurnsReserve checks that others leave a slot to the trusted class, that a payer has a limit
// of slots, and that one that stops to wait leaves nothing behind.
func TestTurnsReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := fair.NewTurns(3, fair.Class{Waiting: 9}, fair.Class{Waiting: 9, AtOnce: 1})
		enter := func(name string) {
			if err := turns.Enter(t.Context(), payer(name)); err != nil {
				t.Fatal(err)
			}
		}
		enter("a/x")
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error)
		for _, name := range []string{"a/x", "b/x", "c/x"} {
			go func() { stopped <- turns.Enter(ctx, payer(name)) }()
			synctest.Wait()
		}
		if busy, waiting := turns.Used(); busy != 2 || waiting != 2 {
			t.Errorf("got %d slots in use and %d waiting, want 2 and 2", busy, waiting)
		}
		enter("!z/x")
		stop()
		for want := range 3 {
			if err := <-stopped; want == 0 && err != nil || want > 0 && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		for _, name := range []string{"a/x", "b/x", "!z/x"} {
			turns.Leave(payer(name))
		}
		if busy, waiting := turns.Used(); busy != 0 || waiting != 0 {
			t.Errorf("got %d slots in use and %d waiting, want none", busy, waiting)
		}
	})
}
