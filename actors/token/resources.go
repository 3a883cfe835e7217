package token

import (
	"context"
	"errors"
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
	ctx = ofResource(ctx, nil, &r)
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
	ctx = ofResource(ctx, &old, next)
	if err := s.config.Tokens.ReplaceResource(ctx, &old, next); err != nil {
		return r, false, fmt.Errorf("replace resource: %w", err)
	}
	return *next, false, nil
}

// ofResource returns a context whose next write records that next replaces old. Either may be nil:
// a resource comes, or goes.
func ofResource(ctx context.Context, old, next *oauth.Resource) context.Context {
	e := audit.Event{Action: audit.ResourceChanged, Data: audit.Data{}}
	if old != nil {
		e.Target, e.Data[audit.Before] = old.URI, recorded(old)
	} else {
		e.Action = audit.ResourceCreated
	}
	if next != nil {
		e.Target, e.Data[audit.After] = next.URI, recorded(next)
	} else {
		e.Action = audit.ResourceDeleted
	}
	if e.Action == audit.ResourceChanged {
		e.Details = []string{"scopes"}
	}
	return audit.With(ctx, e)
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
	if len(r.Claims) > 0 {
		data["claims"] = r.Claims
	}
	if r.Set != "" {
		data["set"] = r.Set
	}
	if r.Declared {
		data["declared"] = true
	}
	return data
}

// DeleteResource deletes a resource, or returns oauth.ErrNotFound. Its tokens end with it on all
// nodes before it returns.
func (s *Service) DeleteResource(ctx context.Context, r oauth.Resource) error {
	if r.Declared {
		return oauth.ErrDeclared
	}
	ctx = ofResource(ctx, &r, nil)
	err := s.config.Tokens.DeleteResource(ctx, r.Number)
	s.resources.changes.Add(1)
	if err != nil {
		return fmt.Errorf("delete resource: %w", err)
	}
	return s.confirm()
}

// Declare makes clients and resources what the server's own files say, at once in this process, and
// in all nodes if clients change. The errors are those of oauth.Store.Declare.
func (s *Service) Declare(
	ctx context.Context, sets []*oauth.DeclaredSet,
) ([]oauth.Declared, error) {
	for _, set := range sets {
		for _, c := range set.Clients {
			if err := s.checkDeclaredKeys(ctx, set, c); err != nil {
				return nil, fmt.Errorf("declare: %w", err)
			}
		}
	}
	done, err := s.config.Tokens.Declare(ctx, sets,
		oauth.DeclareRecords{Client: ofDeclaredClient, Resource: ofResource, Provider: ofProvider})
	s.resources.changes.Add(1)
	changed := false
	for _, d := range done {
		for _, id := range d.Clients {
			s.clients.change(id)
			changed = true
		}
	}
	if err != nil {
		return nil, fmt.Errorf("declare: %w", err)
	}
	if err := s.readClaims(ctx); err != nil { // other nodes follow
		return nil, fmt.Errorf("declare: %w", err)
	}
	if !changed { // a node that starts does not wait for others that do
		return done, nil
	}
	return done, s.confirm()
}

// checkDeclaredKeys returns a *oauth.DeclareError if the keys of c can never be fetched. A client
// that has these keys already is not checked again.
func (s *Service) checkDeclaredKeys(
	ctx context.Context, set *oauth.DeclaredSet, c *oauth.Client,
) error {
	source := keySourceOf(&c.Options)
	if source.url == "" && source.federated.Issuer == "" {
		return nil
	}
	known, err := s.config.Tokens.Client(ctx, c.ID)
	switch {
	case err == nil && keySourceOf(&known.Options) == source:
		return nil
	case err != nil && !errors.Is(err, oauth.ErrNotFound):
		return err
	}
	if err := s.checkKeysURL(ctx, c); err != nil {
		return &oauth.DeclareError{Set: set.Name, Message: "client " + c.ID + ": " + err.Error()}
	}
	return nil
}

// ofDeclaredClient returns a context with the events of a client that files declare. old is nil for
// a new one.
func ofDeclaredClient(ctx context.Context, old, next *oauth.Client) context.Context {
	if old == nil {
		return ofWholeClient(ctx, audit.ClientCreated, audit.After, next)
	}
	return ofClientChange(ctx, old, next)
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
// token is inactive when all of them were deleted, or one at which an exchange began.
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
	if len(about.Targets) == 0 || !known.HaveBegun(about.Subject) {
		*about = oauth.Introspection{}
		return nil
	}
	about.Audience = known.Audience(about.Targets, about.Scopes)
	about.ResourceScopes = known.ScopeNames(about.Targets)
	return nil
}
