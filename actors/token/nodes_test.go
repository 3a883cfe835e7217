package token_test

import (
	"net/netip"
	"testing"
	"time"

	"gatehouse/actors/token"
)

// nodes are the Nodes of two services for one limit: the first one counts, and the other asks it.
type nodes struct {
	asks  bool // of the second service
	count *func(request []byte, now time.Time) []byte
}

func (n nodes) Serve(limit string, count func([]byte, time.Time) []byte) {
	if !n.asks && limit == "wrong_secrets" {
		*n.count = count
	}
}

func (n nodes) Ask(_ string, _, request []byte) ([]byte, bool) {
	if !n.asks {
		return nil, false
	}
	return (*n.count)(request, time.Now()), true
}

func (n nodes) Tell(_ string, _, _ []byte, here func()) { here() }

// TestWrongSecretsAtTwoNodes guesses a secret at two nodes in turn.
func TestWrongSecretsAtTwoNodes(t *testing.T) {
	count := new(func([]byte, time.Time) []byte)
	var both [2]*fixture
	for i := range both {
		both[i] = newFixture(t, func(c *token.Config) { c.Nodes = nodes{i == 1, count} })
	}
	now, wrong := time.Now(), 0
	for i := range 40 {
		f := both[i%2]
		r := f.ownRequest()
		r.Secret, r.Caller = "guess", netip.MustParseAddr("192.0.2.1")
		if _, fault := f.Token(t.Context(), r, now); !fault.Throttled {
			wrong++
		}
	}
	if wrong < 20 || wrong > 22 { // time passes: one more a second
		t.Errorf("got %d guesses at both nodes, want 20", wrong)
	}
}
