package contracts

import (
	"context"
	"sync/atomic"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// busyStore is the real store. While busy is set, it rejects operations on codes and tokens, and
// reads of clients and sessions, and clients that register themselves.
type busyStore struct {
	*sqlstore.Store
	busy atomic.Bool
}

// Submit implements oauth.Store.
func (s *busyStore) Submit(op oauth.Operation) {
	if s.busy.Load() {
		op.Done(oauth.ErrBusy)
		return
	}
	s.Store.Submit(op)
}

// Client implements oauth.Store.
func (s *busyStore) Client(ctx context.Context, id string) (*oauth.Client, error) {
	if s.busy.Load() {
		return nil, oauth.ErrBusy
	}
	return s.Store.Client(ctx, id)
}

// RegisterClient implements oauth.Store.
func (s *busyStore) RegisterClient(
	ctx context.Context, c *oauth.Client, r oauth.Registrant,
) ([]oauth.EndedClient, error) {
	if s.busy.Load() {
		return nil, oauth.ErrBusy
	}
	return s.Store.RegisterClient(ctx, c, r)
}

// Session implements account.Store.
func (s *busyStore) Session(ctx context.Context, hash [32]byte) (*account.Session, error) {
	if s.busy.Load() {
		return nil, oauth.ErrBusy
	}
	return s.Store.Session(ctx, hash)
}
