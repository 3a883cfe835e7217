package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

type auditCommand struct {
	remoteFlags
	Follow bool        `name:"follow" short:"f" help:"Go on with new events as they come, until SIGINT. Without --since, print new events only."`
	Since  sinceTime   `name:"since" placeholder:"TIME" help:"Events since then: a duration such as 24h, or a time such as 2026-05-03, '2026-05-03 12:00' (local time) or 2026-05-03T12:00:00Z."`
	User   string      `name:"user" placeholder:"ID" help:"Events about this user."`
	Client string      `name:"client" placeholder:"ID" help:"Events about this client, by it, or that involve it."`
	Action auditAction `name:"action" placeholder:"ACTION" help:"Events with this action, such as sign_in. A wrong one lists all."`
}

// Help is shown by gatehouse audit --help.
func (*auditCommand) Help() string {
	return "The audit trail says who did what, the oldest event first. --json prints one event a " +
		"line.\n\nExample:\n\n    gatehouse audit --demo ./gatehouse-demo --since 24h --action sign_in\n" +
		"    gatehouse audit --demo ./gatehouse-demo --follow --json"
}

// auditAction is an action of the audit trail; "" = all.
type auditAction audit.Action

func parseAuditAction(text string, _ *kong.Tag) (auditAction, error) {
	if slices.Contains(audit.Actions, audit.Action(text)) {
		return auditAction(text), nil
	}
	var names []string
	for _, a := range audit.Actions {
		names = append(names, string(a))
	}
	return "", fmt.Errorf("must be one of %s", strings.Join(names, ", "))
}

// sinceTime is a time, or a duration before the time when it was read. The zero value is none.
type sinceTime struct{ time.Time }

// sinceForms are how a time can be given; local where it has no zone.
var sinceForms = []string{time.RFC3339, time.DateOnly, "2006-01-02 15:04", time.DateTime}

func parseSince(text string, _ *kong.Tag) (sinceTime, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return sinceTime{time.Now().Add(-d)}, nil
	}
	for _, form := range sinceForms {
		if at, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return sinceTime{at}, nil
		}
	}
	return sinceTime{}, errors.New("must be a duration such as 24h, or a time such as 2026-05-03, " +
		"'2026-05-03 12:00' or 2026-05-03T12:00:00Z")
}

const followEvery = time.Second

// Run prints events.
func (c *auditCommand) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	reader := &auditReader{remote: r, query: url.Values{"limit": {"200"}}}
	for name, value := range map[string]string{"user": c.User, "client": oauth.StoredClientID(c.Client),
		"action": string(c.Action)} {
		if value != "" {
			reader.query.Set(name, value)
		}
	}
	if !c.Since.IsZero() {
		reader.query.Set("since", c.Since.UTC().Format(time.RFC3339Nano))
	}
	if !c.Follow {
		return reader.print()
	}
	end, err := reader.end()
	if err != nil {
		return err
	}
	if c.Since.IsZero() {
		reader.after = end
	}
	err = reader.print()
	reader.from(max(reader.after, end))
	return reader.follow(err)
}

// auditReader prints the events of the trail that query selects.
type auditReader struct {
	*remote
	query  url.Values
	after  int64 // number of the last event that was printed or is left out
	widths []int // of the columns of the table; nil before its heading
}

// page requests the events after r.after and prints them.
func (r *auditReader) page() (more bool, err error) {
	r.query.Set("after", strconv.FormatInt(r.after, 10))
	events, next, err := r.request(r.query)
	if err != nil {
		return false, err
	}
	if err := r.printEvents(events); err != nil {
		return false, &printError{err}
	}
	for _, e := range events {
		r.from(e.Number)
	}
	return next != "" && len(events) > 0, nil
}

// from leaves out events up to a number. Those behind it need no time.
func (r *auditReader) from(number int64) {
	if number > r.after {
		r.after = number
		r.query.Del("since")
	}
}

// print prints all events, page by page.
func (r *auditReader) print() error {
	for {
		if more, err := r.page(); err != nil || !more {
			return err
		}
	}
}

