package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

const (
	countEvents = `UPDATE counters SET value = value + $1 WHERE name = 'audit' RETURNING value`
	hourOfCount = time.Hour
	countsKept  = 2 * hourOfCount // from the begin of their hour, since clocks differ
)

var (
	auditTable = newRowsText(`INSERT INTO audit
(number, time, action, outcome, user_id, client_id, target, details, count, actor_kind, actor_id, request_id, caller, browser, data) `, "",
		"bigint", "bigint", "text", "text", "bigint", "text", "text", "text", "bigint", "text", "text", "text", "text", "text",
		"text")
	// addCounts returns the counts after the addition.
	addCounts = newRowsText("INSERT INTO audit_counts (hour, subject, action, outcome, events, counted, number) ", `
ON CONFLICT (hour, subject, action, outcome) DO UPDATE SET events = audit_counts.events + excluded.events
RETURNING subject, action, outcome, events, counted, number`,
		"bigint", "text", "text", "text", "bigint", "bigint", "bigint")
	moveCounts = newRowsText("UPDATE audit_counts SET counted = v.column1, number = v.column2 FROM (", `) AS v
WHERE hour = v.column3 AND subject = v.column4 AND action = v.column5 AND outcome = v.column6`,
		"bigint", "bigint", "bigint", "text", "text", "text")
	takeEvents = newRowsText("DELETE FROM audit WHERE number IN (SELECT v.column1 FROM (",
		") AS v) RETURNING number, details", "bigint")
)

// record collects the events of a write that had an effect.
func (b *batch) record(ctx context.Context) {
	if ctx == nil {
		return
	}
	for _, e := range audit.Recorded(ctx) {
		if e.Action == audit.AccountCreated && b.created != 0 {
			e.Subject = audit.OfUser(b.created)
		}
		b.events = append(b.events, e)
	}
}

// recordReuse collects the event of a code or refresh token that came again and ended its family.
func (b *batch) recordReuse(w *oauth.Write, userID int64, family uuid.UUID) {
	e := audit.Event{Action: audit.FamilyReused, Outcome: audit.Refused,
		Subject: audit.OfUser(userID), Target: family.String()}
	if w.Context != nil {
		e.Source = audit.SourceOf(w.Context)
	}
	b.events = append(b.events, e)
}

// countKey is what events are counted by in an hour, except those of operators: nobody hides an
// event behind many others.
type countKey struct {
	subject audit.Subject
	action  audit.Action
	outcome audit.Outcome
	target  string
	network netip.Prefix // of the caller
}

// ownTargets are the actions that have another target each time.
var ownTargets = []audit.Action{audit.ClientRegistered, audit.ClientEnded, audit.FamilyReused}

func keyOf(e *audit.Event) countKey {
	key := countKey{e.Subject, e.Action, e.Outcome, e.Target, audit.Network(e.Caller)}
	// Who fails to sign in may name any app.
	if slices.Contains(ownTargets, e.Action) || e.Action == audit.SignIn && e.Outcome == audit.Failed {
		key.target = ""
	}
	return key
}

// eventCount counts the events of a key in this transaction and in the hour.
type eventCount struct {
	countKey
	added   int64 // events of this transaction
	before  int64 // events of the hour before this transaction
	counted int64 // sum of the shared row
	former  int64 // number of the shared row before this transaction; 0 = none
	number  int64 // number of the shared row since this transaction; 0 = unchanged
	shared  *audit.Event
	details []string // of all events of the shared row
}

// settleAudit numbers and writes the collected events. It comes after settleChanges, for the same
// reason, and always in this order, so that no two processes wait for each other. The one that has
// the counter's row is alone with the counts.
func (b *batch) settleAudit() error {
	if len(b.events) == 0 {
		return nil
	}
	now := time.Now()
	hour := millis(now.Truncate(hourOfCount))
	for i := range b.events {
		b.events[i] = complete(b.events[i], b.conn.addresses, now)
	}
	var last int64
	err := b.conn.one(b.ctx, countEvents, []any{len(b.events)}, &last)
	if err != nil {
		return fmt.Errorf("number events: %w", err)
	}
	counts, err := b.countEvents(hour)
	if err != nil {
		return fmt.Errorf("count events: %w", err)
	}
	if err := b.takeShared(counts); err != nil {
		return fmt.Errorf("count events: %w", err)
	}
	rows := placeEvents(b.events, counts, last-int64(len(b.events)))
	if err := b.moveShared(counts, hour); err != nil {
		return fmt.Errorf("count events: %w", err)
	}
	return wrap("save events", insertAll(b, auditTable, rows, eventValues))
}

