package console

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// activity shows how the service is, and the audit trail, the newest event first.
func (s *service) activity(o *operator) {
	if o.HTTP.IsPost() { // but for the form of languages, which Handle takes
		s.ShowProblem(o.HTTP, endpoint.ErrMethodNotAllowed)
		return
	}
	p := pages.ConsoleActivity{Console: s.screen(o, "activity"), Filter: pages.ActivityFilter{
		Action: o.param("action"), Since: o.param("since"), User: o.param("user"),
		Client: o.param("client")}}
	for _, a := range audit.Actions {
		p.Actions = append(p.Actions, string(a))
	}
	slices.Sort(p.Actions)
	health, err := s.health(o.Ctx, o.Now)
	if err != nil {
		s.WriteFailure(o.HTTP, "read how the service is", err)
		return
	}
	p.Health = health
	f, status := audit.Filter{Newest: true, Limit: listed + 1}, fasthttp.StatusOK
	if p.Problems = setFilter(&f, &p.Filter); p.Problems != nil {
		status = fasthttp.StatusUnprocessableEntity
	} else if !s.addEvents(o, f, &p) {
		return
	}
	s.WritePage(o.HTTP, status, p)
}

// setFilter sets what was entered. It returns what is wrong with that.
func setFilter(f *audit.Filter, entered *pages.ActivityFilter) (problems pages.Problems) {
	wrong := func(field string) {
		problems = append(problems, pages.Problem{Field: field, Text: texts.Of("console.wrong_" + field)})
	}
	if a := audit.Action(entered.Action); slices.Contains(audit.Actions, a) {
		f.Action = a
	} else if a != "" {
		wrong("action")
	}
	if entered.Since != "" {
		day, err := time.Parse(time.DateOnly, entered.Since)
		if f.Since = day; err != nil {
			wrong("since")
		}
	}
	if entered.User != "" {
		id, err := strconv.ParseInt(entered.User, 10, 64)
		if f.UserID = id; err != nil || id < 1 {
			wrong("user")
		}
	}
	if entered.Client != "" {
		if f.ClientID = entered.Client; !oauth.IsClientID(entered.Client) {
			wrong("client")
		}
	}
	return problems
}

// addEvents adds a page of events. It returns false if it responded.
func (s *service) addEvents(o *operator, f audit.Filter, p *pages.ConsoleActivity) bool {
	f.Before, _ = strconv.ParseInt(o.param("before"), 10, 64)
	f.Before = max(0, f.Before)
	events, err := s.audit.Events(o.Ctx, f)
	if err != nil {
		s.WriteFailure(o.HTTP, "read the audit trail", err)
		return false
	}
	query := url.Values{}
	for name, text := range map[string]string{"action": p.Filter.Action, "since": p.Filter.Since,
		"user": p.Filter.User, "client": p.Filter.Client} {
		if text != "" {
			query.Set(name, text)
		}
	}
	if f.Before > 0 {
		p.First = pages.PathConsoleActivity + "?" + query.Encode()
	}
	if len(events) > listed {
		events = events[:listed]
		query.Set("before", strconv.FormatInt(events[listed-1].Number, 10))
		p.Next = pages.PathConsoleActivity + "?" + query.Encode()
	}
	n := names{service: s, ctx: o.Ctx, known: map[string]any{}}
	for i := range events {
		p.Events = append(p.Events, n.shown(&events[i]))
	}
	if n.err != nil {
		s.WriteFailure(o.HTTP, "read names", n.err)
		return false
	}
	read := audit.Data{"events": len(events)}
	if f.UserID != 0 {
		read["user"] = f.UserID
	}
	if f.ClientID != "" {
		read["client"] = f.ClientID
	}
	if f.Action != "" {
		read["action"] = f.Action
	}
	s.recordRead(o, audit.Event{Action: audit.TrailRead, Data: read})
	return true
}

// health returns how the service is.
func (s *service) health(ctx context.Context, now time.Time) ([]pages.Health, error) {
	h := s.config.Health()
	ready := texts.Of("console.ready")
	if h.Unready != "" {
		ready = texts.Of("console.unready", "why", h.Unready)
	}
	nodes := texts.Of("console.one_node")
	if h.Nodes > 0 {
		nodes = texts.Of("console.nodes_up", "n", h.Nodes, "up", h.Up)
	}
	waiting, err := s.people.MessagesWaiting(ctx, now)
	if err != nil {
		return nil, err
	}
	var keys, ends []texts.Text
	for _, purpose := range oauth.Purposes {
		keys = append(keys, texts.Of("console.key_age", "purpose", string(purpose),
			"ago", texts.Ago(s.tokens.Keys(purpose)[0].Made, now)))
	}
	for _, c := range h.Certificates {
		ends = append(ends, texts.Of("console.certificate_ends", "use", c.Use, "day", texts.Day(c.Ends),
			"n", max(0, int(c.Ends.Sub(now)/(24*time.Hour)))))
	}
	if ends == nil {
		ends = []texts.Text{texts.Of("console.no_certificates")}
	}
	return []pages.Health{
		{Label: texts.Of("console.service"), Lines: []texts.Text{ready, nodes}},
		{Label: texts.Of("console.messages"),
			Lines: []texts.Text{texts.Of("console.messages_waiting", "n", waiting)}},
		{Label: texts.Of("console.keys"), Lines: keys},
		{Label: texts.Of("console.certificates"), Lines: ends},
	}, nil
}
