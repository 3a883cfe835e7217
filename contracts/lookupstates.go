package contracts

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/cmd/stack"
	"gatehouse/providers/sim"
)

// The default queries of states.
const (
	KnownQuery   = "8.8.8.8"
	UnknownQuery = "5.255.255.1"
)

// breakerFailures is the number of failures in a row that open the breaker.
const breakerFailures = 5

// stateCaller is the client address of lookups that states make. No other client has it.
var stateCaller = netip.MustParseAddr("192.0.2.1")

func lookupStates() []State {
	return []State{
		{"the upstream knows a query",
			"The upstream has a result for the query. Results are invented and always the same. There is one for every public " +
				"address and every domain, except those of the next state.",
			[]Parameter{{"query", String, KnownQuery, nil, "An IP address or a domain."}}, nil,
			parseKnown},
		{"the upstream does not know a query",
			"The upstream reports that nothing is known. That holds for 5.255.255.0/24, 2a0f:ffff::/32, " +
				"nxdomain.example.com and its subdomains.",
			[]Parameter{{"query", String, UnknownQuery, nil, "One of those addresses or domains."}},
			nil,
			func(a arguments) (setUp, error) { return upstreamSays(a, "fail"), nil }},
		{"the cache holds a query", "Someone has looked up the same query.",
			[]Parameter{{"query", String, KnownQuery, nil, "An IP address or a domain."},
				{"age", Integer, 0, nil, "Seconds since then, at most 300."}}, nil,
			parseCached},
		{"offline files know an address",
			"The service has a database file with 81.2.69.0/24 and 2a02:da80::/29, which responds where the upstream has no budget or is too slow. " +
				"A state that caches a query comes after it.",
			nil, nil, always(useOfflineFile)},
		{"lookups need a key", "No lookup is served without an API key, of which there is none.",
			nil, nil, always(requireKeys)},
	}
}

// offlineFile is a database in MaxMind's format with all members that results can have.
//
//go:embed offline.mmdb
var offlineFile []byte

func useOfflineFile(ctx context.Context, f *fixture) error {
	name := filepath.Join(f.folder, "offline.mmdb")
	if err := os.WriteFile(name, offlineFile, 0o600); err != nil {
		return err
	}
	return f.restart(ctx, func(c *stack.Config) {
		lookups := *c.Lookups
		lookups.Files.Files = []string{name}
		c.Lookups = &lookups
	})
}

func requireKeys(ctx context.Context, f *fixture) error {
	return f.restart(ctx, func(c *stack.Config) {
		lookups := *c.Lookups
		lookups.KeysRequired = true
		c.Lookups = &lookups
	})
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
	return func(ctx context.Context,
		f *fixture) error {
		return f.expectUpstream(ctx, a.text("query"), status)
	}
}

// expectUpstream returns an error unless the simulator's response for text has a status.
func (f *fixture) expectUpstream(ctx context.Context, text, status string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		f.UpstreamURL+"/json/"+url.PathEscape(text), nil)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err
	}
	var got struct{ Status string }
	err = json.NewDecoder(response.Body).Decode(&got)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if got.Status != status {
		return stateErrorf("query %s: the upstream says %s and not %s", text, got.Status, status)
	}
	f.Simulator.ResetStats()
	return nil
}

func parseCached(a arguments) (setUp, error) {
	q, err := queryOf(a)
	if err != nil {
		return nil, err
	}
	age := time.Duration(a.number("age")) * time.Second
	return func(ctx context.Context, f *fixture) error {
		for _, n := range f.nodes { // each has a cache
			entry := n.lookUp(q).Entry
			if entry == nil {
				return stateErrorf("query %s: there is no result to cache", a.text("query"))
			}
			now := time.Now()
			f.values["cached_at"] = now.Add(-entry.Copy(now).Age - age)
			if age > 0 {
				if err := f.restartWith(ctx, q, entry, age); err != nil {
					return err
				}
				break
			}
		}
		f.values["cached_query"] = a.text("query")
		return nil
	}, a.within("age", 0, 300)
}

// restartWith restarts the nodes with one result in their caches, which is older by age: a cache
// file has it.
func (f *fixture) restartWith(ctx context.Context, q geo.Query, entry *geo.Entry,
	age time.Duration) error {
	now := time.Now()
	older := entry.Copy(now)
	older.Age += age
	entry, err := geo.EntryOf(q, older, now)
	if err != nil {
		return err
	}
	cache, err := geo.NewCache(1)
	if err != nil {
		return err
	}
	cache.Put(q, entry)
	var text bytes.Buffer
	file := filepath.Join(f.folder, "cache")
	if err := errors.Join(cache.Save(&text, f.CacheOrigin(), now),
		os.WriteFile(file, text.Bytes(), 0o600)); err != nil {
		return err
	}
	return f.restart(ctx, func(c *stack.Config) {
		lookups := *c.Lookups
		lookups.CacheFile = file
		c.Lookups = &lookups
	})
}

func (n *node) lookUp(q geo.Query) geo.Outcome {
	from := func() lookup.Origin { return lookup.Origin{Caller: stateCaller} }
	return n.Lookups.Lookup(q.String(), from, time.Now())
}

// inflict breaks every exchange with the upstream.
func (f *fixture) inflict(fault sim.Fault) error {
	return f.Simulator.Change(sim.Settings{Faults: []sim.Fault{fault}})
}
