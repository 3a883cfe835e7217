package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
)

// highChosenIDs is the first of the chosen IDs that the counter does not go above: one of them must
// not leave others without IDs.
const highChosenIDs = 1 << 52

const (
	// The row stays locked until the commit, so that two commands with one import do one part each.
	lockImport = `INSERT INTO user_imports (id, line, result, updated) VALUES ($1, 0, '', $2)
ON CONFLICT (id) DO UPDATE SET updated = excluded.updated RETURNING line, result`
	setImport = `UPDATE user_imports SET line = $2, result = $3 WHERE id = $1`
	// An ID that nobody has is free.
	collides = `SELECT id = $1, service_id = $2, COALESCE(email_key = $3, FALSE), COALESCE(phone_key = $4, FALSE),
COALESCE(username_key = $5, FALSE), COALESCE(handle = $6, FALSE) FROM users
WHERE id = $1 OR service_id = $2 OR email_key = $3 OR phone_key = $4 OR username_key = $5 OR handle = $6 LIMIT 1`
	nextUserIDs = `UPDATE counters SET value = value + $1 WHERE name = 'user' RETURNING value`
)

// importResult is what a part of an import has led to.
type importResult struct {
	Digest  string                `json:"digest"`
	Created int                   `json:"created"`
	Refused []account.RefusedLine `json:"refused"`
}

// ImportUsers implements account.Store.
func (s *Store) ImportUsers(ctx context.Context, p *account.ImportPart) error {
	var done importResult
	err := s.do(ctx, func(b *batch) (err error) {
		if p.Dry {
			return b.undone(func() error { return b.importUsers(ctx, p, &done) })
		}
		return b.importPart(ctx, p, &done)
	})
	if err != nil {
		return fmt.Errorf("import users: %w", err)
	}
	p.Created, p.Refused = done.Created, done.Refused
	return nil
}

// undone executes what has no effect.
func (b *batch) undone(execute func() error) error {
	if _, err := b.conn.exec(b.ctx, "SAVEPOINT before_dry_run"); err != nil {
		return err
	}
	if err := execute(); err != nil {
		return err
	}
	if _, err := b.conn.exec(b.ctx, "ROLLBACK TO SAVEPOINT before_dry_run"); err != nil {
		return err
	}
	if _, err := b.conn.exec(b.ctx, "RELEASE SAVEPOINT before_dry_run"); err != nil {
		return err
	}
	return errNoEffect
}

// importPart imports a part, unless that was done.
func (b *batch) importPart(
	ctx context.Context, p *account.ImportPart, done *importResult,
) error {
	var line int64
	var result string
	err := b.conn.one(b.ctx, lockImport, []any{p.ID, millis(time.Now())}, &line, &result)
	switch {
	case err != nil:
		return err
	case line > p.Line:
		return refusal{account.ErrConflict}
	case line == p.Line:
		*done = importResult{}
		if err := json.Unmarshal([]byte(result), done); err != nil {
			return err
		}
		if done.Digest != p.Digest {
			return refusal{account.ErrConflict}
		}
		return errNoEffect
	}
	if err := b.importUsers(ctx, p, done); err != nil {
		return err
	}
	text, err := json.Marshal(done)
	if err != nil {
		return err
	}
	_, err = b.conn.exec(b.ctx, setImport, p.ID, p.Line, string(text))
	return err
}

// importUsers inserts users, each unless it collides with another one.
func (b *batch) importUsers(
	ctx context.Context, p *account.ImportPart, done *importResult,
) error {
	*done = importResult{Digest: p.Digest, Refused: append([]account.RefusedLine{}, p.Refused...)}
	next, err := b.reserveIDs(p)
	if err != nil {
		return err
	}
	first, last := int64(0), int64(0)
	for _, one := range p.Users {
		created := *one.User
		id, serviceID := created.ID, created.ServiceID
		if err := newUserIdentity(&created); err != nil {
			return err
		}
		if serviceID != "" {
			created.ServiceID = strings.ToLower(serviceID)
		}
		if id == 0 {
			created.ID = next
			next++
		}
		problem, err := b.importUser(&created)
		switch {
		case err != nil:
			return err
		case problem != nil:
			done.Refused = append(done.Refused, account.RefusedLine{Line: one.Line, FieldError: *problem})
			continue
		}
		done.Created++
		if first == 0 || created.ID < first {
			first = created.ID
		}
		last = max(last, created.ID)
	}
	if !p.Dry {
		b.events = append(b.events, audit.Event{Action: audit.UsersImported, Source: audit.SourceOf(ctx),
			Data: audit.Data{"import": p.ID, "line": p.Line, "created": done.Created,
				"refused": len(done.Refused), "first": first, "last": last}})
	}
	return nil
}

// reserveIDs returns the first of the IDs for the users that have none, after the chosen ones.
func (b *batch) reserveIDs(p *account.ImportPart) (next int64, err error) {
	chosen, missing := int64(0), int64(0)
	for _, one := range p.Users {
		switch id := one.User.ID; {
		case id == 0:
			missing++
		case id < highChosenIDs:
			chosen = max(chosen, id)
		}
	}
	if chosen > 0 {
		if _, err := b.conn.exec(b.ctx, skipUserIDs, chosen); err != nil {
			return 0, err
		}
	}
	if missing == 0 {
		return 0, nil
	}
	var last int64
	err = b.conn.one(b.ctx, nextUserIDs, []any{missing}, &last)
	return last - missing + 1, err
}

// importUser inserts a user, or returns why that is refused.
func (b *batch) importUser(u *account.User) (*account.FieldError, error) {
	if err := checkUser(u); err != nil {
		return &account.FieldError{Field: "line", Message: errText.Error()}, nil
	}
	if missing, err := b.missingGroup(u); err != nil || missing != "" {
		return &account.FieldError{Field: "groups", Message: "must exist: there is no group " + missing}, err
	}
	for _, c := range u.Credentials.Connections { // the insert of one that exists would undo the whole part
		if found, err := b.conn.has(b.ctx, otherConnection, c.Issuer, c.Subject, int64(0)); err != nil {
			return nil, err
		} else if found {
			return taken("connections"), nil
		}
	}
	// The insert comes first: it finds what collides by the indexes, whatever the database knows of the
	// size of the table, which grows.
	var lost refusal
	if err := b.insertNumbered(u); !errors.As(err, &lost) {
		return nil, err
	}
	fields := []string{"id", "service_id", "email", "phone_number", "username", "passkeys"}
	same := make([]bool, len(fields))
	err := b.conn.one(b.ctx, collides, []any{u.ID, u.ServiceID, key(account.Fold(u.Email)),
		key(account.PhoneKey(u.Phone)), key(account.Fold(u.Username)),
		u.Credentials.Handle}, &same[0], &same[1], &same[2], &same[3], &same[4], &same[5])
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	for i, field := range fields {
		if same[i] {
			return taken(field), nil
		}
	}
	return taken("line"), nil // the other one is gone again
}

func taken(field string) *account.FieldError {
	message := "belongs to another account"
	if field == "connections" {
		message = "must not have one that belongs to another account"
	}
	return &account.FieldError{Field: field, Message: message}
}
