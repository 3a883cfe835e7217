package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/gatehouse/ascode"
)

// exitWouldChange is the exit code of a dry run that finds differences.
const exitWouldChange = 3

// secretCommand is gatehouse secret.
type secretCommand struct{}

// Help is shown by gatehouse secret --help.
func (*secretCommand) Help() string {
	return "It has 256 random bits and a checksum. Keep it in a file that only its users read, and name " +
		"that file among the secrets of a client for gatehouse apply.\n\n" +
		"Example:\n\n    (umask 077; gatehouse secret > shop.secret)"
}

// Run prints a secret.
func (*secretCommand) Run(p *program) error {
	_, err := fmt.Fprintln(p.stdout, oauth.NewClientSecret())
	return err
}

// applyCommand is gatehouse apply.
type applyCommand struct {
	remoteFlags
	File   string `name:"file" short:"f" placeholder:"FILE-OR-DIR" help:"File, folder with files *.yaml and *.yml, or - for stdin."`
	DryRun bool   `name:"dry-run" help:"Change nothing. Exits with 3 when something would change."`
	Prune  bool   `name:"prune" help:"Delete what an earlier apply of the same sets made and the files no longer have."`
	Schema bool   `name:"schema" help:"Print the JSON Schema of the files."`
}

// Help is shown by gatehouse apply --help.
func (*applyCommand) Help() string {
	return "Makes clients, resources, providers, groups, attributes and claims of a server those of the files, and prints what differs. " +
		"Repeated, it changes nothing. An object that cannot be applied stays as it is; the others " +
		"are applied, and the command exits with 1. docs/ascode.md has all keys.\n\n" +
		"Example:\n\n    gatehouse apply --schema\n" +
		"    gatehouse export --demo ./gatehouse-demo | gatehouse apply --demo ./gatehouse-demo -f - --dry-run || [ $? = 3 ]"
}

// Run applies the files.
func (c *applyCommand) Run(p *program) error {
	if c.Schema {
		_, err := p.stdout.Write(ascode.Schema())
		return err
	}
	if c.File == "" {
		return usagef("--file: must be given: a file, a folder, or - for stdin")
	}
	sets, err := ascode.Read(c.File, p.stdin, p.secretsOfClients())
	if err != nil {
		return usagef("--file: %v", err)
	}
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	a := &apply{remote: r, dry: c.DryRun, prune: c.Prune, counts: map[string]int{}}
	return a.run(sets)
}

// apply is one run of gatehouse apply.
type apply struct {
	*remote
	dry, prune bool
	known      map[string]map[string]ascode.Record // by kind and ID
	changes    []applied
	counts     map[string]int // by what was done
	failed     bool
}

// applied is a change of an object, or one that failed.
type applied struct {
	Kind    string   `json:"kind"`
	ID      string   `json:"id"`
	Action  string   `json:"action"` // create, change, delete or fail
	Details []string `json:"details,omitempty"`
}

func (a *apply) run(sets []*ascode.Set) error {
	a.known = map[string]map[string]ascode.Record{}
	for _, kind := range ascode.Kinds {
		records, err := a.records(kind)
		if err != nil {
			return err
		}
		a.known[kind.Name] = records
	}
	named, described := map[string]bool{}, map[string]bool{}
	for _, of := range ascode.Kinds {
		kind := of.Name
		for _, s := range sets {
			named[s.Name] = true
			for _, o := range s.Objects {
				if o.Kind != kind {
					continue
				}
				described[kind+" "+o.ID] = true
				if err := a.object(&o); err != nil {
					return err
				}
			}
		}
	}
	if a.prune {
		if err := a.pruneSets(named, described); err != nil {
			return err
		}
	}
	return a.end()
}

// pathOf returns the path of a kind of objects in the admin API.
func pathOf(kind ascode.Kind) string { return "/admin/v1/" + kind.List }

// records returns all records of a kind by their id.
func (r *remote) records(kind ascode.Kind) (map[string]ascode.Record, error) {
	all := map[string]ascode.Record{}
	err := r.pages(pathOf(kind), kind.List, func(text json.RawMessage) error {
		var record ascode.Record
		if err := json.Unmarshal(text, &record); err != nil {
			return fmt.Errorf("read list: %w", err)
		}
		all[record.Text(kind.ID)] = record
		return nil
	})
	return all, err
}

// object makes an object what the files say. The error ends the run.
func (a *apply) object(o *ascode.Object) error {
	old, exists := a.known[o.Kind][o.ID]
	if set := old.Text("set"); set != "" && set != o.Set {
		a.fail(o.Kind, o.ID, fmt.Sprintf("%s: it belongs to the set %q; take it out there first", o.Where, set))
		return nil
	}
	if !exists && !a.dry {
		return a.put(o, "create", nil)
	}
	text, err := a.call(http.MethodPut, putPath(o)+"?dry_run=true", o.Body)
	if err != nil {
		return a.failure(o, err)
	}
	var next ascode.Record
	if err := json.Unmarshal(text, &next); err != nil {
		return fmt.Errorf("read response: %w", err)
	}
	details := ascode.Differences(o.Kind, old, next)
	switch {
	case !exists:
		a.report(applied{o.Kind, o.ID, "create", details})
	case details == nil:
		a.counts["unchanged"]++
	case a.dry:
		a.report(applied{o.Kind, o.ID, "change", details})
	default:
		return a.put(o, "change", details)
	}
	return nil
}

