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
// them. Their caller limits the time. lower is that of the database, which may know ASCII alone: so
// names are compared with other texts also as they were entered, and with a capital letter before small
// ones.
const (
	asciiLike = `lower(name) LIKE $2 ESCAPE '\'`
	namesLike = asciiLike + ` OR name LIKE $3 ESCAPE '\' OR lower(name) LIKE $4 ESCAPE '\'`
	keysLike  = ` OR email_key LIKE $2 ESCAPE '\' OR username_key LIKE $2 ESCAPE '\' LIMIT CAST($1 AS BIGINT)`
	idLike    = ` OR lower(id) LIKE $2 ESCAPE '\' LIMIT CAST($1 AS BIGINT))`

	findUsers        = selectUser + `WHERE ` + namesLike + keysLike
	findUsersByASCII = selectUser + `WHERE ` + asciiLike + keysLike

	findClients        = clientColumns + `(SELECT * FROM clients WHERE ` + namesLike + idLike + clientParts
	findClientsByASCII = clientColumns + `(SELECT * FROM clients WHERE ` + asciiLike + idLike + clientParts
)

// FindUsers implements account.Store.
func (s *Store) FindUsers(ctx context.Context, text string, limit int) (users []*account.User,
	err error) {
	if text == "" || !isText(text) {
		return nil, nil
	}
	query, args := search(findUsers, findUsersByASCII, text, limit)
	err = readAll(ctx, s, query, args, func(r row) error {
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
	query, args := search(findClients, findClientsByASCII, text, limit)
	clients, err = s.readClients(ctx, query, args...)
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

// search returns which of two queries finds a text, and its arguments.
func search(query, byASCII, text string, limit int) (string, []any) {
	within := func(text string) string {
		return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
	}
	folded := account.Fold(text)
	args := []any{max(0, limit), within(folded)}
	if !strings.ContainsFunc(folded, func(r rune) bool { return r > unicode.MaxASCII }) {
		return byASCII, args
	}
	first, size := utf8.DecodeRuneInString(folded)
	capital := string(unicode.ToTitle(first)) + folded[size:]
	return query, append(args, within(text), within(capital))
}
