package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

const (
	// The row stays locked until the commit, so that servers declare one after the other.
	lockDeclared = `INSERT INTO declared_sets (name, revision, digest) VALUES ($1, -1, $2)
ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING revision, digest`
	setDeclared    = `UPDATE declared_sets SET revision = $2, digest = $3 WHERE name = $1`
	selectDeclared = clientColumns + `(SELECT * FROM clients WHERE options LIKE '%"declared":true%')` +
		clientParts
	declaredResources = `SELECT number, uri, scopes, created, set_name, declared, name, scope_texts, deleted FROM resources
WHERE NOT deleted OR declared ORDER BY number`
	reviveResource = `UPDATE resources SET deleted = FALSE WHERE number = $1`
)

// declareTimeout limits the transaction of Declare, which may take longer than others.
const declareTimeout = time.Minute

// Declare implements oauth.Store.
func (s *Store) Declare(
	ctx context.Context, sets []*oauth.DeclaredSet,
) (done []oauth.Declared, err error) {
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	execute := func(b *batch) error {
		done = make([]oauth.Declared, len(sets))
		for i, set := range sets {
			if err := b.declare(set, &done[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if s.pools.engine == sqliteEngine { // its one connection for writes is the writer's
		err = s.do(ctx, execute)
		return done, wrap("declare", err)
	}
	for range deadlockTries {
		if err = once(ctx, s.pools, execute); !isDeadlock(err) {
			break
		}
	}
	return done, wrap("declare", err)
}

func (b *batch) declare(set *oauth.DeclaredSet, done *oauth.Declared) error {
	refused := func(format string, args ...any) error {
		return &oauth.DeclareError{Set: set.Name, Message: fmt.Sprintf(format, args...)}
	}
	var revision int64
	var digest []byte
	err := b.conn.one(b.ctx, lockDeclared, []any{set.Name, []byte{}}, &revision, &digest)
	switch {
	case err != nil:
		return err
	case revision > set.Revision:
		done.Newer = revision
		return nil
	case revision == set.Revision && string(digest) == string(set.Digest[:]):
		return nil
	case revision == set.Revision:
		return refused("revision %d was declared with other content; raise revision", revision)
	}
	if err := b.declareResources(set, refused); err != nil {
		return err
	}
	if err := b.declareClients(set, done, refused); err != nil {
		return err
	}
	_, err = b.conn.exec(b.ctx, setDeclared, set.Name, set.Revision, set.Digest[:])
	return err
}

// declareClients creates, changes and disables the clients of a set.
func (b *batch) declareClients(set *oauth.DeclaredSet, done *oauth.Declared,
	refused func(string, ...any) error) error {
	var before []*oauth.Client
	if err := b.conn.rows(b.ctx, selectDeclared, nil, scanClients(&before)); err != nil {
		return err
	}
	gone := map[string]*oauth.Client{}
	for _, c := range before {
		if c.Options.Set == set.Name {
			gone[c.ID] = c
		}
	}
	for _, c := range set.Clients {
		old := gone[c.ID]
		delete(gone, c.ID)
		if old == nil {
			if err := b.declareClient(c, refused); err != nil {
				return err
			}
			done.Clients = append(done.Clients, c.ID)
			continue
		}
		next, err := old.ReplacedBy(c)
		if err == nil {
			err = next.CheckRegistration()
		}
		if err != nil {
			return refused("client %s: %v", c.ID, err)
		}
		if reflect.DeepEqual(next, old) {
			continue
		}
		if err := b.changeDeclared(next, audit.ClientChanged); err != nil {
			return err
		}
		done.Clients = append(done.Clients, c.ID)
	}
	for id, c := range gone {
		if c.Disabled {
			continue
		}
		c.Disabled = true
		if err := b.changeDeclared(c, audit.ClientDisabled); err != nil {
			return err
		}
		done.Clients = append(done.Clients, id)
	}
	return nil
}

// declareClient creates a client that no set had.
func (b *batch) declareClient(c *oauth.Client, refused func(string, ...any) error) error {
	switch err := b.conn.one(b.ctx, clientExists, []any{c.ID}, new(string)); {
	case err == nil:
		return refused("client %s: the admin API or another set has made it; delete it there first", c.ID)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if err := c.CheckRegistration(); err != nil {
		return refused("client %s: %v", c.ID, err)
	}
	created := *c
	created.Version, created.Epoch = 0, time.Now().UnixMicro()
	if err := b.createClient(&created); err != nil {
		return err
	}
	b.events = append(b.events, audit.Event{Action: audit.ClientCreated,
		Subject: audit.OfClient(c.ID), Details: []string{"declared"}})
	return nil
}

func (b *batch) changeDeclared(c *oauth.Client, action audit.Action) error {
	if _, err := b.updateClient(c); err != nil {
		return err
	}
	b.events = append(b.events, audit.Event{Action: action, Subject: audit.OfClient(c.ID),
		Details: []string{"declared"}})
	return nil
}

// declareResources creates, changes and deletes the resources of a set.
func (b *batch) declareResources(set *oauth.DeclaredSet,
	refused func(string, ...any) error) error {
	live, former := map[string]*oauth.Resource{}, map[string]*oauth.Resource{}
	err := b.conn.rows(b.ctx, declaredResources, nil, func(r row) error {
		var deleted bool
		resource, err := scanResource(r, &deleted)
		if deleted {
			former[resource.Set+" "+resource.URI] = &resource
		} else {
			live[resource.URI] = &resource
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range set.Resources {
		old := live[r.URI]
		delete(live, r.URI)
		if old != nil && !(old.Declared && old.Set == set.Name) {
			return refused("resource %s: the admin API or another set has made it; delete it there first", r.URI)
		}
		if known := former[set.Name+" "+r.URI]; old == nil && known != nil {
			if _, err := b.conn.exec(b.ctx, reviveResource, int64(known.Number)); err != nil {
				return err
			}
			old = known
		}
		if err := b.declareResource(old, r); err != nil {
			return refused("resource %s: %v", r.URI, err)
		}
	}
	for _, r := range live {
		if !r.Declared || r.Set != set.Name {
			continue
		}
		if _, err := b.conn.exec(b.ctx, deleteResource, int64(r.Number)); err != nil {
			return err
		}
		b.events = append(b.events, audit.Event{Action: audit.ResourceDeleted, Target: r.URI})
	}
	return nil
}

// declareResource replaces old by r, or creates r if old is nil.
func (b *batch) declareResource(old, r *oauth.Resource) error {
	if old == nil {
		created := *r
		b.events = append(b.events, audit.Event{Action: audit.ResourceCreated, Target: r.URI})
		return b.createResource(&created)
	}
	next := old.ReplacedBy(r)
	if reflect.DeepEqual(next, old) {
		return nil
	}
	b.events = append(b.events, audit.Event{Action: audit.ResourceChanged, Target: r.URI})
	return b.replaceResource(old, next)
}