// complete returns e as it is stored. Text that a database refuses is left out: it must not fail
// the write.
func complete(e audit.Event, addresses audit.Addresses, now time.Time) audit.Event {
	e.Time, e.From, e.Count = now, addresses.Keep(e.Caller), max(1, e.Count)
	if e.Outcome == "" {
		e.Outcome = audit.OK
	}
	for _, text := range []*string{&e.Subject.ClientID, &e.Target, &e.Actor.ID, &e.RequestID,
		&e.Browser} {
		if !isText(*text) {
			*text = ""
		}
	}
	return e
}

// countEvents adds the collected events to the counts of the hour.
func (b *batch) countEvents(hour int64) (counts []*eventCount, err error) {
	byKey := map[countKey]*eventCount{}
	byText := map[[3]string]*eventCount{}
	for i := range b.events {
		if b.events[i].ByOperator() {
			continue
		}
		key := keyOf(&b.events[i])
		c := byKey[key]
		if c == nil {
			c = &eventCount{countKey: key}
			byKey[key], byText[key.texts()] = c, c
			counts = append(counts, c)
		}
		c.added++
	}
	err = inRows(b, addCounts, counts, func(args []any, c **eventCount) []any {
		key := (*c).texts()
		return append(args, hour, key[0], key[1], key[2], (*c).added, int64(0), int64(0))
	}, func(text string, args []any) error {
		return b.conn.rows(b.ctx, text, args, func(r row) error {
			var key [3]string
			var events, counted, number int64
			if err := r.Scan(&key[0], &key[1], &key[2], &events, &counted, &number); err != nil {
				return err
			}
			c := byText[key]
			c.before, c.counted, c.former = events-c.added, counted, number
			return nil
		})
	})
	return counts, err
}

// texts returns the stored form of a key. It does not reveal the network.
func (k countKey) texts() [3]string {
	sum := sha256.Sum256([]byte(k.target + "\x00" + k.network.String()))
	return [3]string{k.subject.String() + " " + hex.EncodeToString(sum[:12]), string(k.action),
		string(k.outcome)}
}

// takeShared deletes the shared rows that get further events, and keeps their details.
func (b *batch) takeShared(counts []*eventCount) error {
	former := map[int64]*eventCount{}
	var numbers []int64
	for _, c := range counts {
		if c.former != 0 && c.before+c.added > audit.MaxRows {
			former[c.former], numbers = c, append(numbers, c.former)
		}
	}
	return inRows(b, takeEvents, numbers, func(args []any, number *int64) []any {
		return append(args, *number)
	}, func(text string, args []any) error {
		return b.conn.rows(b.ctx, text, args, func(r row) error {
			var number int64
			var details string
			err := r.Scan(&number, &details)
			if c := former[number]; err == nil && c != nil {
				c.details = strings.Fields(details)
			}
			return err
		})
	})
}

// placeEvents numbers events from above last and returns the rows to insert. Events above the limit
// of their key share one row, with the number of the newest and the details of all.
func placeEvents(events []audit.Event, counts []*eventCount, last int64) (rows []audit.Event) {
	byKey := map[countKey]*eventCount{}
	for _, c := range counts {
		byKey[c.countKey] = c
	}
	for i := range events {
		e, c := &events[i], byKey[keyOf(&events[i])]
		last++
		e.Number = last
		if c != nil && !e.ByOperator() {
			c.before++
		}
		if c == nil || e.ByOperator() || c.before <= audit.MaxRows {
			rows = append(rows, *e)
			continue
		}
		c.counted += int64(e.Count)
		c.number, c.shared = last, e
		for _, word := range e.Details {
			if !slices.Contains(c.details, word) {
				c.details = append(c.details, word)
			}
		}
	}
	for _, c := range counts {
		if c.shared != nil {
			c.shared.Count, c.shared.Details = int(c.counted), c.details
			rows = append(rows, *c.shared)
		}
	}
	return rows
}

// moveShared stores where the new shared rows are.
func (b *batch) moveShared(counts []*eventCount, hour int64) error {
	var moved []*eventCount
	for _, c := range counts {
		if c.shared != nil {
			moved = append(moved, c)
		}
	}
	return insertAll(b, moveCounts, moved, func(args []any, c **eventCount) []any {
		key := (*c).texts()
		return append(args, (*c).counted, (*c).number, hour, key[0], key[1], key[2])
	})
}

