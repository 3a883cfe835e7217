package geo

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"
)

// Source names the origin of an answer, as in the header X-Geo-Source.
type Source string

// The sources.
const (
	SourceUpstream Source = "upstream" // an online provider
	SourceMMDB     Source = "mmdb"     // offline database files
	SourceSim      Source = "sim"      // the upstream simulator
)

// sources has every source; cache entries hold its index.
var sources = [...]Source{SourceUpstream, SourceMMDB, SourceSim}

// IsKnown reports whether s is one of the sources.
func (s Source) IsKnown() bool { return slices.Contains(sources[:], s) }

// Provider looks up addresses and domains. Its methods may be called by many goroutines and return
// when ctx ends at the latest.
//
// An error says that the whole exchange failed. It wraps ErrThrottled, ErrForbidden or the
// context's error; any other error is a failure of the upstream. Reply.Quota is valid with an error
// too.
type Provider interface {
	// Terms returns the provider's limits. They are the same on every call.
	Terms() Terms
	// Single looks up one address or domain. Reply.Answers has one element.
	Single(ctx context.Context, q Query) (Reply, error)
	// Batch looks up 1 to Terms().BatchSize addresses. Reply.Answers has one element for each, in
	// their order.
	Batch(ctx context.Context, qs []Query) (Reply, error)
}

// callerKey is the context key of WithCaller.
type callerKey struct{}

// WithCaller returns a context for Provider.Single that says for whom it looks up. A provider may
// limit what one caller takes.
func WithCaller(ctx context.Context, caller netip.Prefix) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerOf returns the caller of WithCaller, or the zero Prefix.
func CallerOf(ctx context.Context) netip.Prefix {
	caller, _ := ctx.Value(callerKey{}).(netip.Prefix)
	return caller
}

// Terms holds the limits and properties of a provider.
type Terms struct {
	Source Source
	// SinglesPerMinute and BatchesPerMinute are the known budgets of a window of 60 s. With 0 no
	// budget is known, and only Quota limits the requests.
	SinglesPerMinute, BatchesPerMinute int
	BatchSize                          int           // queries a batch, at least 1
	Gather                             time.Duration // without a budget: wait to fill a batch
	LacksReverse                       bool          // batch results have no Network.Reverse
}

// Reply is the outcome of one exchange with a provider.
type Reply struct {
	Answers []Answer
	Quota   Quota
}

// Answer is a result, or the error about one query.
type Answer struct {
	Result Result
	Err    *Error
}

// Quota is what the upstream reported about the budget of the endpoint. The zero value is no
// report.
type Quota struct {
	Known     bool
	Remaining int           // requests left in the current window
	Reset     time.Duration // until the window ends, in whole seconds
}

// Errors that the error of an exchange may wrap. Any other error is a failure: the upstream is
// down, slow, or its response is malformed.
var (
	ErrThrottled = errors.New("the upstream refuses: its rate limit is reached")  // HTTP 429
	ErrForbidden = errors.New("the upstream refuses: key or address not allowed") // HTTP 403
)
