package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"

	"gatehouse/actors/oauth"
)

// TestFullNetworksMakeRoom has a host that does not respond while 16 networks fill all places of
// strangers. The request of one more network takes the place of another, and has its turn.
func TestFullNetworksMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), Timeout)
		defer cancel()
		payer := func(network int) oauth.Payer {
			addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(network)})
			return oauth.Payer{ID: fmt.Sprint("network ", network), Network: netip.PrefixFrom(addr, 32)}
		}
		leaveFirst, err := f.enter(ctx, "slow.example", payer(0))
		if err != nil {
			t.Fatal(err)
		}
		type result struct {
			network int
			err     error
		}
		results := make(chan result, 100)
		enter := func(network int) {
			go func() {
				leave, err := f.enter(ctx, "slow.example", payer(network))
				results <- result{network, err}
				if err == nil {
					leave()
				}
			}()
		}
		for i := range maxWaiting {
			enter(1 + i/maxOfPayer)
		}
		synctest.Wait()
		if len(results) > 0 {
			t.Fatalf("got %+v, want all to wait", <-results)
		}
		const newcomer = 1 + maxWaiting/maxOfPayer
		enter(newcomer)
		synctest.Wait()
		if len(results) != 1 {
			t.Fatalf("got %d that do not wait any more, want one", len(results))
		}
		if r := <-results; r.network == newcomer || !errors.Is(r.err, oauth.ErrBusy) {
			t.Errorf("got %+v, want one of the networks that have four", r)
		}
		leaveFirst()
		synctest.Wait()
		served := map[int]int{}
		for len(results) > 0 {
			if r := <-results; r.err == nil {
				served[r.network]++
			}
		}
		if served[newcomer] != 1 || len(served) != newcomer {
			t.Errorf("got %v served by network, want each", served)
		}
	})
}
