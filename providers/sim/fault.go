package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// FaultKind is a kind of fault.
type FaultKind string

// The kinds.
const (
	FaultStatus     FaultKind = "status"      // an HTTP status from 400 to 599
	FaultGarbage    FaultKind = "garbage"     // status 200 and a body that is not JSON
	FaultShortBatch FaultKind = "short_batch" // a batch response without its last element
	FaultBadElement FaultKind = "bad_element" // a batch with wrong types in its middle element
	FaultHang       FaultKind = "hang"        // no response; the connection closes after the delay
	FaultDrop       FaultKind = "drop"        // no response; the connection is closed (TCP FIN)
	FaultReset      FaultKind = "reset"       // no response; the connection is reset (TCP RST)
	FaultSlow       FaultKind = "slow"        // a correct response, after the delay
)

// Endpoint is one of the upstream's two endpoints.
type Endpoint string

// The endpoints.
const (
	EndpointJSON  Endpoint = "json"
	EndpointBatch Endpoint = "batch"
)

// Fault says what goes wrong, at which endpoint and how often. As JSON it is an object with the
// members kind, endpoint, rate, times, status and delay; only kind is required.
type Fault struct {
	Kind     FaultKind
	Endpoint Endpoint // "" = both; FaultShortBatch and FaultBadElement only affect batches
	Rate     float64  // share of the requests that fail, up to 1; 0 = 1, every request
	Times    int      // number of requests that fail; 0 = no limit
	Status   int      // FaultStatus: 400 to 599
	// Delay is the extra latency of FaultSlow and the wait of FaultHang (0 = one minute). With
	// status 429 it is the value of X-Ttl (0 = the end of the budget's window in TierFree).
	Delay time.Duration
}

// errNoRate is the error for an explicit rate of 0 in JSON or text, where a missing rate is 1.
var errNoRate = errors.New("rate: got 0, want above 0 and at most 1")

// Validate returns an error that names the first member out of range.
func (f Fault) Validate() error {
	switch f.Kind {
	case FaultStatus, FaultGarbage, FaultShortBatch, FaultBadElement, FaultHang, FaultDrop,
		FaultReset, FaultSlow:
	default:
		return fmt.Errorf("kind: got %q, want status, garbage, short_batch, bad_element, hang, drop, reset or slow",
			string(f.Kind))
	}
	switch f.Endpoint {
	case "", EndpointJSON, EndpointBatch:
	default:
		return fmt.Errorf("endpoint: got %q, want json or batch", string(f.Endpoint))
	}
	if f.ofBatches() && f.Endpoint == EndpointJSON {
		return fmt.Errorf("endpoint: got json, want batch with %s", f.Kind)
	}
	if !(f.Rate >= 0 && f.Rate <= 1) {
		return fmt.Errorf("rate: got %v, want above 0 and at most 1", f.Rate)
	}
	if f.Times < 0 {
		return fmt.Errorf("times: got %d, want 0 or more", f.Times)
	}
	return f.validateUse()
}

// validateUse checks the members that only some kinds have.
func (f Fault) validateUse() error {
	if f.Kind == FaultStatus && (f.Status < 400 || f.Status > 599) {
		return fmt.Errorf("status: got %d, want 400 to 599", f.Status)
	}
	if f.Kind != FaultStatus && f.Status != 0 {
		return fmt.Errorf("status: got %d, want none with %s", f.Status, f.Kind)
	}
	if f.Delay < 0 {
		return fmt.Errorf("delay: got %v, want 0 or more", f.Delay)
	}
	if f.Kind == FaultSlow && f.Delay == 0 {
		return fmt.Errorf("delay: got none, want one with slow")
	}
	delays := f.Kind == FaultSlow || f.Kind == FaultHang || f.Status == 429
	if f.Delay > 0 && !delays {
		return fmt.Errorf("delay: got %v, want none with %s", f.Delay, f.Kind)
	}
	return nil
}

// ParseFault parses a fault from a command line: the kind, and after commas the members as in JSON:
//
//	status,status=503,rate=0.1    hang,endpoint=batch,delay=5s,times=3
func ParseFault(text string) (Fault, error) {
	kind, rest, more := strings.Cut(text, ",")
	f := Fault{Kind: FaultKind(kind), Rate: 1}
	for more {
		var member string
		member, rest, more = strings.Cut(rest, ",")
		name, value, _ := strings.Cut(member, "=")
		if err := f.set(name, value); err != nil {
			return Fault{}, fmt.Errorf("fault %s: %s: %w", kind, name, err)
		}
	}
	if f.Rate == 0 {
		return Fault{}, fmt.Errorf("fault %s: %w", kind, errNoRate)
	}
	if err := f.Validate(); err != nil {
		return Fault{}, fmt.Errorf("fault %s: %w", kind, err)
	}
	return f, nil
}

func (f *Fault) set(name, value string) (err error) {
	switch name {
	case "endpoint":
		f.Endpoint = Endpoint(value)
	case "rate":
		f.Rate, err = strconv.ParseFloat(value, 64)
	case "times":
		f.Times, err = strconv.Atoi(value)
	case "status":
		f.Status, err = strconv.Atoi(value)
	case "delay":
		f.Delay, err = time.ParseDuration(value)
	default:
		err = fmt.Errorf("no such member, want endpoint, rate, times, status or delay")
	}
	return err
}

// ofBatches reports whether the fault only affects batches.
func (f Fault) ofBatches() bool { return f.Kind == FaultShortBatch || f.Kind == FaultBadElement }

// hits decides, at random if Rate is below 1, whether a request to e fails. before is the number of
// requests that failed already.
func (f Fault) hits(e Endpoint, before int) bool {
	if f.Endpoint != "" && f.Endpoint != e || f.ofBatches() && e != EndpointBatch {
		return false
	}
	if f.Times > 0 && before >= f.Times {
		return false
	}
	return f.Rate >= 1 || rand.Float64() < f.Rate
}
