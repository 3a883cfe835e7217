package sim

import (
	"fmt"
	"slices"
	"time"
)

// Tier is the upstream's plan that the simulator follows.
type Tier string

// The tiers.
const (
	TierOpen Tier = "open" // no key and no budget; the default
	TierFree Tier = "free" // budgets, told in X-Rl and X-Ttl; over them 429
	TierPro  Tier = "pro"  // no budget, but the parameter key must be right: else 403
)

// Settings is what can be changed while the simulator runs. The zero value is TierOpen, no latency and no faults, with
// the upstream's own budgets for TierFree.
//
// As JSON it is an object of the members below, durations as strings that Go's time package reads:
//
//	{"tier":"free","window":"1m0s","singles_per_window":45,"batches_per_window":15,
//	 "latency":"20ms","jitter":"5ms","faults":[{"kind":"hang","rate":0.01,"delay":"5s"}]}
type Settings struct {
	Tier             Tier
	Window           time.Duration // length of a budget window; 0 = 60 s
	SinglesPerWindow int           // TierFree: requests to /json in a window; 0 = 45
	BatchesPerWindow int           // TierFree: requests to /batch in a window; 0 = 15
	Latency          time.Duration // before each answer
	Jitter           time.Duration // up to that much more, evenly spread
	// Faults are tried in order at each request that the tier lets through; the first that hits is the only one.
	Faults []Fault
}

// Validate returns an error that names the first setting out of its range.
func (s Settings) Validate() error {
	switch s.Tier {
	case "", TierOpen, TierFree, TierPro:
	default:
		return fmt.Errorf("tier: got %q, want open, free or pro", string(s.Tier))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"window", s.Window}, {"latency", s.Latency}, {"jitter", s.Jitter}} {
		if d.value < 0 {
			return fmt.Errorf("%s: got %v, want 0 or more", d.name, d.value)
		}
	}
	if s.SinglesPerWindow < 0 {
		return fmt.Errorf("singles_per_window: got %d, want 1 or more", s.SinglesPerWindow)
	}
	if s.BatchesPerWindow < 0 {
		return fmt.Errorf("batches_per_window: got %d, want 1 or more", s.BatchesPerWindow)
	}
	for i, f := range s.Faults {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	return nil
}

// complete returns a copy with the defaults in place of zero values.
func (s Settings) complete() Settings {
	if s.Tier == "" {
		s.Tier = TierOpen
	}
	if s.Window == 0 {
		s.Window = time.Minute
	}
	if s.SinglesPerWindow == 0 {
		s.SinglesPerWindow = 45
	}
	if s.BatchesPerWindow == 0 {
		s.BatchesPerWindow = 15
	}
	s.Faults = slices.Clone(s.Faults)
	for i := range s.Faults {
		if s.Faults[i].Rate == 0 {
			s.Faults[i].Rate = 1
		}
	}
	return s
}

func (s Settings) perWindow(e Endpoint) int {
	if e == EndpointBatch {
		return s.BatchesPerWindow
	}
	return s.SinglesPerWindow
}
