package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// settingsJSON is Settings as JSON. A missing or null member is nil.
type settingsJSON struct {
	Tier             *Tier        `json:"tier"`
	Window           *string      `json:"window"`
	SinglesPerWindow *int         `json:"singles_per_window"`
	BatchesPerWindow *int         `json:"batches_per_window"`
	Latency          *string      `json:"latency"`
	Jitter           *string      `json:"jitter"`
	Faults           *[]faultJSON `json:"faults"`
}

// faultJSON is Fault as JSON.
type faultJSON struct {
	Kind     FaultKind `json:"kind"`
	Endpoint Endpoint  `json:"endpoint,omitempty"`
	Rate     *float64  `json:"rate"`
	Times    int       `json:"times,omitempty"`
	Status   int       `json:"status,omitempty"`
	Delay    string    `json:"delay,omitempty"`
}

// MarshalJSON returns all settings, with defaults for zero values.
func (s Settings) MarshalJSON() ([]byte, error) {
	s = s.complete()
	window, latency, jitter := s.Window.String(), s.Latency.String(), s.Jitter.String()
	faults := make([]faultJSON, len(s.Faults))
	for i, f := range s.Faults {
		faults[i] = faultJSON{Kind: f.Kind, Endpoint: f.Endpoint, Rate: &f.Rate, Times: f.Times,
			Status: f.Status}
		if f.Delay > 0 {
			faults[i].Delay = f.Delay.String()
		}
	}
	return json.Marshal(settingsJSON{&s.Tier, &window, &s.SinglesPerWindow, &s.BatchesPerWindow,
		&latency, &jitter, &faults})
}

// UnmarshalJSON changes the settings that the object names; faults are replaced as a whole. Its
// error names the member that is unknown or out of range, and leaves s unchanged.
func (s *Settings) UnmarshalJSON(text []byte) error {
	var read settingsJSON
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return explain(err)
	}
	changed := *s
	if err := read.apply(&changed); err != nil {
		return err
	}
	if err := changed.Validate(); err != nil {
		return err
	}
	*s = changed
	return nil
}

func (r settingsJSON) apply(s *Settings) error {
	if r.Tier != nil {
		s.Tier = *r.Tier
	}
	for _, d := range []struct {
		name string
		from *string
		to   *time.Duration
	}{{"window", r.Window, &s.Window}, {"latency", r.Latency, &s.Latency}, {"jitter",
		r.Jitter, &s.Jitter}} {
		if err := readDuration(d.name, d.from, d.to); err != nil {
			return err
		}
	}
	if r.Window != nil && s.Window == 0 {
		return errors.New("window: got 0, want more")
	}
	for _, n := range []struct {
		name     string
		from, to *int
	}{{"singles_per_window", r.SinglesPerWindow, &s.SinglesPerWindow}, {"batches_per_window",
		r.BatchesPerWindow, &s.BatchesPerWindow}} {
		if n.from == nil {
			continue
		}
		if *n.from < 1 {
			return fmt.Errorf("%s: got %d, want 1 or more", n.name, *n.from)
		}
		*n.to = *n.from
	}
	return r.applyFaults(s)
}

func (r settingsJSON) applyFaults(s *Settings) error {
	if r.Faults == nil {
		return nil
	}
	s.Faults = make([]Fault, len(*r.Faults))
	for i, f := range *r.Faults {
		s.Faults[i] = Fault{Kind: f.Kind, Endpoint: f.Endpoint, Rate: 1, Times: f.Times,
			Status: f.Status}
		if f.Rate != nil {
			s.Faults[i].Rate = *f.Rate
		}
		if s.Faults[i].Rate == 0 {
			return fmt.Errorf("faults[%d]: %w", i, errNoRate)
		}
		if f.Delay == "" {
			continue
		}
		if err := readDuration("delay", &f.Delay, &s.Faults[i].Delay); err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	return nil
}

func readDuration(name string, from *string, to *time.Duration) error {
	if from == nil {
		return nil
	}
	read, err := time.ParseDuration(*from)
	if err != nil {
		return fmt.Errorf("%s: got %q, want a duration such as 250ms", name, *from)
	}
	*to = read
	return nil
}

// explain rewrites an error of encoding/json with the names of the members.
func explain(err error) error {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s: got a JSON %s", cmp.Or(wrong.Field, "settings"), wrong.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown member %s", name)
	}
	return err
}
