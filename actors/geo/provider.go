package geo

import (
	"context"
	"errors"
	"time"
)

// Source names what answered a query, as in the header X-Geo-Source.
type Source string

// The sources.
const (
	SourceUpstream Source = "upstream" // an online provider
	SourceMMDB     Source = "mmdb"     // offline database files
	SourceSim      Source = "sim"      // the upstream simulator
)

// Provider answers queries about addresses and domains. Its methods may be called by many goroutines at once and
// return when ctx ends at the latest.
//
// A returned error says that the exchange as a whole failed: it wraps ErrThrottled, ErrForbidden or the context's
// error, and is a plain failure of the upstream otherwise. Reply.Quota is valid beside an error.
type Provider interface {
	// Terms says how the provider wants to be asked. It is the same on every call.
	Terms() Terms
	// Single asks about one address or domain; Reply.Answers has one element.
	Single(ctx context.Context, q Query) (Reply, error)
	// Batch asks about 1 to Terms().BatchSize addresses at once; Reply.Answers has one element a query, in their order.
	Batch(ctx context.Context, qs []Query) (Reply, error)
}

// Terms is how a provider wants to be asked.
type Terms struct {
	Source Source
	// SinglesPerMinute and BatchesPerMinute are the known budgets of a window of 60 s; 0 = none known: requests are
	// paced only by what Quota says.
	SinglesPerMinute, BatchesPerMinute int
	BatchSize                          int           // queries a batch, at least 1
	Gather                             time.Duration // without a budget: how long a miss waits for company
	LacksReverse                       bool          // whether the results of a batch come without Network.Reverse
}

// Reply is the outcome of one exchange with a provider.
type Reply struct {
	Answers []Answer
	Quota   Quota
}

// Answer is a result, or the *Error that stands in its place.
type Answer struct {
	Result Result
	Err    *Error
}

// Quota is what the upstream said of its budget for the endpoint that was asked. The zero value says nothing.
type Quota struct {
	Known     bool
	Remaining int           // requests left in the current window
	Reset     time.Duration // until the window ends, in whole seconds as the upstream counts them
}

// What the error of an exchange may wrap. Anything else is a failure: the upstream is down, slow or talks nonsense.
var (
	ErrThrottled = errors.New("the upstream refuses: its rate limit is reached")  // HTTP 429
	ErrForbidden = errors.New("the upstream refuses: key or address not allowed") // HTTP 403
)
