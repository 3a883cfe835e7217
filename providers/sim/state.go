package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// state is the mutable state of a Server. Server.mu guards it.
type state struct {
	settings Settings
	struck   []int // requests hit by each of settings.Faults
	budgets  map[Endpoint]budget
	stats    Stats
	recent   recent
}

// verdict says how to respond to a request.
type verdict struct {
	wrongKey bool
	metered  bool // quota is set
	quota    quota
	pause    time.Duration
	fault    Fault // Kind is "" for no fault
}

func newState(s Settings, now time.Time) state {
	return state{settings: s, struck: make([]int, len(s.Faults)), budgets: map[Endpoint]budget{},
		stats: Stats{}.fresh(now)}
}

// admit counts a request to e and decides how to respond.
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

// strike returns the fault for a request to e; its Kind is "" for no fault.
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

// answered counts the answers to a request. A domain in a batch is a violation.
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
		if s.recent.repeats(a.key, now) {
			s.stats.Repeats++
		}
	}
}

// Settings returns the current settings, with defaults for zero values.
func (s *Server) Settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.settings.complete()
}

// Change replaces the settings, beginning with the next request. The windows of the budgets
// continue; the counts for Fault.Times start again. If it returns an error, from Validate, nothing
// has changed.
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

// ResetStats resets the statistics and the queries that are remembered for Stats.Repeats.
func (s *Server) ResetStats() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.stats = s.state.stats.fresh(time.Now())
	s.state.recent = recent{}
}

// Reset restores the settings of the Config, and resets the statistics and budgets.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	inFlight := s.state.stats
	s.state = newState(s.started.complete(), time.Now())
	s.state.stats = inFlight.fresh(time.Now())
}
