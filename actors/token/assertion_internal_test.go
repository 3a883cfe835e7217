package token

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

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

// once is a Fetcher that serves an empty key set at first, and then nothing.
type once struct{ served bool }

// Fetch implements Fetcher.
func (o *once) Fetch(context.Context, string, time.Duration, oauth.Payer) ([]byte, error) {
	if o.served {
		return nil, errors.New("no response")
	}
	o.served = true
	return []byte(`{"keys":[]}`), nil
}

// TestStrangersDropNoKeysOfOperators has clients that registered themselves send assertions while the
// server with the keys of an operator's client is away. Those keys are still known.
func TestStrangersDropNoKeysOfOperators(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Fetcher = &once{} })
	now, caller := time.Now(), netip.MustParseAddr("192.0.2.1")
	keys := func(c *oauth.Client, at time.Time) {
		t.Helper()
		if _, err := f.keysOf(t.Context(), c, &oauth.Assertion{}, caller, at); err != nil {
			t.Errorf("%s: got %v, want its keys", c.ID, err)
		}
	}
	operators := &oauth.Client{ID: "o", Options: oauth.ClientOptions{JWKSURI: "https://keys.example/"}}
	keys(operators, now)
	for i := range keySets {
		keys(&oauth.Client{ID: strconv.Itoa(i),
			Options: oauth.ClientOptions{SelfRegistered: true, JWKS: `{"keys":[]}`}}, now)
	}
	keys(operators, now.Add(2*time.Hour))
}
