package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gatehouse/actors/oauth"
)

const (
	// The row stays locked until the commit, so that servers declare one after the other.
	lockDeclared = `INSERT INTO declared_sets (name, revision, digest) VALUES ($1, -1, $2)
ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING revision, digest`
	setDeclared    = `UPDATE declared_sets SET revision = $2, digest = $3 WHERE name = $1`
	selectDeclared = clientColumns + `(SELECT * FROM clients WHERE options LIKE '%"declared":true%' OR options LIKE '%"released":true%')` +
		clientParts
	declaredResources = `SELECT number, uri, scopes, created, set_name, declared, name, scope_texts, claims, deleted FROM resources
WHERE NOT deleted OR declared ORDER BY number`
	reviveResource = `UPDATE resources SET deleted = FALSE WHERE number = $1`
)

// declareTimeout limits the transaction of Declare, which may take longer than others.
const declareTimeout = time.Minute

// Declare implements oauth.Store.
func (s *Store) Declare(
	ctx context.Context, sets []*oauth.DeclaredSet, records oauth.DeclareRecords,
) (done []oauth.Declared, err error) {
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	execute := func(b *batch) error {
		d := declaring{batch: b, records: records, files: s.keyFiles, due: map[string]*oauth.Declared{}}
		err := d.declare(sets)
		done = d.done
		return undone(err)
	}
	if s.pools.engine == sqliteEngine { // its one connection for writes is the writer's
		err = s.do(ctx, execute)
		return done, wrap("declare", err)
	}
	for range deadlockTries { // an operator may change what is declared or released just now
		err = once(ctx, s.pools, execute)
		if !isDeadlock(err) && !errors.Is(err, oauth.ErrConflict) {
			break
		}
	}
	return done, wrap("declare", err)
}

// undone returns err without its refusal, with which a task would commit what it has written.
func undone(err error) error {
	var expected refusal
	if errors.As(err, &expected) {
		return expected.error
	}
	return err
}

// declaring is one transaction of Declare.
type declaring struct {
	*batch
	records oauth.DeclareRecords
	files   keyFiles
	done    []oauth.Declared
	due     map[string]*oauth.Declared // what is done for the sets that change, by name
}

func (d *declaring) declare(sets []*oauth.DeclaredSet) error {
	d.done = make([]oauth.Declared, len(sets))
	var due []*oauth.DeclaredSet
	for i, set := range sets {
		changes, err := d.lock(set, &d.done[i])
		if err != nil {
			return err
		}
		if changes {
			due = append(due, set)
			d.due[set.Name] = &d.done[i]
		}
	}
	if due == nil {
		return nil
	}
	for _, declare := range []func([]*oauth.DeclaredSet) error{d.declareGroups,
		d.declareAttributes, d.declareClaims, d.declareResources} {
		if err := declare(due); err != nil {
			return err
		}
	}
	if err := d.declareClients(due); err != nil {
		return err
	}
	if err := d.declareProviders(due); err != nil {
		return err
	}
	for _, set := range due {
		if _, err := d.conn.exec(d.ctx, setDeclared, set.Name, set.Revision, set.Digest[:]); err != nil {
			return err
		}
	}
	return nil
}

func refused(set *oauth.DeclaredSet, format string, args ...any) error {
	return &oauth.DeclareError{Set: set.Name, Message: fmt.Sprintf(format, args...)}
}

// lock locks the row of a set until the commit, and reports whether the set changes.
func (d *declaring) lock(set *oauth.DeclaredSet, done *oauth.Declared) (changes bool, err error) {
	var revision int64
	var digest []byte
	err = d.conn.one(d.ctx, lockDeclared, []any{set.Name, []byte{}}, &revision, &digest)
	switch {
	case err != nil:
		return false, err
	case revision > set.Revision:
		done.Newer = revision
		return false, nil
	case revision < set.Revision:
		return true, nil
	case string(digest) != string(set.Digest[:]):
		return false, refused(set, "revision %d was declared with other content; raise revision", revision)
	}
	return false, nil
}