// end returns the number of the newest event of all; 0 = there is none.
func (r *auditReader) end() (int64, error) {
	events, _, err := r.request(url.Values{"order": {"newest"}, "limit": {"1"}})
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[0].Number, nil
}

// follow prints new events until the program is asked to stop. It goes on when the server does not
// respond. err is the error of what was printed before.
func (r *auditReader) follow(err error) error {
	failing := false
	for {
		switch {
		case r.p.ctx.Err() != nil:
			return nil
		case err != nil && !isTemporary(err):
			return err
		case err != nil && !failing:
			fmt.Fprintf(r.p.stderr, "gatehouse: %s; trying again\n", oneLine(err.Error()))
		case err == nil && failing:
			fmt.Fprintf(r.p.stderr, "gatehouse: the server responds again\n")
		}
		failing = err != nil
		select {
		case <-r.p.ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
		err = r.print()
	}
}

// isTemporary reports whether a call may succeed later.
func isTemporary(err error) bool {
	var refused *statusError
	if errors.As(err, &refused) {
		return refused.status >= 500 || refused.status == http.StatusTooManyRequests
	}
	var printing *printError
	return !errors.As(err, &printing)
}

// printError is an error of the program's own output.
type printError struct{ error }

// Unwrap returns the error.
func (e *printError) Unwrap() error { return e.error }

// auditEvent is an event, and its JSON.
type auditEvent struct {
	audit.Event
	text json.RawMessage
}

// UnmarshalJSON reads an event.
func (e *auditEvent) UnmarshalJSON(text []byte) error {
	e.text = slices.Clone(text)
	return json.Unmarshal(text, &e.Event)
}

func (r *auditReader) request(query url.Values) (events []auditEvent, next string, err error) {
	response, err := r.call(http.MethodGet, "/admin/v1/audit?"+query.Encode(), nil)
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Events []auditEvent `json:"events"`
		Next   *string      `json:"next"`
	}
	if err := json.Unmarshal(response, &page); err != nil {
		return nil, "", fmt.Errorf("read list: %w", err)
	}
	if page.Next == nil {
		return nil, "", errors.New("read list: the response has no next")
	}
	return page.Events, *page.Next, nil
}

// auditHeading names the columns of the table.
var auditHeading = []string{"TIME", "ACTION", "OUTCOME", "COUNT", "SUBJECT", "TARGET", "ACTOR",
	"CALLER", "DETAILS", "DATA"}

func (r *auditReader) printEvents(events []auditEvent) error {
	var out bytes.Buffer
	if r.json {
		for _, e := range events {
			if err := json.Compact(&out, e.text); err != nil {
				return fmt.Errorf("print event: %w", err)
			}
			out.WriteByte('\n')
		}
	} else {
		r.tabulate(&out, events)
	}
	_, err := out.WriteTo(r.p.stdout)
	return err
}

// tabulate writes events as rows of the table. Columns grow with what was printed so far, so that
// the events that come later stay aligned.
func (r *auditReader) tabulate(w io.Writer, events []auditEvent) {
	var rows [][]string
	if r.widths == nil {
		r.widths = make([]int, len(auditHeading))
		rows = append(rows, auditHeading)
	}
	for _, e := range events {
		rows = append(rows, e.cells())
	}
	for _, row := range rows {
		for i, text := range row {
			r.widths[i] = max(r.widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, text := range row {
			fmt.Fprintf(&line, "%-*s  ", r.widths[i], text)
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// data returns what the event says besides as JSON; "" = nothing.
func (e *auditEvent) data() string {
	if len(e.Data) == 0 {
		return ""
	}
	text, err := json.Marshal(e.Data)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// cells returns the columns of an event.
func (e *auditEvent) cells() []string {
	actor := string(e.Actor.Kind)
	if e.Actor.ID != "" {
		actor += ":" + e.Actor.ID
	}
	row := []string{e.Time.Local().Format(time.DateTime), string(e.Action), string(e.Outcome),
		strconv.Itoa(e.Count), e.Subject.String(), e.Target, first(actor, "system"), e.From,
		strings.Join(e.Details, " "), e.data()}
	for i, text := range row {
		row[i] = cell(text)
	}
	return row
}
