package contracts

import (
	"context"
	"crypto/sha256"
	"sync/atomic"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// Keys returns the keys that sign the access tokens of every Provider. They are fixed, so that a
// pact can contain a token: verifiers do not put state values into form bodies.
func Keys() oauth.Keys { return oauth.Keys{Current: sha256.Sum256([]byte("gatehouse contracts"))} }

// busyStore is the real store with Keys. While busy is set, it rejects operations on tokens and
// reads of tokens and sessions.
type busyStore struct {
	*sqlstore.Store
	busy atomic.Bool
}

// AccessTokenKeys implements oauth.Store.
func (*busyStore) AccessTokenKeys(context.Context) (oauth.Keys, error) { return Keys(), nil }

// Submit implements oauth.Store.
func (s *busyStore) Submit(op oauth.Operation) {
	if s.busy.Load() {
		op.Done(oauth.ErrBusy)
		return
	}
	s.Store.Submit(op)
}

// AccessToken implements oauth.Store.
func (s *busyStore) AccessToken(ctx context.Context, hash oauth.Hash) (*oauth.AccessToken, error) {
	if s.busy.Load() {
		return nil, oauth.ErrBusy
	}
	return s.Store.AccessToken(ctx, hash)
}

// Session implements account.Store.
func (s *busyStore) Session(ctx context.Context, hash [32]byte) (*account.Session, error) {
	if s.busy.Load() {
		return nil, oauth.ErrBusy
	}
	return s.Store.Session(ctx, hash)
}