// checkOwner returns a *oauth.DeclareError unless set may have an object that the set owner has, or
// nobody if it is not declared. Sets that change together may hand objects to each other.
func (d *declaring) checkOwner(set *oauth.DeclaredSet, what, owner string, declared bool) error {
	switch {
	case !declared:
		return refused(set, "%s: the admin API has made it; delete it there first", what)
	case owner == set.Name || d.due[owner] != nil:
		return nil
	}
	return refused(set, "%s: the set %q has it; take it out of the files of that set, and raise its revision",
		what, owner)
}

// declareClients creates, changes and releases the clients of the sets.
func (d *declaring) declareClients(sets []*oauth.DeclaredSet) error {
	var known []*oauth.Client
	if err := d.conn.rows(d.ctx, selectDeclared, nil, scanClients(&known)); err != nil {
		return err
	}
	before := map[string]*oauth.Client{}
	for _, c := range known {
		before[c.ID] = c
	}
	described := map[string]bool{}
	for _, set := range sets {
		for _, c := range set.Clients {
			described[c.ID] = true
			if err := d.declareClient(set, before[c.ID], c); err != nil {
				return err
			}
		}
	}
	for _, c := range known {
		if !c.Options.Declared || d.due[c.Options.Set] == nil || described[c.ID] {
			continue
		}
		next := *c
		next.Disabled = true
		next.Options.Declared, next.Options.Released = false, true
		if err := d.changeClient(c.Options.Set, c, &next); err != nil {
			return err
		}
	}
	return nil
}

// declareClient makes a client what set says. old is it as it was declared before; nil = it was not.
func (d *declaring) declareClient(set *oauth.DeclaredSet, old, c *oauth.Client) error {
	if old == nil || !old.Options.Declared && !old.Options.Released {
		return d.createClient(set, c)
	}
	if old.Options.Declared { // what is released belongs to nobody
		if err := d.checkOwner(set, "client "+c.ID, old.Options.Set, true); err != nil {
			return err
		}
	}
	next, err := old.ReplacedBy(c)
	if err == nil {
		err = next.CheckRegistration()
	}
	if err != nil {
		return refused(set, "client %s: %v", c.ID, err)
	}
	if reflect.DeepEqual(next, old) {
		return nil
	}
	return d.changeClient(set.Name, old, next)
}

