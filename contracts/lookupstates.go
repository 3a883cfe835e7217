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
			[]Parameter{{"query", String, KnownQuery, nil, "An address or a domain."}}, nil, checkQuery,
			func(ctx context.Context, w *world, a arguments) error {
				return w.expectUpstream(ctx, a.text("query"), "success")
			}},
		{"the upstream does not know a query", "The upstream answers that there is nothing: for 5.255.255.0/24, 2a0f:ffff::/32 and " +
			"nxdomain.example.com with all below it.",
			[]Parameter{{"query", String, UnknownQuery, nil, "An address or a domain of those."}}, nil, nil,
			func(ctx context.Context, w *world, a arguments) error {
				return w.expectUpstream(ctx, a.text("query"), "fail")
			}},
		{"the cache holds a query", "Somebody asked the same a moment ago.",
			[]Parameter{{"query", String, KnownQuery, nil, "An address or a domain."}}, nil, checkQuery, fillCache},
	}
}

func checkQuery(a arguments) error {
	if _, fault := geo.ParseQuery(a.text("query")); fault != nil {
		return fmt.Errorf("query %s: %s", a.text("query"), fault.Reason)
	}
	return nil
}

// expectUpstream checks that the simulator answers text as it is expected to.
func (w *world) expectUpstream(ctx context.Context, text, status string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.upstream+"/json/"+url.PathEscape(text), nil)
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
	w.simulator.ResetStats()
	return nil
}

func fillCache(_ context.Context, w *world, a arguments) error {
	if outcome, err := w.look(a.text("query")); err != nil {
		return err
	} else if outcome.Entry == nil {
		return refusef("query %s: there is no answer to keep", a.text("query"))
	}
	return nil
}

// look looks text up; only a malformed one is an error.
func (w *world) look(text string) (geo.Outcome, error) {
	q, fault := geo.ParseQuery(text)
	if fault != nil {
		return geo.Outcome{}, fmt.Errorf("query %s: %s", text, fault.Reason)
	}
	return w.system.Lookup(q.String(), func() netip.Addr { return stateCaller }, time.Now()), nil
}

// inflict makes every exchange with the upstream go wrong.
func (w *world) inflict(f sim.Fault) error {
	return w.simulator.Change(sim.Settings{Faults: []sim.Fault{f}})
}