// put writes an object.
func (a *apply) put(o *ascode.Object, action string, details []string) error {
	if _, err := a.call(http.MethodPut, putPath(o), o.Body); err != nil {
		return a.failure(o, err)
	}
	a.report(applied{o.Kind, o.ID, action, details})
	return nil
}

func putPath(o *ascode.Object) string {
	if o.Kind == ascode.Resource {
		return pathResources
	}
	return itemPath(pathOf(ascode.KindOf(o.Kind)), o.ID)
}

// failure notes that an object could not be applied. It returns err if the server cannot be reached
// or does not let the operator in: then no other object could be applied either.
func (a *apply) failure(o *ascode.Object, err error) error {
	var status *statusError
	if !errors.As(err, &status) || status.status == http.StatusUnauthorized ||
		status.status == http.StatusForbidden {
		return fmt.Errorf("%s %s: %w", o.Kind, o.ID, err)
	}
	a.fail(o.Kind, o.ID, o.Where+": "+err.Error())
	return nil
}

func (a *apply) fail(kind, id, why string) {
	a.failed = true
	a.report(applied{kind, id, "fail", []string{why}})
}

// report notes a change, and prints it unless the output is JSON.
func (a *apply) report(c applied) {
	a.counts[c.Action]++
	a.changes = append(a.changes, c)
	if a.json {
		return
	}
	line := printable(c.Kind + " " + c.ID + ": " + c.Action)
	if c.Action == "fail" {
		fmt.Fprintln(a.p.stderr, "gatehouse: "+printable(c.Kind+" "+c.ID+" stays as it is: "+c.Details[0]))
		return
	}
	fmt.Fprintln(a.p.stdout, line)
	for _, d := range c.Details {
		fmt.Fprintln(a.p.stdout, "  "+printable(d))
	}
}

// pruneSets deletes the objects of the named sets that are not described.
func (a *apply) pruneSets(named, described map[string]bool) error {
	for _, of := range slices.Backward(ascode.Kinds) {
		kind := of.Name
		for _, id := range slices.Sorted(maps.Keys(a.known[kind])) {
			record := a.known[kind][id]
			if !named[record.Text("set")] || described[kind+" "+id] || record["declared"] == true {
				continue
			}
			if kind == ascode.Client && id == a.clientID {
				a.fail(kind, id, "--prune: this command uses the client itself")
				continue
			}
			path := itemPath(pathOf(of), id)
			if kind == ascode.Resource {
				path = pathResources + "/" + fmt.Sprint(record["number"])
			}
			if !a.dry {
				var status *statusError
				_, err := a.call(http.MethodDelete, path, nil)
				if err != nil && !(errors.As(err, &status) && status.status == http.StatusNotFound) {
					if err := a.failure(&ascode.Object{Kind: kind, ID: id, Where: "--prune"}, err); err != nil {
						return err
					}
					continue
				}
			}
			a.report(applied{kind, id, "delete", nil})
		}
	}
	return nil
}

// end prints the summary.
func (a *apply) end() error {
	if a.json {
		text, err := json.Marshal(map[string]any{"dry_run": a.dry, "unchanged": a.counts["unchanged"],
			"changes": slices.Concat([]applied{}, a.changes)})
		if err != nil {
			return fmt.Errorf("print changes: %w", err)
		}
		if err := printJSON(a.p.stdout, text); err != nil {
			return err
		}
	} else {
		would := ""
		if a.dry {
			would = "would be "
		}
		line := fmt.Sprintf("%s%d created, %d changed, %d deleted; %d unchanged, %d failed", would,
			a.counts["create"], a.counts["change"], a.counts["delete"], a.counts["unchanged"], a.counts["fail"])
		if err := a.say(line); err != nil {
			return err
		}
	}
	switch {
	case a.failed:
		return &exitError{exitFailed}
	case a.dry && len(a.changes) > 0:
		return &exitError{exitWouldChange}
	}
	return nil
}

// exportCommand is gatehouse export.
type exportCommand struct{ remoteFlags }

// Help is shown by gatehouse export --help.
func (*exportCommand) Help() string {
	return "Prints clients, resources, providers, groups, attributes and claims as files for gatehouse apply. Secrets of clients are hashes, and those of " +
		"providers names of files that you fill. " +
		"Clients that registered themselves are left out.\n\n" +
		"Example:\n\n    gatehouse export --demo ./gatehouse-demo"
}

// Run prints all objects.
func (c *exportCommand) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	lists := map[string][]ascode.Record{}
	for _, kind := range ascode.Kinds {
		lists[kind.List] = []ascode.Record{}
		err := r.pages(pathOf(kind), kind.List, func(text json.RawMessage) error {
			var record ascode.Record
			if err := json.Unmarshal(text, &record); err != nil {
				return fmt.Errorf("read list: %w", err)
			}
			if record["self_registered"] != true && record["name"] != account.OperatorsGroup {
				lists[kind.List] = append(lists[kind.List], record)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if c.JSON {
		text, err := json.Marshal(lists)
		if err != nil {
			return fmt.Errorf("print objects: %w", err)
		}
		return printJSON(p.stdout, text)
	}
	text, err := ascode.Write(lists)
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(text)
	return err
}
