package actors

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"gatehouse/actors/oauth"
)

// recordAge is how long a record is believed that another process may change.
const recordAge = time.Second

// clientMailbox bounds the asks that wait for one client's actor.
const clientMailbox = 4096

// clients are the clients in use. A registered one stays once it was asked for; an unknown id is never remembered.
type clients struct {
	mu      sync.RWMutex
	entries map[string]*clientEntry
	epoch   uint64 // grows with every change: a row that was read before one is not believed after it

	change chan struct{} // holds a token while an operator's change is under way
}

// clientEntry is a client in use: its shared record and its actor.
type clientEntry struct {
	state  *clientState
	pid    *actor.PID
	readAt atomic.Int64 // Unix nanoseconds; used when other processes write as well
}

func newClients() *clients {
	return &clients{entries: make(map[string]*clientEntry), change: make(chan struct{}, 1)}
}

func (c *clients) get(id string) (*clientEntry, uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[id], c.epoch
}

// clientState returns the shared record of a client, or oauth.ErrNotFound.
func (s *Identity) clientState(ctx context.Context, id string, now time.Time) (*clientState, error) {
	e, err := s.clientEntry(ctx, id, now)
	if err != nil {
		return nil, err
	}
	return e.state, nil
}

// clientEntry returns the client with that id, from the store if it is not in use yet, or oauth.ErrNotFound.
func (s *Identity) clientEntry(ctx context.Context, id string, now time.Time) (*clientEntry, error) {
	for {
		e, epoch := s.clients.get(id)
		if e != nil {
			return e, s.refresh(ctx, e, now)
		}
		record, err := s.config.Tokens.Client(ctx, id)
		if err != nil {
			return nil, err
		}
		if e := s.insertClient(record, epoch, now); e != nil {
			return e, nil
		}
	}
}

// insertClient puts a client in use whose record was read at that epoch, unless another did. It returns nil when records have
// changed since.
func (s *Identity) insertClient(record *oauth.Client, epoch uint64, now time.Time) *clientEntry {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	if e := s.clients.entries[record.ID]; e != nil {
		return e
	}
	if s.clients.epoch != epoch {
		return nil
	}
	e := &clientEntry{state: &clientState{}}
	e.state.client.Store(record)
	e.readAt.Store(now.UnixNano())
	e.pid = s.root.Spawn(s.props(&clientActor{
		state: e.state, store: s.config.Tokens, keys: &s.keys, lifetimes: s.config.Lifetimes,
	}, clientMailbox))
	s.clients.entries[record.ID] = e
	return e
}

// refresh reads a record again that another process may have changed; one of all callers does it.
func (s *Identity) refresh(ctx context.Context, e *clientEntry, now time.Time) error {
	readAt := e.readAt.Load()
	if !s.config.Shared || now.UnixNano()-readAt < int64(recordAge) || !e.readAt.CompareAndSwap(readAt, now.UnixNano()) {
		return nil
	}
	id := e.state.client.Load().ID
	_, epoch := s.clients.get(id)
	record, err := s.config.Tokens.Client(ctx, id)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		s.dropClient(id)
	case err != nil:
		e.readAt.CompareAndSwap(now.UnixNano(), readAt)
	default:
		s.clients.mu.Lock()
		defer s.clients.mu.Unlock()
		if s.clients.epoch == epoch {
			e.state.client.Store(record)
		}
	}
	return err
}

// swapClient makes a record that was just written the one that everybody sees, unless what another process wrote upon it has been read
// already.
func (s *Identity) swapClient(record *oauth.Client) {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	s.clients.epoch++
	if e := s.clients.entries[record.ID]; e != nil && e.state.client.Load().Version <= record.Version {
		e.state.client.Store(record)
	}
}

// dropClient takes a client that was deleted out of use; who still holds its record finds it disabled.
func (s *Identity) dropClient(id string) {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	s.clients.epoch++
	e := s.clients.entries[id]
	if e == nil {
		return
	}
	delete(s.clients.entries, id)
	deleted := *e.state.client.Load()
	deleted.Disabled = true
	e.state.client.Store(&deleted)
	s.root.Stop(e.pid)
}
