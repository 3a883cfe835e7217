package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"gatehouse/actors/oauth"
)

// act makes one call and prints the record of its response.
func (f *remoteFlags) act(p *program, method, path string, body any) error {
	r, err := f.connect(p)
	if err != nil {
		return err
	}
	response, err := r.call(method, path, body)
	if err != nil {
		return err
	}
	return r.show(response)
}

// idCommand is a command that makes one call about the client or the user with an id.
type idCommand struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"${id}"`

	help, method, collection string
	step                     string              // last part of the path; "" = none
	done                     string              // printed if the response is empty; "" = it is a record
	about                    func(id string) any // what --json prints in its place
}

// Help is shown by --help of the command.
func (c *idCommand) Help() string { return c.help }

// Run makes the call.
func (c *idCommand) Run(p *program) error {
	path := itemPath(c.collection, c.ID)
	if c.step != "" {
		path += "/" + c.step
	}
	if c.done == "" {
		return c.act(p, c.method, path, nil)
	}
	return c.end(p, c.method, path, nil, c.done, c.about(c.ID))
}

// itemPath returns the path of a member of a collection in the admin API, or of what is below it. A
// client may be named by the URL of the document that describes it.
func itemPath(collection, id string, more ...string) string {
	if collection == pathClients {
		id = oauth.StoredClientID(id)
	}
	for _, part := range slices.Insert(more, 0, id) {
		collection += "/" + url.PathEscape(part)
	}
	return collection
}

// end makes one call whose response is empty. It prints done, or about with --json.
func (f *remoteFlags) end(p *program, method, path string, body any, done string,
	about any) error {
	r, err := f.connect(p)
	if err != nil {
		return err
	}
	if _, err := r.call(method, path, body); err != nil {
		return err
	}
	if !f.JSON {
		return r.say(done)
	}
	text, err := json.Marshal(about)
	if err != nil {
		return fmt.Errorf("print response: %w", err)
	}
	return printJSON(p.stdout, text)
}

// show prints a record.
func (r *remote) show(record json.RawMessage) error {
	if r.json {
		return printJSON(r.p.stdout, record)
	}
	return printRecord(r.p.stdout, record)
}

// say prints a line for people.
func (r *remote) say(line string) error {
	_, err := fmt.Fprintln(r.p.stdout, line)
	return err
}

// setText sets a member if its flag was given.
func setText(body map[string]any, name string, value *string) {
	if value != nil {
		body[name] = *value
	}
}

// column is a column of a list.
type column struct {
	heading string
	of      func(record map[string]any) string
}

// member returns a column that shows a member as it is.
func member(heading, name string) column {
	return column{heading, func(record map[string]any) string { return cell(record[name]) }}
}

// list prints all records of a collection, page by page. member is the name of the list in a
// response. With by, it prints those whose member of that name is above 0, the highest first.
func (r *remote) list(path, member string, columns []column, by string) error {
	var all []json.RawMessage
	err := r.pages(path, member, func(record json.RawMessage) error {
		all = append(all, record)
		return nil
	})
	if err != nil {
		return err
	}
	if by != "" {
		all = highest(all, by)
	}
	return r.printList(all, columns)
}

// pages calls do for each record of a collection. member is the name of the list in a response.
func (r *remote) pages(path, member string, do func(json.RawMessage) error) error {
	after := ""
	for {
		response, err := r.call(http.MethodGet,
			path+"?"+url.Values{"limit": {"200"}, "after": {after}}.Encode(), nil)
		if err != nil {
			return err
		}
		var page map[string]json.RawMessage
		if err := json.Unmarshal(response, &page); err != nil {
			return fmt.Errorf("read list: %w", err)
		}
		var records []json.RawMessage
		var next string
		err = errors.Join(json.Unmarshal(page[member], &records), json.Unmarshal(page["next"], &next))
		if err != nil {
			return fmt.Errorf("read list: %w", err)
		}
		for _, record := range records {
			if err := do(record); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		if next == after {
			return errors.New("read list: the next page is the same page")
		}
		after = next
	}
}

// highest returns the records whose member is above 0, the highest first.
func highest(all []json.RawMessage, member string) []json.RawMessage {
	value := func(record json.RawMessage) float64 {
		var members map[string]any
		_ = json.Unmarshal(record, &members) // printList reads it again
		n, _ := members[member].(float64)
		return n
	}
	all = slices.DeleteFunc(all, func(record json.RawMessage) bool { return value(record) <= 0 })
	slices.SortStableFunc(all, func(a, b json.RawMessage) int { return cmp.Compare(value(b), value(a)) })
	return all
}

func (r *remote) printList(records []json.RawMessage, columns []column) error {
	if r.json {
		text, err := json.Marshal(slices.Concat([]json.RawMessage{}, records))
		if err != nil {
			return fmt.Errorf("print list: %w", err)
		}
		return printJSON(r.p.stdout, text)
	}
	table := newTable(r.p.stdout)
	for i, c := range columns {
		fmt.Fprint(table, map[bool]string{false: "\t"}[i == 0], c.heading)
	}
	fmt.Fprintln(table)
	for _, record := range records {
		var members map[string]any
		if err := json.Unmarshal(record, &members); err != nil {
			return fmt.Errorf("read list: %w", err)
		}
		for i, c := range columns {
			fmt.Fprint(table, map[bool]string{false: "\t"}[i == 0], c.of(members))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
