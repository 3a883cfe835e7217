package audit

import (
	"context"
	"time"
)

// Filter selects events. Its zero fields select all.
type Filter struct {
	After    int64 // only events with a greater number
	Before   int64 // only events with a smaller number; 0 = no limit
	Since    time.Time
	UserID   int64
	ClientID string // as subject, as target or as actor
	Action   Action
	Newest   bool // the newest first; false = in their order
	Limit    int  // at least 1
}

// MaxRows is how many rows the trail gets in an hour of one subject, action, outcome and target
// that come from one network. Further events are counted in one more row, which gets a new number
// with each of them, and the details of all. What operators do always has rows of its own.
const MaxRows = 100

// Store keeps the trail.
type Store interface {
	// Record writes the events of ctx (see With) in a transaction of their own.
	Record(ctx context.Context) error
	Reader
}

// Reader reads the trail.
type Reader interface {
	// Events returns the events that f selects.
	Events(ctx context.Context, f Filter) ([]Event, error)
}
