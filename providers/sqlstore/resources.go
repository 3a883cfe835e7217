package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gatehouse/actors/oauth"
)

const (
	selectResources = `SELECT number, uri, scopes, created, set_name, declared, name, scope_texts, claims FROM resources WHERE NOT deleted ORDER BY number`
	// A resource may be inserted if there is room, and none with its URI.
	insertResource = `INSERT INTO resources (number, uri, scopes, created, set_name, declared, name, scope_texts, claims)
SELECT COALESCE(MAX(number), 0) + 1, $1, $2, CAST($3 AS BIGINT), $6, CAST($7 AS BOOLEAN), $8, $9, $10 FROM resources
HAVING COUNT(CASE WHEN deleted THEN NULL ELSE 1 END) < $4 AND COALESCE(MAX(number), 0) < $5
ON CONFLICT DO NOTHING RETURNING number`
	hasResource    = `SELECT number FROM resources WHERE uri = $1 AND NOT deleted`
	changeResource = `UPDATE resources SET uri = $3, scopes = $4, set_name = $5, declared = $6, name = $7, scope_texts = $8, claims = $9
WHERE number = $1 AND scopes = $2 AND NOT deleted`
	deleteResource = `UPDATE resources SET deleted = TRUE WHERE number = $1 AND NOT deleted`
)

// Resources implements oauth.ResourceStore.
func (s *Store) Resources(ctx context.Context) (all []oauth.Resource, err error) {
	err = readAll(ctx, s, selectResources, nil, func(r row) error {
		resource, err := scanResource(r)
		all = append(all, resource)
		return err
	})
	return all, wrap("read resources", err)
}

// scanResource reads the columns of selectResources, and more.
func scanResource(r row, more ...any) (resource oauth.Resource, err error) {
	var scopes, texts, claims string
	var created int64
	err = r.Scan(append([]any{&resource.Number, &resource.URI, &scopes, &created, &resource.Set,
		&resource.Declared, &resource.Name, &texts, &claims}, more...)...)
	if claims != "" {
		resource.Claims = strings.Fields(claims)
	}
	resource.Scopes, resource.Created = strings.Fields(scopes), fromMillis(created)
	if err == nil && texts != "" {
		err = json.Unmarshal([]byte(texts), &resource.Texts)
	}
	return resource, err
}

// textsOf returns the stored form of what people read of scopes.
func textsOf(r *oauth.Resource) string {
	if len(r.Texts) == 0 {
		return ""
	}
	text, err := json.Marshal(r.Texts)
	if err != nil {
		panic(err) // they are texts
	}
	return string(text)
}

// CreateResource implements oauth.ResourceStore.
func (s *Store) CreateResource(ctx context.Context, r *oauth.Resource) error {
	return wrap("create resource", s.do(ctx, func(b *batch) error { return b.createResource(r) }))
}

func (b *batch) createResource(r *oauth.Resource) error {
	err := b.conn.one(b.ctx, insertResource, []any{r.URI, strings.Join(r.Scopes, " "),
		millis(r.Created), oauth.MostRegistered, oauth.OwnResource - 1, r.Set, r.Declared,
		r.Name, textsOf(r), strings.Join(r.Claims, " ")}, &r.Number)
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
}

// ReplaceResource implements oauth.ResourceStore.
func (s *Store) ReplaceResource(ctx context.Context, old, r *oauth.Resource) error {
	var next oauth.Resource
	err := s.do(ctx, func(b *batch) error {
		next = *r // also after a try that has set its Number
		return b.replaceResource(old, &next)
	})
	if err != nil {
		return fmt.Errorf("replace resource: %w", err)
	}
	r.Number = next.Number
	return nil
}

func (b *batch) replaceResource(old, r *oauth.Resource) error {
	text, args := deleteResource, []any{int64(old.Number)}
	if r.Number != 0 {
		text, args = changeResource, append(args, strings.Join(old.Scopes, " "), r.URI,
			strings.Join(r.Scopes, " "), r.Set, r.Declared, r.Name, textsOf(r),
			strings.Join(r.Claims, " "))
	}
	n, err := b.conn.exec(b.ctx, text, args...)
	switch {
	case err != nil:
		return err
	case n == 0:
		return refusal{oauth.ErrConflict}
	case r.Number == 0:
		b.noteClaims()
		var refused refusal
		if err := b.createResource(r); !errors.As(err, &refused) {
			return err
		}
		return fmt.Errorf("make a resource anew: %w", refused.error) // undoes the deletion
	}
	return nil
}

// DeleteResource implements oauth.ResourceStore.
func (s *Store) DeleteResource(ctx context.Context, number uint16) error {
	return wrap("delete resource", s.do(ctx, func(b *batch) error {
		b.noteClaims()
		n, err := b.conn.exec(b.ctx, deleteResource, int64(number))
		if err == nil && n == 0 {
			return refusal{oauth.ErrNotFound}
		}
		return err
	}))
}
