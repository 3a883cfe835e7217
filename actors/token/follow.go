package token

import (
	"context"
	"fmt"
	"time"

	"gatehouse/actors/oauth"
)

const (
	// followEvery is how often a process reads what others that share its database have changed.
	followEvery = 500 * time.Millisecond
	// followWithin is how long ago that may be. Later, a process cannot know which tokens have
	// ended.
	followWithin = 2 * time.Second
	// readAllTimeout is how long reading everything may take, while tokens are refused.
	readAllTimeout = time.Minute
	// followLimit is how many changes are read at a time.
	followLimit = 1000
)

// IsCurrent reports whether this process knows what has ended, so that it admits access tokens.
func (s *Service) IsCurrent() bool { return s.isCurrent(time.Now()) }

// ToleratesOutage reports whether access tokens are admitted for a while without the store.
func (s *Service) ToleratesOutage() bool { return s.config.OtherWriters && s.config.Stale > 0 }

// isCurrent reports whether this process knows at now what has ended.
func (s *Service) isCurrent(now time.Time) bool {
	switch {
	case !s.config.OtherWriters:
		return true
	case s.config.Peers == nil:
		return s.followDelay(now) <= followWithin+s.config.Stale
	}
	return s.config.Peers.Decides(now) ||
		s.config.Stale > 0 && s.followDelay(now) <= followWithin+s.config.Stale
}

// followDelay returns how old the knowledge of changes by other processes is.
func (s *Service) followDelay(now time.Time) time.Duration {
	return s.clock(now) - time.Duration(s.followed.at.Load())
}

// follow reads the changes of other processes until the Service stops.
func (s *Service) follow() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	state := following
	for {
		select {
		case <-s.lifetime.Done():
			return
		case <-tick.C:
		}
		_, err := s.Follow(s.lifetime)
		if s.lifetime.Err() != nil {
			return
		}
		if now := s.followState(); now != state {
			state = now
			s.logFollowing(state, err)
		}
	}
}

// followState says how outdated the knowledge of a process is.
type followState int

const (
	following followState = iota
	stale                 // and Config.Stale allows it
	refusing
)

func (s *Service) followState() followState {
	now := time.Now()
	switch {
	case !s.isCurrent(now):
		return refusing
	case s.followDelay(now) > followWithin:
		return stale
	}
	return following
}

func (s *Service) logFollowing(state followState, err error) {
	switch {
	case state == following:
		s.config.Logger.Info("changes by other processes can be read again")
	case state == stale:
		s.config.Logger.Warn("changes by other processes cannot be read: tokens that they end are admitted",
			"for", s.config.Stale, "error", err)
	case err == nil: // a node without a lease, or a process that stood still
		s.config.Logger.Warn("access tokens are refused: this process does not know all changes yet")
	default:
		s.config.Logger.Error("access tokens are refused until changes by other processes can be read",
			"error", err)
	}
}

// Follow applies what was changed since the last time, and returns the number of the last change
// that it has applied.
func (s *Service) Follow(ctx context.Context) (last int64, err error) {
	s.followed.mu.Lock()
	defer s.followed.mu.Unlock()
	err = s.readChanges(ctx)
	return s.followed.number, err
}

// Reload reads everything again, and returns the number of the last change that it knows.
func (s *Service) Reload(ctx context.Context) (last int64, err error) {
	s.followed.mu.Lock()
	defer s.followed.mu.Unlock()
	err = s.readAllAgain(ctx)
	return s.followed.number, err
}

// readChanges applies what was changed since the last time.
func (s *Service) readChanges(ctx context.Context) error {
	began := time.Now()
	if s.followDelay(began) > oauth.ChangesKept/2 {
		return s.readAllAgain(ctx) // some changes may be gone
	}
	reading, cancel := context.WithTimeout(ctx, followWithin)
	defer cancel()
	for {
		last, changes, err := s.config.Tokens.Changes(reading, s.followed.number, followLimit)
		if err != nil {
			return fmt.Errorf("read changes: %w", err)
		}
		if last < s.followed.number {
			return s.readAllAgain(ctx) // the database has lost changes
		}
		for i := range changes {
			if changes[i].Number != s.followed.number+1 {
				return s.readAllAgain(ctx) // those between are gone
			}
			if err := s.apply(reading, &changes[i]); err != nil {
				return err
			}
			s.followed.number = changes[i].Number
		}
		if len(changes) < followLimit && s.followed.number < last {
			return s.readAllAgain(ctx) // the latest are gone
		}
		if len(changes) < followLimit {
			s.followed.at.Store(int64(s.clock(began)))
			return nil
		}
	}
}

func (s *Service) readAllAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readAllTimeout)
	defer cancel()
	return s.readAll(ctx)
}

// readAll reads what has ended, all keys and declared claims, and makes every request read its records again. Keys
// and records are read after the number of the last change, so that no change between the reads is
// lost.
func (s *Service) readAll(ctx context.Context) error {
	began := time.Now()
	last, ended, err := s.config.Tokens.Ends(ctx, began)
	if err != nil {
		return fmt.Errorf("read revocations: %w", err)
	}
	s.refuse(ended, nil)
	if err := s.readKeys(ctx); err != nil {
		return err
	}
	if err := s.readClaims(ctx); err != nil {
		return err
	}
	s.resources.changes.Add(1)
	s.clients.changeAll()
	s.users.changeAll()
	s.followed.number = last
	s.followed.at.Store(int64(s.clock(began)))
	return nil
}

// apply makes this process apply a change.
func (s *Service) apply(ctx context.Context, c *oauth.Change) error {
	switch {
	case c.End != nil:
		s.ended.add(c.End)
	case c.UserID != 0:
		s.users.change(c.UserID)
	case c.ClientID != "":
		s.clients.change(c.ClientID)
	case c.Keys != "":
		return s.readKeys(ctx)
	case c.Claims:
		s.resources.changes.Add(1)
		return s.readClaims(ctx)
	}
	return nil
}
