package account

import (
	"context"
	"time"
)

// Limits on the logouts that wait for one client, in all and of one user. Further ones are lost.
const (
	MaxLogouts       = 10_000
	MaxLogoutsOfUser = MaxSessions
)

// Logout is the end of a session that a client is still to be told of (OpenID Connect Back-Channel
// Logout section 2).
type Logout struct {
	ID       string // the jti of its tokens
	ClientID string
	UserID   int64
	SID      string // as in ClientSession
	Created  time.Time
	Attempts int
}

// LogoutQueue says how many logouts wait for a client.
type LogoutQueue struct {
	ClientID string
	Waiting  int
	Due      time.Time // of the first attempt that is due
}

// LogoutStore keeps the logouts that clients are still to be told of. Its methods may be called by
// many goroutines.
type LogoutStore interface {
	// LogoutQueues returns the clients that logouts wait for.
	LogoutQueues(ctx context.Context) ([]LogoutQueue, error)
	// Logouts returns up to limit logouts of a client that are due at now, the longest due first.
	Logouts(ctx context.Context, clientID string, now time.Time, limit int) ([]Logout, error)
	// DelayLogout counts an attempt that has failed. The next one is due at a time.
	DelayLogout(ctx context.Context, id string, due time.Time) error
	// EndLogout deletes a logout. It returns nil if there is no such logout.
	EndLogout(ctx context.Context, id string) error
}
