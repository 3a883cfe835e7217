//go:build pact

package main

import (
	"cmp"
	"errors"
	"fmt"
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
	broker  *broker.Client // nil for a file
	offered broker.Pact    // zero for a file
}

// read returns the pacts that the command line names. It reads and checks all files before it asks
// a broker. No interaction to verify is a usageError, as is every problem with a file.
func (c *verifyCommand) read(p *program) ([]pact, error) {
	found, brokers := make([][]pact, len(c.Sources)), make([]*broker.Client, len(c.Sources))
	var problems []error
	for i, name := range c.Sources {
		var err error
		if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
			brokers[i], err = broker.New(broker.Config{URL: name, Token: c.Token,
				Username: c.Username, Password: c.Password})
		} else if found[i], err = readPacts(name); err == nil {
			found[i], err = c.choose(p, found[i])
			err = errors.Join(err, c.check(found[i]))
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, unverified(err)
	}
	for i, client := range brokers {
		if client == nil {
			continue
		}
		var err error
		if found[i], err = c.fetch(p, client); err != nil {
			return nil, unverified(err)
		}
	}
	all := slices.Concat(found...)
	if !slices.ContainsFunc(all, func(one pact) bool { return len(one.Interactions) > 0 }) {
		return nil, usagef("there is nothing to verify: no interaction with the provider %s",
			c.Provider)
	}
	return all, nil
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
			one = unreadable(offered, c.Provider, err)
		}
		all = append(all, pact{one, client, offered})
	}
	return c.choose(p, all)
}

// unreadable returns a pact whose only interaction fails because of err.
func unreadable(offered broker.Pact, provider string, err error) *contracts.Pact {
	return &contracts.Pact{Source: offered.Source, Consumer: cmp.Or(offered.Consumer, "unknown"),
		Provider: provider, Interactions: []contracts.Interaction{{
			Description: "the pact itself", HTTP: true, Problem: err.Error()}}}
}

// choose returns the pacts of the wanted provider and consumers. It prints which ones it leaves
// out.
func (c *verifyCommand) choose(p *program, all []pact) (chosen []pact, err error) {
	for _, one := range all {
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

// readPacts reads a pact file, or those of a folder.
func readPacts(name string) ([]pact, error) {
	files, err := readFiles(name)
	if err != nil {
		return nil, err
	}
	var all []pact
	for _, f := range files {
		one, err := contracts.ReadPact(f.text, f.name)
		if err != nil {
			return nil, err
		}
		all = append(all, pact{Pact: one})
	}
	return all, nil
}

// file is a file of the command line.
type file struct {
	name string
	text []byte
}

// readFiles reads a file, or the JSON files of a folder.
func readFiles(name string) ([]file, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	names := []string{name}
	if info.IsDir() {
		if names, err = filepath.Glob(filepath.Join(name, "*.json")); err != nil {
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