func eventValues(args []any, e *audit.Event) []any {
	return append(args, e.Number, millis(e.Time), string(e.Action), string(e.Outcome),
		e.Subject.UserID, e.Subject.ClientID, e.Target, strings.Join(e.Details, " "), int64(e.Count),
		string(e.Actor.Kind), e.Actor.ID, e.RequestID, e.From, e.Browser, dataText(e.Data))
}

// dataText returns the stored form of the data of an event.
func dataText(data audit.Data) string {
	if len(data) == 0 {
		return ""
	}
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // no event has a value that JSON cannot hold
	}
	return string(text)
}

// Record implements audit.Store.
func (s *Store) Record(ctx context.Context) error {
	return wrap("record events", s.do(ctx, func(*batch) error { return nil }))
}

// Events implements audit.Store.
func (s *Store) Events(ctx context.Context, f audit.Filter) (events []audit.Event, err error) {
	if !isText(f.ClientID) || !isText(string(f.Action)) {
		return nil, nil
	}
	if !f.Since.IsZero() && f.UserID == 0 && f.ClientID == "" {
		first, err := s.firstEvent(ctx, f.Since)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		f.After = max(f.After, first-1)
	}
	text, args := selectEvents(f)
	err = readAll(ctx, s, text, args, func(r row) error {
		e, err := scanEvent(r)
		events = append(events, e)
		return err
	})
	return events, wrap("read events", err)
}

const firstSince = `SELECT MIN(number) FROM audit WHERE time >= $1`

// firstEvent returns the smallest number of an event since a time. The events are not in the order
// of their times: clocks differ.
func (s *Store) firstEvent(ctx context.Context, since time.Time) (int64, error) {
	var first sql.NullInt64
	err := readOne(ctx, s, errors.New("no row"), firstSince, []any{millis(since)},
		func(r row) error { return r.Scan(&first) })
	if !first.Valid {
		return math.MaxInt64, err
	}
	return first.Int64, err
}

const eventColumns = `SELECT number, time, action, outcome, user_id, client_id, target, details, count, actor_kind, actor_id,
request_id, caller, browser, data FROM audit WHERE `

// clientEvents are the conditions of the three indexes by which a client has events.
var clientEvents = []string{
	"client_id = $4 AND client_id <> ''", "target = $4 AND target <> ''",
	"actor_id = $4 AND actor_kind IN ('client', 'operator')",
}

// selectEvents returns the query of a filter. Its expressions keep the databases from using another
// index than the one for the user, or else for the client, or else for the action.
func selectEvents(f audit.Filter) (text string, args []any) {
	before := f.Before
	if before == 0 {
		before = math.MaxInt64
	}
	args = []any{f.After, before, max(1, f.Limit)}
	place := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	order := " ORDER BY number"
	if f.Newest {
		order += " DESC"
	}
	order += " LIMIT CAST($3 AS BIGINT)"
	if f.ClientID != "" {
		place(f.ClientID)
	}
	where := "number > $1 AND number < $2"
	if f.UserID != 0 {
		where += " AND user_id <> 0 AND user_id = " + place(f.UserID)
	}
	if f.Action != "" && f.UserID == 0 && f.ClientID == "" {
		where += " AND action = " + place(string(f.Action))
	} else if f.Action != "" {
		where += " AND action || '' = " + place(string(f.Action))
	}
	if !f.Since.IsZero() {
		where += " AND time + 0 >= " + place(millis(f.Since))
	}
	if f.ClientID == "" {
		return eventColumns + where + order, args
	}
	var each []string
	for i, condition := range clientEvents {
		each = append(each, fmt.Sprintf("SELECT number FROM (SELECT number FROM audit WHERE %s AND %s%s) AS e%d",
			condition, where, order, i))
	}
	return eventColumns + "number IN (" + strings.Join(each, " UNION ") + ")" + order, args
}

func scanEvent(r row) (e audit.Event, err error) {
	var at int64
	var details, data string
	err = r.Scan(&e.Number, &at, &e.Action, &e.Outcome, &e.Subject.UserID, &e.Subject.ClientID,
		&e.Target, &details, &e.Count, &e.Actor.Kind, &e.Actor.ID, &e.RequestID, &e.From,
		&e.Browser, &data)
	e.Time = fromMillis(at)
	if err == nil && data != "" {
		err = json.Unmarshal([]byte(data), &e.Data)
	}
	e.Details = strings.Fields(details)
	if len(e.Details) == 0 {
		e.Details = nil
	}
	return e, err
}
