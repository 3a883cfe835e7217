package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// The searches read rows in no order until they have enough, so that no index has to be kept for
// them. Their caller limits the time. lower is that of the database: SQLite's knows ASCII alone, so
// names are compared as they were entered, too, and with a capital letter.
const (
	namesLike = `lower(name) LIKE $1 ESCAPE '\' OR name LIKE $2 ESCAPE '\' OR name LIKE $3 ESCAPE '\'`
	findUsers = selectUser + `WHERE ` + namesLike +
		` OR email_key LIKE $1 ESCAPE '\' OR username_key LIKE $1 ESCAPE '\' LIMIT $4`
	findClients = clientColumns + `(SELECT * FROM clients WHERE ` + namesLike +
		` OR id LIKE $2 ESCAPE '\' LIMIT $4)` + clientParts
)

// FindUsers implements account.Store.
func (s *Store) FindUsers(ctx context.Context, text string, limit int) (users []*account.User,
	err error) {
	if text == "" || !isText(text) {
		return nil, nil
	}
	err = readAll(ctx, s, findUsers, append(patterns(text), max(0, limit)), func(r row) error {
		u, err := scanUser(r)
		if err == nil {
			users = append(users, u)
		}
		return err
	})
	return users, searchError(ctx, "find users", err)
}

// FindClients implements oauth.Store.
func (s *Store) FindClients(ctx context.Context, text string, limit int) (clients []*oauth.Client,
	err error) {
	if text == "" || !isText(text) {
		return nil, nil
	}
	clients, err = s.readClients(ctx, findClients, append(patterns(text), max(0, limit))...)
	return clients, searchError(ctx, "find clients", err)
}

// searchError returns context.DeadlineExceeded for a search that the end of its context has cut off,
// whatever the driver says of that.
func searchError(ctx context.Context, step string, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", step, context.DeadlineExceeded)
	}
	return wrap(step, err)
}

// patterns returns the patterns of a text within a name: folded, as it is, and with a capital letter.
func patterns(text string) []any {
	within := func(text string) string {
		return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
	}
	first, size := utf8.DecodeRuneInString(text)
	capital := string(unicode.ToTitle(first)) + text[size:]
	return []any{within(account.Fold(text)), within(text), within(capital)}
}
