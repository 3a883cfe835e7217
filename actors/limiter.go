package actors

import (
	"context"

	"gatehouse/actors/oauth"
)

// limits are the access tokens in use: the directory of their actors and what these share.
type limits struct{}

// newLimits starts the limits of s. stop ends them.
func newLimits(s *Identity) (*limits, error) { return &limits{}, nil }

// stop refuses new requests and ends the sweeper, before the actor system is shut down.
func (l *limits) stop(ctx context.Context) error { return nil }

// forget makes sure, after the store has ended these access tokens and before anybody is told so, that no actor honours them.
func (s *Identity) forget(hashes []oauth.Hash) {}
