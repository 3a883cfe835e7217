package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

const (
	pathGroups     = "/admin/v1/groups"
	pathAttributes = "/admin/v1/attributes"
	pathClaims     = "/admin/v1/claims"
)

// groupCommand is gatehouse group.
type groupCommand struct {
	Create groupCreate `cmd:"" help:"Create a group of people."`
	List   groupList   `cmd:"" help:"List the groups."`
	Show   groupShow   `cmd:"" help:"Show a group and its members."`
	Delete groupDelete `cmd:"" help:"Delete a group; all members leave it."`
	Add    groupAdd    `cmd:"" help:"Add a user to a group."`
	Remove groupRemove `cmd:"" help:"Remove a user from a group."`
}

// Help is shown by gatehouse group --help.
func (*groupCommand) Help() string {
	return "Apps with the scope groups get the names of a person's groups, and client create --require-group " +
		"lets only members of a group in. The group gatehouse-operators always exists.\n\n" +
		groupExample("show")
}

// groupExample returns an example of a command, for a group that it creates first.
func groupExample(command string, more ...string) string {
	text := "Example:\n\n    gatehouse group create --demo ./gatehouse-demo " + command + "-team\n"
	for _, m := range more {
		text += "    gatehouse group " + m + " --demo ./gatehouse-demo " + command + "-team 1\n"
	}
	if len(more) > 0 {
		return text[:len(text)-1]
	}
	return text + "    gatehouse group " + command + " --demo ./gatehouse-demo " + command + "-team"
}

// groupArg names a group.
type groupArg struct {
	Name string `arg:"" name:"name" help:"The group's name: a to z, 0 to 9, dot, underscore and hyphen."`
}

type groupCreate struct {
	remoteFlags
	groupArg
}

// Help is shown by gatehouse group create --help.
func (*groupCreate) Help() string {
	return "Example:\n\n    gatehouse group create --demo ./gatehouse-demo engineering"
}

// Run creates a group.
func (c *groupCreate) Run(p *program) error {
	return c.act(p, http.MethodPost, pathGroups, map[string]any{"name": c.Name})
}

type groupList struct{ remoteFlags }

// Help is shown by gatehouse group list --help.
func (*groupList) Help() string {
	return "Example:\n\n    gatehouse group list --demo ./gatehouse-demo"
}

// Run lists the groups.
func (c *groupList) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	return r.list(pathGroups, "groups",
		[]column{member("NAME", "name"), member("MEMBERS", "members")}, "")
}

type groupShow struct {
	remoteFlags
	groupArg
}

// Help is shown by gatehouse group show --help.
func (*groupShow) Help() string {
	return groupExample("show")
}

// Run shows a group and its members.
func (c *groupShow) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	path := itemPath(pathGroups, c.Name)
	record, err := r.call(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	users := []json.RawMessage{}
	err = r.pages(path+"/members", "users", func(user json.RawMessage) error {
		users = append(users, user)
		return nil
	})
	if err != nil {
		return err
	}
	if r.json {
		var shown map[string]any
		if err := json.Unmarshal(record, &shown); err != nil {
			return fmt.Errorf("print response: %w", err)
		}
		shown["users"] = users
		text, err := json.Marshal(shown)
		if err != nil {
			return fmt.Errorf("print response: %w", err)
		}
		return printJSON(p.stdout, text)
	}
	if err := printRecord(p.stdout, record); err != nil || len(users) == 0 {
		return err
	}
	if err := r.say(""); err != nil {
		return err
	}
	return r.printList(users, []column{member("ID", "id"), member("NAME", "name"),
		member("EMAIL", "email"), member("DISABLED", "disabled")})
}

type groupDelete struct {
	remoteFlags
	groupArg
}

// Help is shown by gatehouse group delete --help.
func (*groupDelete) Help() string { return groupExample("delete") }

// Run deletes a group.
func (c *groupDelete) Run(p *program) error {
	return c.end(p, http.MethodDelete, itemPath(pathGroups, c.Name), nil, "deleted",
		map[string]any{"name": c.Name, "deleted": true})
}

// memberArgs name a group and a user.
type memberArgs struct {
	remoteFlags
	groupArg
	ID string `arg:"" name:"user-id" help:"The user's id, a number."`
}

// change adds or removes the user.
func (c *memberArgs) change(p *program, method, done string) error {
	return c.end(p, method, itemPath(pathGroups, c.Name, "members", c.ID), nil, done,
		map[string]any{"name": c.Name, "id": json.Number(c.ID), "member": method == http.MethodPut})
}

type groupAdd struct{ memberArgs }

// Help is shown by gatehouse group add --help.
func (*groupAdd) Help() string {
	return "Who is in the group already stays in it.\n\n" + groupExample("add", "add")
}

// Run adds a user to a group.
func (c *groupAdd) Run(p *program) error {
	return c.change(p, http.MethodPut, "the user is in the group")
}

type groupRemove struct{ memberArgs }

// Help is shown by gatehouse group remove --help.
func (*groupRemove) Help() string {
	return "Tokens of clients that need the group end at once.\n\n" + groupExample("remove", "add", "remove")
}

// Run removes a user from a group.
func (c *groupRemove) Run(p *program) error {
	return c.change(p, http.MethodDelete, "the user is not in the group")
}
