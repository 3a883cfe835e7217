package actors

import (
	"context"
	"errors"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// loadPatience bounds how long a request waits for its session to be read.
const loadPatience = 2 * time.Second

// again is the verdict of a load after which the token has an actor that knows enough.
const again Verdict = -1

// load reads what the stores say of a token, once for all who ask at the same time. The request at now looks for the token's
// actor anew after again; every other verdict is final. stale is the actor that asked for it; nil = there is none.
func (l *limits) load(ctx context.Context, hash *oauth.Hash, stale *limitActor, now time.Time) Verdict {
	done, first := l.directory.join(hash)
	if !first {
		select {
		case <-done:
			return again
		case <-ctx.Done():
			return TryLater
		}
	}
	defer l.directory.part(hash, done)
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return TryLater
	}
	if l.directory.find(hash) != stale {
		return again // it was loaded while this request came here
	}
	for ctx.Err() == nil {
		if verdict, settled := l.settle(ctx, hash, stale, now); settled {
			return verdict
		}
	}
	return TryLater
}

// settle reads the session and tells the actor, or makes one. False says that a revocation came in between.
func (l *limits) settle(ctx context.Context, hash *oauth.Hash, stale *limitActor, now time.Time) (Verdict, bool) {
	epoch := l.directory.epoch(hash)
	session, verdict := l.read(ctx, hash, now)
	switch {
	case verdict == TokenInvalid && stale != nil && session == nil:
		l.identity.forget([]oauth.Hash{*hash}) // another process has revoked it
		return verdict, true
	case verdict != again:
		return verdict, true
	case stale != nil:
		l.identity.root.Send(stale.mailbox.self(), &confirmed{read: session.read})
		return again, true
	}
	pid := l.identity.root.Spawn(l.props)
	l.identity.root.Send(pid, &begin{hash: *hash, session: *session})
	door := &introduction{}
	l.identity.root.Send(pid, door)
	if !l.directory.insert(door.actor, epoch) {
		l.identity.root.Stop(pid)
		return TryLater, false
	}
	return again, true
}

// read reads a session, to which requests may be admitted with the verdict again. The session is nil when the token is unknown.
func (l *limits) read(ctx context.Context, hash *oauth.Hash, now time.Time) (*session, Verdict) {
	read := time.Now()
	token, err := l.identity.config.Tokens.AccessToken(ctx, *hash)
	if err != nil {
		return nil, l.failed("read access token", err)
	}
	s := &session{expires: token.Expires.Unix(), lasts: uint32(token.Expires.Unix() - token.Issued.Unix()), scopes: token.Scopes, read: l.clock(read)}
	client, err := l.identity.clientEntry(ctx, token.ClientID, read)
	if err != nil {
		return nil, l.failed("read client of access token", err)
	}
	s.client = client.state
	s.read -= time.Duration(max(0, read.UnixNano()-client.readAt.Load()))
	disabled := s.client.client.Load().Disabled
	if token.UserID != 0 {
		if s.user, err = l.users.load(ctx, token.UserID, l.since(read)); err != nil {
			return nil, l.failed("read user of access token", err)
		}
		user := s.user.current.Load()
		if user == nil { // changed a moment ago: the actor will find out
			return s, again
		}
		disabled = disabled || user.disabled
		s.read = min(s.read, l.clock(user.read))
	}
	switch {
	case now.Unix() >= s.expires:
		return s, TokenExpired
	case disabled:
		return s, TokenInvalid
	}
	return s, again
}

// since returns how old what is read at now may be.
func (l *limits) since(now time.Time) time.Time {
	if !l.shared {
		return time.Time{}
	}
	return now.Add(-staleAfter / 2)
}

// failed returns what a failed read means to the request.
func (l *limits) failed(step string, err error) Verdict {
	if errors.Is(err, oauth.ErrNotFound) || errors.Is(err, account.ErrNotFound) {
		return TokenInvalid
	}
	l.identity.config.Logger.Warn("a request could not be admitted", "step", step, "error", err)
	return TryLater
}