// createClient creates a client that no set had.
func (d *declaring) createClient(set *oauth.DeclaredSet, c *oauth.Client) error {
	switch err := d.conn.one(d.ctx, clientExists, []any{c.ID}, new(string)); {
	case err == nil:
		return d.checkOwner(set, "client "+c.ID, "", false)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if err := c.CheckRegistration(); err != nil {
		return refused(set, "client %s: %v", c.ID, err)
	}
	created := *c
	created.Version, created.Epoch = 0, time.Now().UnixMicro()
	if err := d.batch.createClient(&created); err != nil {
		return err
	}
	d.noteClient(set.Name, nil, &created)
	return nil
}

func (d *declaring) changeClient(set string, old, next *oauth.Client) error {
	if _, err := d.updateClient(next); err != nil {
		return err
	}
	d.noteClient(set, old, next)
	return nil
}

func (d *declaring) noteClient(set string, old, next *oauth.Client) {
	d.record(d.records.Client(d.ctx, old, next))
	done := d.due[set]
	done.Clients = append(done.Clients, next.ID)
}

// declareResources deletes, creates and changes the resources of the sets.
func (d *declaring) declareResources(sets []*oauth.DeclaredSet) error {
	live, former := map[string]*oauth.Resource{}, map[string]*oauth.Resource{}
	var known []*oauth.Resource
	err := d.conn.rows(d.ctx, declaredResources, nil, func(r row) error {
		var deleted bool
		resource, err := scanResource(r, &deleted)
		if deleted {
			former[resource.URI] = &resource // the newest with the URI
		} else {
			live[resource.URI], known = &resource, append(known, &resource)
		}
		return err
	})
	if err != nil {
		return err
	}
	described := map[string]bool{}
	for _, set := range sets {
		for _, r := range set.Resources {
			described[r.URI] = true
		}
	}
	for _, r := range known { // first, since there is room for few
		if !r.Declared || d.due[r.Set] == nil || described[r.URI] {
			continue
		}
		d.noteClaims()
		if _, err := d.conn.exec(d.ctx, deleteResource, int64(r.Number)); err != nil {
			return err
		}
		d.noteResource(r, nil)
	}
	for _, set := range sets {
		for _, r := range set.Resources {
			if old := live[r.URI]; old != nil {
				if err := d.checkOwner(set, "resource "+r.URI, old.Set, old.Declared); err != nil {
					return err
				}
			}
			err := d.declareResource(live[r.URI], former[r.URI], r)
			if err := undone(err); errors.Is(err, oauth.ErrBusy) {
				return refused(set, "resource %s: there are %d resources already", r.URI, oauth.MostRegistered)
			} else if err != nil {
				return fmt.Errorf("resource %s: %w", r.URI, err)
			}
		}
	}
	return nil
}

// declareResource replaces old by r. If old is nil, it brings former back as r, or creates r if
// former is nil too.
func (d *declaring) declareResource(old, former, r *oauth.Resource) error {
	if old == nil && former == nil {
		created := *r
		d.noteResource(nil, r)
		return d.createResource(&created)
	}
	before := old
	if old == nil {
		if _, err := d.conn.exec(d.ctx, reviveResource, int64(former.Number)); err != nil {
			return err
		}
		old = former
	}
	next := old.ReplacedBy(r)
	same := reflect.DeepEqual(next, old)
	if before == nil || !same {
		d.noteResource(before, next)
	}
	if same {
		return nil
	}
	return d.replaceResource(old, next)
}

func (d *declaring) noteResource(old, next *oauth.Resource) {
	d.record(d.records.Resource(d.ctx, old, next))
}

// declareProviders creates and changes the providers of the sets, and disables those that are gone.
func (d *declaring) declareProviders(sets []*oauth.DeclaredSet) error {
	known, err := d.providers(d.files)
	if err != nil {
		return err
	}
	before, described := map[string]*oauth.Provider{}, map[string]bool{}
	for _, p := range known {
		before[p.ID] = p
	}
	for _, set := range sets {
		for _, p := range set.Providers {
			described[p.ID] = true
			if err := d.declareProvider(set, before[p.ID], p); err != nil {
				return err
			}
		}
	}
	for _, p := range known {
		if !p.Declared || d.due[p.Set] == nil || described[p.ID] {
			continue
		}
		next := *p
		next.Declared, next.Disabled, next.Released = false, true, true
		if err := d.changeProvider(p.Set, p, &next); err != nil {
			return err
		}
	}
	return nil
}

// declareProvider makes a provider what set says. old is it as it was before; nil = there was none.
func (d *declaring) declareProvider(set *oauth.DeclaredSet, old, p *oauth.Provider) error {
	next := p
	if old != nil {
		if !old.Released { // what is released belongs to nobody
			if err := d.checkOwner(set, "provider "+p.ID, old.Set, old.Declared); err != nil {
				return err
			}
		}
		if next = old.ReplacedBy(p); reflect.DeepEqual(next, old) {
			return nil
		}
	}
	if err := next.CheckRegistration(); err != nil {
		return refused(set, "provider %s: %v", p.ID, err)
	}
	return d.changeProvider(set.Name, old, next)
}

func (d *declaring) changeProvider(set string, old, next *oauth.Provider) error {
	err := d.saveProvider(next, d.files)
	if errors.Is(undone(err), oauth.ErrBusy) {
		return &oauth.DeclareError{Set: set, Message: fmt.Sprintf(
			"provider %s: there are %d providers already", next.ID, oauth.MostProviders)}
	}
	if err == nil {
		d.record(d.records.Provider(d.ctx, old, next))
	}
	return err
}
