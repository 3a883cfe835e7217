package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"gatehouse/actors/oauth"
)

const (
	selectResources = `SELECT number, uri, scopes, created FROM resources WHERE NOT deleted ORDER BY number`
	// A resource may be inserted if there is room, and none with its URI.
	insertResource = `INSERT INTO resources (number, uri, scopes, created)
SELECT COALESCE(MAX(number), 0) + 1, $1, $2, $3 FROM resources
HAVING COUNT(CASE WHEN deleted THEN NULL ELSE 1 END) < $4 AND COALESCE(MAX(number), 0) < $5
ON CONFLICT DO NOTHING RETURNING number`
	hasResource    = `SELECT number FROM resources WHERE uri = $1 AND NOT deleted`
	deleteResource = `UPDATE resources SET deleted = TRUE WHERE number = $1 AND NOT deleted`
)

// Resources implements oauth.ResourceStore.
func (s *Store) Resources(ctx context.Context) (all []oauth.Resource, err error) {
	err = readAll(ctx, s, selectResources, nil, func(r row) error {
		var resource oauth.Resource
		var scopes string
		var created int64
		err := r.Scan(&resource.Number, &resource.URI, &scopes, &created)
		resource.Scopes, resource.Created = strings.Fields(scopes), fromMillis(created)
		all = append(all, resource)
		return err
	})
	return all, wrap("read resources", err)
}

// CreateResource implements oauth.ResourceStore.
func (s *Store) CreateResource(ctx context.Context, r *oauth.Resource) error {
	return wrap("create resource", s.do(ctx, func(b *batch) error {
		err := b.conn.one(b.ctx, insertResource, []any{r.URI, strings.Join(r.Scopes, " "),
			millis(r.Created), oauth.MostRegistered, oauth.OwnResource - 1}, &r.Number)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		switch found, err := b.conn.has(b.ctx, hasResource, r.URI); {
		case err != nil:
			return err
		case found:
			return refusal{oauth.ErrConflict}
		}
		return refusal{oauth.ErrBusy}
	}))
}

// DeleteResource implements oauth.ResourceStore.
func (s *Store) DeleteResource(ctx context.Context, number uint16) error {
	return wrap("delete resource", s.do(ctx, func(b *batch) error {
		n, err := b.conn.exec(b.ctx, deleteResource, int64(number))
		if err == nil && n == 0 {
			return refusal{oauth.ErrNotFound}
		}
		return err
	}))
}
