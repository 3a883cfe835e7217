package contracts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/providers/sim"
)

// What lookup states are about unless a pact says otherwise.
const (
	KnownQuery   = "8.8.8.8"
	UnknownQuery = "5.255.255.1"
)

// breakerFailures in a row make the service leave the upstream alone.
const breakerFailures = 5

// stateCaller is whom look-ups of states are for: nobody's neighbour.
var stateCaller = netip.MustParseAddr("192.0.2.1")

func lookupStates() []State {
	return []State{
		{"the upstream knows a query", "The upstream has an answer, which is made up and always the same. It has one for every public " +
			"address and every domain but those that the next state names.",
			[]Parameter{{"query", String, KnownQuery, nil, "An address or a domain."}}, nil, parseKnown},
		{"the upstream does not know a query", "The upstream answers that there is nothing: for 5.255.255.0/24, 2a0f:ffff::/32 and " +
			"nxdomain.example.com with all below it.",
			[]Parameter{{"query", String, UnknownQuery, nil, "An address or a domain of those."}}, nil,
			func(a arguments) (setUp, error) { return upstreamSays(a, "fail"), nil }},
		{"the cache holds a query", "Somebody asked the same a moment ago.",
			[]Parameter{{"query", String, KnownQuery, nil, "An address or a domain."}}, nil, parseCached},
	}
}

func queryOf(a arguments) (geo.Query, error) {
	q, fault := geo.ParseQuery(a.text("query"))
	if fault != nil {
		return geo.Query{}, fmt.Errorf("query %s: %s", a.text("query"), fault.Reason)
	}
	return q, nil
}

func parseKnown(a arguments) (setUp, error) {
	_, err := queryOf(a)
	return upstreamSays(a, "success"), err
}

func upstreamSays(a arguments, status string) setUp {
	return func(ctx context.Context, f *fixture) error { return f.expectUpstream(ctx, a.text("query"), status) }
}

// expectUpstream checks that the simulator answers text as it is expected to.
func (f *fixture) expectUpstream(ctx context.Context, text, status string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.upstream+"/json/"+url.PathEscape(text), nil)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err
	}
	var answer struct{ Status string }
	err = json.NewDecoder(response.Body).Decode(&answer)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if answer.Status != status {
		return refusef("query %s: the upstream says %s and not %s", text, answer.Status, status)
	}
	f.simulator.ResetStats()
	return nil
}

func parseCached(a arguments) (setUp, error) {
	q, err := queryOf(a)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, f *fixture) error {
		if f.lookUp(q).Entry == nil {
			return refusef("query %s: there is no answer to keep", a.text("query"))
		}
		return nil
	}, nil
}

func (f *fixture) lookUp(q geo.Query) geo.Outcome {
	return f.system.Lookup(q, stateCaller, time.Now())
}

// inflict makes every exchange with the upstream go wrong.
func (f *fixture) inflict(fault sim.Fault) error {
	return f.simulator.Change(sim.Settings{Faults: []sim.Fault{fault}})
}
