package contracts

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sim"
)

func troubleStates() []State {
	return []State{
		{"the caller asks from an address",
			"Requests come from that address, as if a trusted proxy had sent it in X-Forwarded-For.",
			[]Parameter{{"address", String, KnownQuery, nil, "An IP address."}}, nil, parseCaller},
		{"the upstream's budget is empty",
			"The upstream rejects requests for a while. The service still responds to cached and invalid queries.",
			[]Parameter{{"seconds", Integer, 30, nil, "Until it accepts requests again, 1 to 60."}},
			nil, parseBudget},
		{"the upstream is down",
			"The upstream fails. The service still responds to cached and invalid queries.", nil,
			nil, always(breakUpstream)},
		{"the upstream has been down for a while",
			"The upstream has failed so often that the service stops asking it for a while, and says for how long.",
			nil, nil, always(openBreaker)},
		{"the geolocation service is overloaded",
			"There is no capacity for queries that are not cached.", nil, nil,
			always(stopLookups)},
		{"the identity service is busy",
			"There is no capacity to read or write codes, tokens and sessions.", nil, nil,
			always(func(_ context.Context, f *fixture) error { f.busy = true; return nil })},
		{"this address has failed to authenticate too often",
			"The caller's address has sent so many wrong client secrets that the next one is rejected for a while.",
			nil, nil, always(sendWrongSecrets)},
	}
}

func parseCaller(a arguments) (setUp, error) {
	address, err := netip.ParseAddr(a.text("address"))
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	return func(_ context.Context, f *fixture) error {
		f.caller = address.String()
		return nil
	}, nil
}

func parseBudget(a arguments) (setUp, error) {
	delay := time.Duration(a.number("seconds")) * time.Second
	return func(_ context.Context, f *fixture) error {
		return f.inflict(sim.Fault{Kind: sim.FaultStatus, Status: http.StatusTooManyRequests,
			Delay: delay})
	}, a.within("seconds", 1, 60)
}

func breakUpstream(_ context.Context, f *fixture) error {
	return f.inflict(sim.Fault{Kind: sim.FaultStatus, Status: http.StatusBadGateway})
}

func openBreaker(ctx context.Context, f *fixture) error {
	if err := breakUpstream(ctx, f); err != nil {
		return err
	}
	for i := 0; ; i++ { // each node has a breaker, and asks the upstream for its part of the queries
		closed := slices.IndexFunc(f.nodes, func(n *node) bool { return !n.breakerIsOpen() })
		if closed < 0 {
			return nil
		}
		q, fault := geo.ParseQuery(fmt.Sprintf("9.9.%d.%d", i>>8, i&0xff))
		if fault != nil {
			return fault
		}
		f.nodes[0].lookUp(q)
	}
}

func stopLookups(_ context.Context, f *fixture) error {
	for _, n := range f.nodes {
		n.StopLookups()
	}
	return nil
}

// becomeBusy makes the store busy before a request. An authorization is only refused in a redirect
// when the client is in memory.
func (f *fixture) becomeBusy(r *http.Request) error {
	if f.client != nil && r.URL.Path == authorizePath && !f.store.busy.Load() {
		for _, n := range f.nodes {
			if _, err := n.Tokens.Client(r.Context(), f.client.ID); err != nil {
				return err
			}
		}
	}
	for _, n := range f.nodes {
		n.store.busy.Store(true)
	}
	return nil
}

// sendWrongSecrets uses up the caller's attempts until half a minute from now, or at each node of a
// cluster for now.
func sendWrongSecrets(ctx context.Context, f *fixture) error {
	caller := f.callerAddress()
	later := time.Now().Add(30 * time.Second)
	if f.cluster != nil {
		later = time.Now() // a node of a cluster decides while its lease is valid
	}
	request := &oauth.TokenRequest{Grant: oauth.ClientCredentialsGrant,
		Credentials: oauth.Credentials{ClientID: DefaultClientID, Secret: "wrong", Caller: caller}}
	return f.untilBusy(1000, func(n *node) *oauth.Error {
		_, fault := n.Tokens.Token(ctx, request, later)
		return fault
	})
}

// untilBusy repeats a request until each node refuses it for now.
func (f *fixture) untilBusy(most int, request func(*node) *oauth.Error) error {
	for _, n := range f.nodes {
		left := most
		for fault := request(n); fault == nil || fault.Code != oauth.TemporarilyUnavailable; left-- {
			if left == 0 {
				return fmt.Errorf("got %d requests accepted, want the last one refused", most)
			}
			fault = request(n)
		}
	}
	return nil
}

// callerAddress returns the address that requests come from.
func (f *fixture) callerAddress() netip.Addr {
	if f.caller != "" {
		return netip.MustParseAddr(f.caller)
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
