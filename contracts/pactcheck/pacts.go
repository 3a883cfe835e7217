package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/contracts"
	"gatehouse/contracts/broker"
	"gatehouse/contracts/report"
)

// pact is a pact to verify.
type pact struct {
	*contracts.Pact
	broken  bool           // nobody can read it: its only interaction says why
	broker  *broker.Client // nil for a file
	offered broker.Pact    // zero for a file
}

// isURL reports whether a source is a broker or one of its pacts, and not a file.
func isURL(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}

// read returns the pacts that the command line names. It reads all files before it asks a broker.
// untried joins what is wrong with files: those pacts or interactions fail, and the others are
// verified. No interaction to verify is a usageError.
func (c *verifyCommand) read(p *program) (all []pact, untried, err error) {
	found, brokers := make([][]pact, len(c.Sources)), make([]*broker.Client, len(c.Sources))
	var problems []error
	for i, name := range c.Sources {
		var err error
		if isURL(name) {
			brokers[i], err = broker.New(broker.Config{URL: name, Token: c.Token,
				Username: c.Username, Password: c.Password})
		} else if found[i], err = readPacts(p, name, c.Provider); err == nil {
			found[i], err = c.choose(p, found[i])
			untried = errors.Join(untried, c.check(found[i]))
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, nil, unverified(err)
	}
	for i, client := range brokers {
		if client == nil {
			continue
		}
		if found[i], err = c.fetch(p, client); err != nil {
			return nil, nil, unverified(err)
		}
	}
	if all = slices.Concat(found...); !slices.ContainsFunc(all,
		func(one pact) bool { return len(one.Interactions) > 0 }) {
		return nil, nil, c.nothing(len(all) > 0)
	}
	return all, untried, nil
}

// nothing returns why there is nothing to verify. empty means that there are pacts without
// interactions.
func (c *verifyCommand) nothing(empty bool) error {
	of := ""
	if len(c.Consumers) > 0 {
		of = " of the consumer " + strings.Join(c.Consumers, " or ")
	}
	if empty {
		return usagef("there is nothing to verify: the pacts%s with the provider %s have no interaction",
			of, c.Provider)
	}
	return usagef("there is nothing to verify: %s have no pact%s with the provider %s",
		strings.Join(c.Sources, ", "), of, c.Provider)
}

// fetch returns the pacts that a broker wants to be verified. What is wrong with one of them is a
// failure of that pact: it does not keep the others from being verified.
func (c *verifyCommand) fetch(p *program, client *broker.Client) ([]pact, error) {
	offers, err := client.Pacts(p.ctx, c.query(c.Provider))
	if err != nil {
		return nil, err
	}
	var all []pact
	for _, offered := range offers {
		one, err := contracts.ReadPact(offered.Content, offered.Source)
		if err != nil {
			one = unreadable(offered.Source, offered.Consumer, c.Provider, err)
		}
		all = append(all, pact{one, err != nil, client, offered})
	}
	return c.choose(p, all)
}

// unreadable returns a pact whose only interaction fails because of err.
func unreadable(source, consumer, provider string, err error) *contracts.Pact {
	return &contracts.Pact{Source: source, Consumer: cmp.Or(consumer, "unknown"),
		Provider: provider, Interactions: []contracts.Interaction{{
			Description: "the pact itself", HTTP: true, Problem: err.Error()}}}
}

// choose returns the pacts of the wanted provider and consumers. It prints which ones it leaves
// out.
func (c *verifyCommand) choose(p *program, all []pact) (chosen []pact, err error) {
	for _, one := range all {
		if one.broken {
			chosen = append(chosen, one)
			continue
		}
		if len(c.Consumers) > 0 && !slices.Contains(c.Consumers, one.Consumer) {
			continue
		}
		if one.Provider != c.Provider {
			_, werr := fmt.Fprintf(p.stdout, "left out: %s is a contract with the provider %s\n",
				report.Line(one.Source), report.Line(one.Provider))
			err = errors.Join(err, werr)
			continue
		}
		chosen = append(chosen, one)
	}
	return chosen, err
}

// check returns an error for interactions that cannot be tried. It joins every problem; the states
// of a remote service are unknown.
func (c *verifyCommand) check(all []pact) (err error) {
	for _, one := range all {
		if c.BaseURL == nil {
			err = errors.Join(err, one.Check())
		} else {
			err = errors.Join(err, one.Malformed())
		}
	}
	return err
}

// readPacts reads a pact file, or those of a folder and the folders in it. A file that is broken
// becomes a pact that fails. JSON files of a folder that are something else are left out; it prints
// which. provider is that of broken pacts.
func readPacts(p *program, name, provider string) ([]pact, error) {
	files, err := readFiles(name)
	if err != nil {
		return nil, err
	}
	var all []pact
	for _, f := range files {
		one, err := contracts.ReadPact(f.text, f.name)
		if err != nil && f.name != name && !contracts.ResemblesPact(f.text) {
			if _, err := fmt.Fprintf(p.stdout, "left out: %s is not a pact\n",
				report.Line(f.name)); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			one = unreadable(f.name, "", provider, err)
		}
		all = append(all, pact{Pact: one, broken: err != nil})
	}
	return all, nil
}

// file is a file of the command line.
type file struct {
	name string
	text []byte
}

// readFiles reads a file, or the JSON files of a folder and of the folders in it. It leaves out
// node_modules and folders whose names begin with a dot.
func readFiles(name string) ([]file, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	names := []string{name}
	if info.IsDir() {
		if names, err = jsonFiles(name); err != nil {
			return nil, err
		}
	}
	var all []file
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name, text})
	}
	return all, nil
}

// jsonFiles returns the names of the JSON files below a folder, in their order.
func jsonFiles(folder string) (names []string, err error) {
	err = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		base := filepath.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != folder && (base == "node_modules" || base[0] == '.'):
			return fs.SkipDir
		case !entry.IsDir() && filepath.Ext(name) == ".json":
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
