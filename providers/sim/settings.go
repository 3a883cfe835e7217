package sim

import (
	"fmt"
	"slices"
	"time"
)

// Tier is the tier of the upstream that is simulated.
type Tier string

// The tiers.
const (
	TierOpen Tier = "open" // no key and no budget; the default
	TierFree Tier = "free" // budgets with headers X-Rl and X-Ttl, and status 429 beyond them
	TierPro  Tier = "pro"  // no budget; status 403 without the right parameter key
)

// Settings can be changed while the simulator runs. The zero value is TierOpen without latency and
// faults, and the upstream's budgets for TierFree.
//
// As JSON it is an object with the members below. Durations are strings in Go's format:
//
//	{"tier":"free","window":"1m0s","singles_per_window":45,"batches_per_window":15,
//	 "latency":"20ms","jitter":"5ms","faults":[{"kind":"hang","rate":0.01,"delay":"5s"}]}
type Settings struct {
	Tier             Tier
	Window           time.Duration // length of a budget window; 0 = 60 s
	SinglesPerWindow int           // TierFree: requests to /json in a window; 0 = 45
	BatchesPerWindow int           // TierFree: requests to /batch in a window; 0 = 15
	Latency          time.Duration // added to each response
	Jitter           time.Duration // maximum extra latency, uniformly distributed
	// Faults are tried in order for each request that the tier accepts. At most one fault applies.
	Faults []Fault
}

// Validate returns an error that names the first setting out of range.
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

// complete returns a copy with defaults for zero values.
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
