package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// state is all that changes; Server.mu guards it.
type state struct {
	settings Settings
	struck   []int // how often each of settings.Faults has hit
	budgets  map[Endpoint]budget
	stats    Stats
	memory   memory
}

// verdict is how a request will be treated.
type verdict struct {
	wrongKey bool
	metered  bool // quota holds
	quota    quota
	pause    time.Duration
	fault    Fault // Kind is "" without one
}

func newState(s Settings, now time.Time) state {
	return state{settings: s, struck: make([]int, len(s.Faults)), budgets: map[Endpoint]budget{}, stats: Stats{}.fresh(now)}
}

// admit counts a request to e and decides about it.
func (s *state) admit(e Endpoint, rightKey bool, now time.Time) verdict {
	s.count(e)
	v := verdict{pause: s.pause()}
	switch s.settings.Tier {
	case TierPro:
		if v.wrongKey = !rightKey; v.wrongKey {
			s.stats.Refused++
			return v
		}
	case TierFree:
		v.metered = true
		s.budgets[e], v.quota = s.budgets[e].take(now, s.settings.perWindow(e), s.settings.Window)
		if !v.quota.ok {
			s.stats.EmptyBudget++
			s.stats.Violations++
			return v
		}
	}
	v.fault = s.strike(e)
	return v
}

func (s *state) count(e Endpoint) {
	s.stats.Requests++
	if e == EndpointBatch {
		s.stats.Batches++
	} else {
		s.stats.Singles++
	}
	s.stats.InFlight++
	s.stats.InFlightMax = max(s.stats.InFlightMax, s.stats.InFlight)
}

func (s *state) pause() time.Duration {
	d := s.settings.Latency
	if s.settings.Jitter > 0 {
		d += rand.N(s.settings.Jitter)
	}
	return d
}

// strike returns the fault that hits a request to e, if any.
func (s *state) strike(e Endpoint) Fault {
	for i, f := range s.settings.Faults {
		if f.hits(e, s.struck[i]) {
			s.struck[i]++
			s.stats.Faults[f.Kind]++
			return f
		}
	}
	return Fault{}
}

// answered counts what a request was told. In a batch a domain is a violation.
func (s *state) answered(e Endpoint, answers []answer, now time.Time) {
	s.stats.Items += int64(len(answers))
	for _, a := range answers {
		if a.domain && e == EndpointBatch {
			s.stats.BatchDomains++
			s.stats.Violations++
		}
		if a.message != "" {
			s.stats.NotFound++
			continue
		}
		s.stats.Found++
		if s.memory.repeats(a.key, now) {
			s.stats.Repeats++
		}
	}
}

// Settings returns the current settings, with the defaults filled in.
func (s *Server) Settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.settings.complete()
}

// Change puts new settings in the place of the old from the next request on. The windows of the budgets go on; the
// count of each fault's Times begins anew. It returns Validate's error, and then changes nothing.
func (s *Server) Change(settings Settings) error {
	if err := settings.Validate(); err != nil {
		return fmt.Errorf("change settings: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(settings.complete())
	return nil
}

func (s *Server) change(settings Settings) {
	s.state.settings = settings
	s.state.struck = make([]int, len(settings.Faults))
}

// Stats returns the statistics.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.stats.clone()
}

// ResetStats sets the statistics to zero and forgets which queries were asked.
func (s *Server) ResetStats() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.stats = s.state.stats.fresh(time.Now())
	s.state.memory = memory{}
}

// Reset goes back to the settings given at the start, with zero statistics and fresh budgets.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	inFlight := s.state.stats
	s.state = newState(s.started.complete(), time.Now())
	s.state.stats = inFlight.fresh(time.Now())
}
