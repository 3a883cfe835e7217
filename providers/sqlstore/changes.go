package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/oauth"
)

// The kinds of changes.
const (
	tokenChange  = "token"
	familyChange = "family"
	userChange   = "user"
	clientChange = "client"
	keysChange   = "keys"
)

// change is a row of changes without its number.
type change struct {
	kind, subject, clientID string
	userID, expires         int64
}

const (
	lastChange = `SELECT value FROM counters WHERE name = 'change'`
	// One column, because the drivers take most of their time for each column of each row.
	selectEnds = `SELECT kind || ' ' || subject || ' ' || expires || ' ' || client_id FROM changes
WHERE expires > $1 AND kind IN ('token', 'family')`
	selectChanges = `SELECT number, kind, subject, client_id, expires FROM changes
WHERE number > $1 AND number <= $2 ORDER BY number LIMIT CAST($3 AS BIGINT)`

	countChanges = `UPDATE counters SET value = value + $1 WHERE name = 'change' RETURNING value`
	countEnds    = `SELECT COUNT(*) FROM changes WHERE user_id = $1 AND user_id <> 0 AND expires > $2`
	hasTokenEnd  = `SELECT number FROM changes WHERE kind = 'token' AND subject = $1 LIMIT 1`
)

var changesTable = newRowsText("INSERT INTO changes (number, kind, subject, client_id, user_id, expires) ",
	"", "bigint", "text", "text", "text", "bigint", "bigint")

// Ends implements oauth.Store. It reads the counter before the rows: all changes up to that number
// are committed then, so none is missing, and the rows may have later ones too.
func (s *Store) Ends(ctx context.Context, now time.Time) (last int64, ends []oauth.End, err error) {
	if last, err = s.lastChange(ctx); err != nil {
		return 0, nil, fmt.Errorf("read ends: %w", err)
	}
	clients := map[string]string{} // one copy of each ID
	err = readAll(ctx, s, selectEnds, []any{millis(now.Add(oauth.EndKept))}, func(r row) error {
		var text string
		if err := r.Scan(&text); err != nil {
			return err
		}
		kind, rest, _ := strings.Cut(text, " ")
		subject, rest, _ := strings.Cut(rest, " ")
		millis, clientID, _ := strings.Cut(rest, " ")
		expires, err := strconv.ParseInt(millis, 10, 64)
		if err != nil {
			return err
		}
		client, ok := clients[clientID]
		if !ok {
			client = strings.Clone(clientID)
			clients[client] = client
		}
		end, err := parseEnd(kind, subject, client, expires)
		ends = append(ends, end)
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("read ends: %w", err)
	}
	return last, ends, nil
}

// Changes implements oauth.Store.
func (s *Store) Changes(ctx context.Context, after int64,
	limit int) (last int64, changes []oauth.Change, err error) {
	if last, err = s.lastChange(ctx); err != nil || last <= after {
		return last, nil, wrap("read changes", err)
	}
	err = readAll(ctx, s, selectChanges, []any{after, last, max(0, limit)}, func(r row) error {
		c, err := scanChange(r)
		changes = append(changes, c)
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("read changes: %w", err)
	}
	return last, changes, nil
}

func (s *Store) lastChange(ctx context.Context) (last int64, err error) {
	err = readOne(ctx, s, oauth.ErrNotFound, lastChange, nil, func(r row) error {
		return r.Scan(&last)
	})
	return last, err
}

func scanChange(r row) (c oauth.Change, err error) {
	var kind, subject, clientID string
	var expires int64
	if err := r.Scan(&c.Number, &kind, &subject, &clientID, &expires); err != nil {
		return c, err
	}
	switch kind {
	case userChange:
		c.UserID, err = strconv.ParseInt(subject, 10, 64)
	case clientChange:
		if c.Claims = subject == claimsChanged; !c.Claims {
			c.ClientID = subject
		}
	case keysChange:
		c.Keys = oauth.Purpose(subject)
	default:
		var end oauth.End
		end, err = parseEnd(kind, subject, clientID, expires)
		c.End = &end
	}
	return c, err
}

// parseEnd returns the end that a row of kind token or family is about.
func parseEnd(kind, subject, clientID string, expires int64) (end oauth.End, err error) {
	end.Expires = fromMillis(expires).Add(-oauth.EndKept)
	ok := false
	switch kind {
	case tokenChange:
		end.ClientID = clientID
		end.Token, ok = oauth.ParseTokenID(subject)
	case familyChange:
		end.FamilyID, err = uuid.Parse(subject)
		ok = err == nil
	}
	if !ok {
		return end, fmt.Errorf("change of kind %q has the unknown subject %q", kind, subject)
	}
	return end, nil
}

// countEnds returns how many tokens and families of a user have ended and not expired.
func (b *batch) countEnds(userID int64) (n int, err error) {
	err = b.conn.one(b.ctx, countEnds, []any{userID, time.Now().UnixMilli()}, &n)
	for _, c := range b.changes {
		if c.userID == userID {
			n++
		}
	}
	return n, err
}

// noteEnd collects the change that tells of an end of g's tokens.
func (b *batch) noteEnd(end oauth.End, g oauth.Grant) {
	c := change{kind: familyChange, subject: end.FamilyID.String(), clientID: g.ClientID,
		userID: g.UserID, expires: end.Expires.Add(oauth.EndKept).UnixMilli()}
	if end.FamilyID == uuid.Nil {
		c.kind, c.subject = tokenChange, end.Token.String()
	}
	b.changes = append(b.changes, c)
}

func (b *batch) noteUser(id int64) { b.note(userChange, strconv.FormatInt(id, 10)) }

// note collects a change that ends no token before its expiry.
func (b *batch) note(kind, subject string) {
	b.changes = append(b.changes, change{kind: kind, subject: subject,
		expires: time.Now().Add(oauth.ChangesKept).UnixMilli()})
}

// hasEnded reports whether an earlier operation has ended the token.
func (b *batch) hasEnded(id oauth.TokenID) (bool, error) {
	subject := id.String()
	if slices.ContainsFunc(b.changes, func(c change) bool {
		return c.kind == tokenChange && c.subject == subject
	}) {
		return true, nil
	}
	return b.conn.has(b.ctx, hasTokenEnd, subject)
}

// settleChanges numbers and writes the collected changes. Only settleAudit comes after it: the
// counter's row stays locked until the commit, so that numbers become visible in their order, and
// nobody may wait for another lock while others wait for that row.
func (b *batch) settleChanges() error {
	if len(b.changes) == 0 {
		return nil
	}
	var number int64
	if err := b.conn.one(b.ctx, countChanges, []any{len(b.changes)}, &number); err != nil {
		return fmt.Errorf("number changes: %w", err)
	}
	number -= int64(len(b.changes))
	err := insertAll(b, changesTable, b.changes, func(args []any, c *change) []any {
		number++
		return append(args, number, c.kind, c.subject, c.clientID, c.userID, c.expires)
	})
	return wrap("save changes", err)
}
