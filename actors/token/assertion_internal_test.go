package token

import (
	"net/netip"
	"testing"
	"testing/synctest"

	"gatehouse/actors/oauth"
)

// TestStrangersDelayNoOperatorsClient has the clients of 64 networks wait for checks of their
// assertions, more than there is room for. A client of an operator is next, also for a caller in
// one of these networks, and of the others each network has a turn.
func TestStrangersDelayNoOperatorsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProver(nil)
		networks := map[netip.Prefix]bool{}
		var order []string
		next := make(chan struct{})
		enter := func(name string, c *oauth.Client, caller byte) {
			by := payerOfClient(c, netip.AddrFrom4([4]byte{192, 0, 2, caller}))
			if err := p.turns.Enter(t.Context(), by); err != nil {
				return
			}
			order = append(order, name)
			networks[by.Network] = true
			<-next
			p.turns.Leave(by)
		}
		stranger := &oauth.Client{ID: "s", Options: oauth.ClientOptions{SelfRegistered: true}}
		for i := range 64 {
			for range 1 + checksWaiting/32 {
				go enter("stranger", stranger, byte(i))
			}
		}
		synctest.Wait()
		if _, waiting := p.turns.Used(); waiting != checksWaiting {
			t.Errorf("got %d waiting, want a full queue of %d", waiting, checksWaiting)
		}
		go enter("operator", &oauth.Client{ID: "o"}, 0)
		go enter("person", &oauth.Client{ID: "p", Options: stranger.Options}, 100)
		synctest.Wait()
		before := len(order)
		for range 70 {
			next <- struct{}{}
			synctest.Wait()
		}
		if order[before] != "operator" && order[before-1] != "operator" {
			t.Errorf("got %v served next, want the client of an operator", order[before])
		}
		if len(networks) != 65 {
			t.Errorf("got %d networks served in 70 turns, want all 65", len(networks))
		}
		close(next)
	})
}
