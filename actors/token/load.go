package token

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"golang.org/x/sync/singleflight"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// loadTimeout is how long a request waits for its token to be loaded.
const loadTimeout = 2 * time.Second

// again is the verdict of a load whose outcome says nothing about the request: it has to look again.
const again Verdict = -1

type (
	clientRecord = record[string, oauth.Client]
	userRecord   = record[int64, user]
)

// user is what requests need to know of a user.
type user struct {
	disabled bool
	basic    []byte // the profile as JSON
	detailed []byte
}

// loads lets all requests that wait for the same token share one load.
type loads = singleflight.Group

// loaded is the end of a load: the token's actor, or nil with the verdict.
type loaded struct {
	actor   *tokenActor
	verdict Verdict
}

// load reads what the stores say of a token, once for all requests that wait for it. It returns the
// token's actor, to be asked next, or nil with the verdict. first says that the request has not waited
// for a load before: one that it joins may have begun before the request came.
func (s *Service) load(
	ctx context.Context, hash oauth.Hash, stale *tokenActor, now time.Time, first bool,
) (*tokenActor, Verdict) {
	own := false
	ended := s.loads.DoChan(string(hash[:]), func() (any, error) {
		own = true
		return s.loadNow(hash, stale, now), nil
	})
	select {
	case result := <-ended:
		end := result.Val.(loaded)
		if first && !own && end.actor == nil {
			return nil, again // a change since that load began may have altered the verdict
		}
		return end.actor, end.verdict
	case <-ctx.Done():
		return nil, TryLater
	}
}

// loadNow loads a token once there is room. It runs on a goroutine of its own.
func (s *Service) loadNow(hash oauth.Hash, stale *tokenActor, now time.Time) (end loaded) {
	defer func() {
		if recover() != nil {
			s.metrics.panics.Inc()
			s.config.Logger.Error("load of a token panicked", "stack", string(debug.Stack()))
			end = loaded{verdict: TryLater}
		}
	}()
	if !s.inflight.Enter() {
		return loaded{verdict: TryLater}
	}
	defer s.inflight.Leave()
	ctx, cancel := context.WithTimeout(s.lifetime, loadTimeout)
	defer cancel()
	select {
	case s.loading <- struct{}{}:
		defer func() { <-s.loading }()
	case <-ctx.Done():
		return loaded{verdict: TryLater}
	}
	if a := s.directory.find(&hash); a != nil && a != stale {
		return loaded{actor: a, verdict: Admitted} // loaded while this request came here
	}
	for ctx.Err() == nil {
		if a, verdict := s.loadActor(ctx, hash, now); verdict != again {
			return loaded{actor: a, verdict: verdict}
		}
	}
	return loaded{verdict: TryLater}
}

// loadActor reads a token's session and makes its actor, or tells the one that there is. again says
// that the token was revoked meanwhile.
func (s *Service) loadActor(
	ctx context.Context, hash oauth.Hash, now time.Time,
) (*tokenActor, Verdict) {
	a, found := s.directory.reserve(hash)
	defer s.directory.release(a)
	session, verdict := s.readSession(ctx, hash, now)
	switch {
	case found && verdict == TokenInvalid && session == nil:
		s.forget([]oauth.Hash{hash}) // another process has revoked it
		return nil, verdict
	case verdict != Admitted:
		return nil, verdict
	case found:
		a.Tell(&confirmed{read: session.read})
		return a, Admitted
	}
	a.service, a.session, a.seen = s, *session, s.clock(time.Now())
	s.spawner.Spawn(a)
	if !s.directory.insert(a) {
		a.Stop()
		return nil, again
	}
	return a, Admitted
}

// readSession reads a session, with the verdict Admitted when requests may be admitted to it. It is
// nil when the token is unknown or the read failed.
func (s *Service) readSession(
	ctx context.Context, hash oauth.Hash, now time.Time,
) (*session, Verdict) {
	since := s.since(time.Now())
	read := s.clock(time.Now())
	token, err := s.config.Tokens.AccessToken(ctx, hash)
	if err != nil {
		return nil, s.failedRead("read access token", err)
	}
	expires := token.Expires.Unix()
	found := &session{
		expires: expires, lasts: uint32(expires - token.Issued.Unix()), scopes: token.Scopes,
	}
	client, about, err := s.clients.load(ctx, token.ClientID, since)
	if err != nil {
		return nil, s.failedRead("read client of access token", err)
	}
	found.client, found.read = client, min(read, s.clock(about.read))
	disabled := about.value.Disabled
	if token.UserID != 0 {
		u, about, err := s.users.load(ctx, token.UserID, since)
		if err != nil {
			return nil, s.failedRead("read user of access token", err)
		}
		found.user, found.read = u, min(found.read, s.clock(about.read))
		disabled = disabled || about.value.disabled
	}
	switch {
	case now.Unix() >= expires:
		return found, TokenExpired
	case disabled:
		return found, TokenInvalid
	}
	return found, Admitted
}

// readUser reads what requests need to know of a user, or account.ErrNotFound.
func (s *Service) readUser(ctx context.Context, id int64) (user, error) {
	u, err := s.config.Accounts.User(ctx, id)
	if err != nil {
		return user{}, err
	}
	return user{disabled: u.Disabled, basic: u.AppendBasic(nil), detailed: u.AppendDetailed(nil)}, nil
}

// readClient reads a client, or oauth.ErrNotFound.
func (s *Service) readClient(ctx context.Context, id string) (oauth.Client, error) {
	c, err := s.config.Tokens.Client(ctx, id)
	if err != nil {
		return oauth.Client{}, err
	}
	return *c, nil
}

// since returns how old a record may be that is used at now.
func (s *Service) since(now time.Time) time.Time {
	if !s.config.Shared {
		return time.Time{}
	}
	return now.Add(-staleAfter / 2)
}

// failedRead returns what a failed read means to the request.
func (s *Service) failedRead(step string, err error) Verdict {
	if errors.Is(err, oauth.ErrNotFound) || errors.Is(err, account.ErrNotFound) {
		return TokenInvalid
	}
	s.config.Logger.Warn("a request could not be admitted", "step", step, "error", err)
	return TryLater
}

// forget makes sure that no actor admits requests with these access tokens. It is called when the
// store has ended them, before anybody is told of it.
func (s *Service) forget(hashes []oauth.Hash) {
	for _, a := range s.directory.take(hashes) {
		a.Stop()
	}
}

// forgetLater is forget for an end that nobody waits for. It does not hold up the store.
func (s *Service) forgetLater(hashes []oauth.Hash) {
	if len(hashes) == 0 || !s.inflight.Enter() {
		return
	}
	go func() {
		defer s.inflight.Leave()
		s.forget(hashes)
	}()
}

// UserChanged makes every request read a user again, and ends access tokens. It is called when the
// store has acknowledged the change, before anybody is told of it.
func (s *Service) UserChanged(id int64, ended []oauth.Hash) {
	s.users.change(id)
	s.forget(ended)
}
