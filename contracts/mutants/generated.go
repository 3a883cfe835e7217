package mutants

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gatehouse/contracts/coverage"
)

// Generated returns the mutants of the parts that pacts pin: each part of each response is left
// out, renamed, null, of another type or of another value. A mutant fails with the first
// interaction that pins the part in that response. Operations of the admin API share their errors:
// each part of those is tried in one response of each status.
func Generated(parts []*coverage.Part) []Mutant {
	var all []Mutant
	for _, part := range parts {
		seen := map[string]bool{}
		for _, pin := range part.Pins {
			response := pin.Response()
			if strings.Contains(pin.Operation, " /admin/") && pin.Status >= http.StatusBadRequest {
				response = strconv.Itoa(pin.Status)
			}
			if seen[response] {
				continue
			}
			seen[response] = true
			for _, d := range defects(pin) {
				name := strings.TrimPrefix(part.Name, pin.Response())
				all = append(all, Mutant{Name: strings.TrimSpace(name + " " + d.name),
					Operation: pin.Operation, Status: pin.Status, Interaction: pin.Interaction,
					Wrap: changed(d.change)})
			}
		}
	}
	return all
}

// defect is what may be wrong with a part.
type defect struct {
	name   string
	change change
}

// defects returns the defects of a part in the place where an interaction pins it.
func defects(pin coverage.Pin) []defect {
	p := pin.Place
	path := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(p.Path, "$"), "."), "[*]", ".*")
	switch {
	case p.In == coverage.Status:
		return []defect{{"is the next status", func(a *response) { a.status++ }}}
	case p.In == coverage.Header && p.Other == nil:
		return []defect{{"is missing", without(p.Name)}}
	case p.In == coverage.Header:
		return []defect{{"is another", header(p.Name, fmt.Sprint(p.Other))}}
	case p.In == coverage.Redirect && p.Other == nil:
		return []defect{{"is missing", redirect(func(q url.Values) { q.Del(p.Name) })}}
	case p.In == coverage.Redirect:
		return []defect{{"is another",
			redirect(func(q url.Values) { q.Set(p.Name, fmt.Sprint(p.Other)) })}}
	case p.In != coverage.Body:
		return nil
	case p.Kind == coverage.Closed:
		return []defect{{"has a member more", extra(path)}}
	case p.Kind == coverage.LeftOut:
		return []defect{{"is there", added(path)}}
	case p.Kind == "" && pin.Status >= http.StatusBadRequest:
		return []defect{{"is another", set(path, p.Other)}, {"is no error", status(http.StatusOK)}}
	case p.Kind == "":
		return []defect{{"is another", set(path, p.Other)}}
	case p.Kind == "null":
		return []defect{{"is missing", drop(path)}, {"is empty", set(path, "")}}
	}
	all := []defect{{"is missing", drop(path)}, {"is renamed", rename(path, "renamed")},
		{"is null", set(path, nil)}, {"has another type", set(path, otherType[p.Kind])}}
	if p.Kind == "integer" {
		all = append(all, defect{"is a fraction", set(path, json.Number("0.5"))})
	}
	return all
}

// otherType holds a value of another type for each type of a member.
var otherType = map[string]any{"string": 12, "integer": "12", "number": "12", "boolean": "true",
	"array": "made_up", "object": "made_up"}
