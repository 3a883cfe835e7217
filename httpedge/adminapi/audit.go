package adminapi

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// eventPage is a page of the audit trail.
type eventPage struct {
	Events []audit.Event `json:"events"`
	// Next is the parameter after of the next page, or before if the newest come first; "" = none.
	Next string `json:"next"`
}

func listEvents(c *adminCall) (any, error) {
	params, ok := endpoint.ParseParameters(c.URI().QueryString())
	if !ok {
		return nil, endpoint.ErrInvalidRequest.Saying("The query is malformed.")
	}
	f, err := eventFilter(params)
	if err != nil {
		return nil, err
	}
	events, err := c.audit.Events(c.context, f)
	if err != nil {
		return nil, err
	}
	c.recordTrailRead(f, events)
	page := eventPage{Events: append([]audit.Event{}, events...)}
	if len(events) == f.Limit {
		page.Next = strconv.FormatInt(events[f.Limit-1].Number, 10)
	}
	return page, nil
}

// recordTrailRead records that the operator has read events. A program that follows the trail
// reads that too: a page that goes on and has nothing else is not recorded, or there would be no end.
func (c *adminCall) recordTrailRead(f audit.Filter, events []audit.Event) {
	onlyReads := !slices.ContainsFunc(events, func(e audit.Event) bool {
		return e.Action != audit.TrailRead
	})
	if onlyReads && f.After > 0 {
		return
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
	c.recordRead(audit.Event{Action: audit.TrailRead, Data: read})
}

// eventFilter reads the parameters of the audit trail. A repeated one is refused: without it, more
// events would be selected.
func eventFilter(params []oauth.Parameter) (f audit.Filter, err error) {
	f.Limit = defaultPage
	seen := map[string]bool{}
	for _, p := range params {
		if seen[p.Name] {
			return f, account.FieldError{Field: p.Name, Message: "is repeated"}
		}
		seen[p.Name] = true
		if p.Value == "" {
			continue
		}
		if err := setFilter(&f, p); err != nil {
			return f, err
		}
	}
	return f, nil
}

// setFilter applies one parameter to f. Unknown ones are ignored.
func setFilter(f *audit.Filter, p oauth.Parameter) (err error) {
	ok, must := true, "must be the number of an event"
	switch p.Name {
	case "after":
		f.After, err = strconv.ParseInt(p.Value, 10, 64)
		ok = err == nil && f.After >= 0
	case "before":
		f.Before, err = strconv.ParseInt(p.Value, 10, 64)
		ok = err == nil && f.Before >= 1
	case "since":
		f.Since, err = time.Parse(time.RFC3339, p.Value)
		ok, must = err == nil, "must be a time such as 2026-05-03T12:00:00Z"
	case "user":
		f.UserID, err = strconv.ParseInt(p.Value, 10, 64)
		ok, must = err == nil && f.UserID >= 1, "must be the id of a user, a number"
	case "client":
		f.ClientID = p.Value
		ok, must = oauth.IsClientID(p.Value), "must be the id of a client"
	case "action":
		f.Action = audit.Action(p.Value)
		ok, must = slices.Contains(audit.Actions, f.Action), "must be one of "+actions()
	case "order":
		f.Newest = p.Value == "newest"
		ok, must = f.Newest || p.Value == "oldest", "must be oldest or newest"
	case "limit":
		f.Limit, err = pageLimit(p.Value)
		return err
	}
	if !ok {
		return account.FieldError{Field: p.Name, Message: must}
	}
	return nil
}

// actions returns the vocabulary, as in "a, b, c".
func actions() string {
	var names []string
	for _, a := range audit.Actions {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}
