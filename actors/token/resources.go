package token

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// resourcesFresh is how long this process uses the resources that it has read.
const resourcesFresh = time.Second

// resourceCache has the registered resources, which are few.
type resourceCache struct {
	reads   singleflight.Group
	current atomic.Pointer[resourceSet]
	changes atomic.Int64 // by this process
}

// resourceSet is the result of one read.
type resourceSet struct {
	*oauth.Resources
	read    time.Time
	changes int64 // before the read
}

// Resources returns the registered resources. What another process has changed may be a second old.
func (s *Service) Resources(ctx context.Context) (*oauth.Resources, error) {
	c := &s.resources
	for {
		known := c.current.Load()
		if known != nil && known.changes == c.changes.Load() &&
			time.Since(known.read) < resourcesFresh {
			return known.Resources, nil
		}
		own := false
		_, err, _ := c.reads.Do("", func() (any, error) {
			own = true
			changes, now := c.changes.Load(), time.Now()
			all, err := s.config.Tokens.Resources(ctx)
			if err == nil {
				issuer := s.config.Issuer
				c.current.Store(&resourceSet{oauth.NewResources(issuer, all), now, changes})
			}
			return nil, err
		})
		if err != nil && (own || ctx.Err() != nil) {
			return nil, fmt.Errorf("read resources: %w", err)
		}
	}
}

// Issuer returns the base URL of the service, without a trailing slash.
func (s *Service) Issuer() string { return s.config.Issuer }

// CreateResource registers a resource. The error is a *oauth.RegistrationError, oauth.ErrConflict
// if there is one with that URI, or a failure.
func (s *Service) CreateResource(
	ctx context.Context, r oauth.Resource, now time.Time,
) (oauth.Resource, error) {
	r.Created = now
	if err := r.CheckRegistration(); err != nil {
		return r, err
	}
	known, err := s.Resources(ctx)
	if err != nil {
		return r, err
	}
	if known.Has(r.URI) {
		return r, fmt.Errorf("create resource: %w", &oauth.TakenError{URI: r.URI})
	}
	defer s.resources.changes.Add(1)
	ctx = audit.With(ctx, audit.Event{Action: audit.ResourceCreated, Target: r.URI,
		Data: audit.Data{audit.After: recorded(&r)}})
	if err := s.config.Tokens.CreateResource(ctx, &r); err != nil {
		return r, fmt.Errorf("create resource: %w", err)
	}
	return r, nil
}

// PutResource registers a resource, or replaces the one with its URI as oauth.Resource.ReplacedBy
// says. With dry it only checks. The errors are those of CreateResource, and oauth.ErrDeclared.
func (s *Service) PutResource(
	ctx context.Context, r oauth.Resource, dry bool, now time.Time,
) (put oauth.Resource, created bool, err error) {
	if err := r.CheckRegistration(); err != nil {
		return r, false, err
	}
	s.resources.changes.Add(1) // read what another process has changed
	known, err := s.Resources(ctx)
	if err != nil {
		return r, false, err
	}
	old, exists := known.At(r.URI)
	switch {
	case !exists && dry:
		return r, true, nil
	case !exists:
		put, err = s.CreateResource(ctx, r, now)
		return put, true, err
	case old.Declared:
		return r, false, oauth.ErrDeclared
	}
	next := old.ReplacedBy(&r)
	if dry || reflect.DeepEqual(*next, old) {
		return *next, false, nil
	}
	defer s.resources.changes.Add(1)
	ctx = ofResourceChange(ctx, &old, next)
	if err := s.config.Tokens.ReplaceResource(ctx, &old, next); err != nil {
		return r, false, fmt.Errorf("replace resource: %w", err)
	}
	return *next, false, nil
}

// ofResourceChange returns a context whose next write records that old is replaced by next.
func ofResourceChange(ctx context.Context, old, next *oauth.Resource) context.Context {
	return audit.With(ctx, audit.Event{Action: audit.ResourceChanged, Target: next.URI,
		Details: []string{"scopes"}, Data: audit.Data{audit.Before: recorded(old),
			audit.After: recorded(next)}})
}

// recorded returns what the audit trail says of a resource.
func recorded(r *oauth.Resource) audit.Data {
	data := audit.Data{"scopes": r.Scopes}
	if r.Name != "" {
		data["name"] = r.Name
	}
	if len(r.Texts) > 0 {
		data["scope_texts"] = r.Texts
	}
	return data
}

// DeleteResource deletes a resource, or returns oauth.ErrNotFound. Its tokens end with it: at once
// in this process, and within a second in others.
func (s *Service) DeleteResource(ctx context.Context, r oauth.Resource) error {
	if r.Declared {
		return oauth.ErrDeclared
	}
	defer s.resources.changes.Add(1)
	ctx = audit.With(ctx, audit.Event{Action: audit.ResourceDeleted, Target: r.URI,
		Data: audit.Data{audit.Before: recorded(&r)}})
	if err := s.config.Tokens.DeleteResource(ctx, r.Number); err != nil {
		return fmt.Errorf("delete resource: %w", err)
	}
	return nil
}

// Declare makes clients and resources what the server's own files say, at once in this process. The
// errors are those of oauth.Store.Declare.
func (s *Service) Declare(
	ctx context.Context, sets []*oauth.DeclaredSet,
) ([]oauth.Declared, error) {
	done, err := s.config.Tokens.Declare(ctx, sets)
	s.resources.changes.Add(1)
	for _, d := range done {
		for _, id := range d.Clients {
			s.clients.change(id)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("declare: %w", err)
	}
	return done, s.confirm()
}

// narrow returns the targets of the access token for a grant, or sets m.fault. names are the scopes
// that the request asks for; nil = all.
func (m *tokenAsk) narrow(names []string) oauth.Targets {
	if m.resources == nil {
		return nil
	}
	targets, fault := m.resources.Narrow(m.granted.details.Targets, m.client, m.request.Resources,
		names)
	m.fault = fault
	return targets
}

// direct makes the access token one for targets.
func (m *tokenAsk) direct(targets oauth.Targets) {
	m.access.SetTargets(targets)
	if m.resources != nil {
		m.response.ResourceScopes = m.resources.ScopeNames(targets)
	}
}

// hasFewerScopes reports whether the access token has fewer scopes of resources than the grant.
func (m *tokenAsk) hasFewerScopes() bool {
	return m.resources != nil &&
		len(m.response.ResourceScopes) < len(m.resources.ScopeNames(m.granted.details.Targets))
}

// describeTargets adds what the resources of a token are to what introspection says of it. The
// token is inactive when all of them were deleted.
func (s *Service) describeTargets(about *oauth.Introspection) error {
	if !about.Active || len(about.Targets) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.lifetime, introspectTimeout)
	defer cancel()
	known, err := s.Resources(ctx)
	if err != nil {
		return err
	}
	about.Targets = known.Known(about.Targets)
	if len(about.Targets) == 0 {
		*about = oauth.Introspection{}
		return nil
	}
	about.Audience = known.Audience(about.Targets, about.Scopes)
	about.ResourceScopes = known.ScopeNames(about.Targets)
	return nil
}
