package sim

import (
	"maps"
	"time"
)

// Stats is what the simulator has seen since the start or the last reset. Requests to its own admin path do not count.
type Stats struct {
	Since    time.Time `json:"since"`
	Requests int64     `json:"requests"` // to /json and /batch, refused ones included
	Singles  int64     `json:"singles"`  // those to /json
	Batches  int64     `json:"batches"`  // those to /batch
	Items    int64     `json:"items"`    // queries that were answered
	Found    int64     `json:"found"`    // those answered with "success"
	NotFound int64     `json:"not_found"`
	Repeats  int64     `json:"repeats"` // successes that had been given less than ten minutes before
	Refused  int64     `json:"refused"` // requests with a wrong key, method or body

	Violations    int64 `json:"violations"`     // the sum of the three below: what a client must never do
	EmptyBudget   int64 `json:"empty_budget"`   // requests sent while the budget was empty, answered with 429
	BatchDomains  int64 `json:"batch_domains"`  // domains in batches
	OversizeBatch int64 `json:"oversize_batch"` // batches of more than 100

	Faults      map[FaultKind]int64 `json:"faults"`        // requests hit, by kind
	InFlight    int                 `json:"in_flight"`     // requests being handled now; never reset
	InFlightMax int                 `json:"in_flight_max"` // the most at once
}

// clone returns a copy that shares nothing.
func (s Stats) clone() Stats {
	s.Faults = maps.Clone(s.Faults)
	return s
}

// fresh returns zero statistics as of now.
func (s Stats) fresh(now time.Time) Stats {
	return Stats{Since: now, Faults: map[FaultKind]int64{}, InFlight: s.InFlight, InFlightMax: s.InFlight}
}

// What is remembered to find repeats: at least the last repeatMemory queries, for repeatWithin.
const (
	repeatWithin = 10 * time.Minute
	repeatMemory = 1 << 18
)

// memory remembers when queries were last answered: in two generations, so that it stays bounded at little cost.
type memory struct {
	young, old map[uint64]int64 // Unix nanoseconds by the query's key
}

// repeats notes that the query was answered at now and reports whether it had been within the time before.
func (m *memory) repeats(key uint64, now time.Time) bool {
	last, known := m.young[key]
	if !known {
		last, known = m.old[key]
	}
	if m.young == nil || len(m.young) >= repeatMemory {
		m.young, m.old = map[uint64]int64{}, m.young
	}
	m.young[key] = now.UnixNano()
	return known && now.Sub(time.Unix(0, last)) < repeatWithin
}
