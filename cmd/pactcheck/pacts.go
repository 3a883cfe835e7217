//go:build pact

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/contracts"
	"gatehouse/contracts/broker"
)

// source is a pact with where it comes from.
type source struct {
	pact    *contracts.Pact
	broker  *broker.Client // nil for a file
	offered *broker.Pact   // likewise
}

func (s source) pending() bool { return s.offered != nil && s.offered.Pending }

func (s source) notices() []string {
	if s.offered == nil {
		return nil
	}
	return s.offered.Notices
}

// read returns the pacts that the command line names, with states that there are. That there are none is a usageError.
func (c *verifyCommand) read(p *program) ([]source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var all []source
	for _, name := range c.Sources {
		found, err := c.readSource(p, name)
		if err != nil {
			return nil, usagef("%s", err)
		}
		all = append(all, found...)
	}
	all, err := c.chosen(p, all)
	if err != nil {
		return nil, err
	}
	interactions := 0
	var problems []error
	for _, s := range all {
		interactions += len(s.pact.Interactions)
		if c.BaseURL == "" {
			problems = append(problems, s.pact.Check())
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, usagef("nothing was verified:\n%s", err)
	}
	if interactions == 0 {
		return nil, usagef("there is nothing to verify: no interaction with the provider %s", c.Provider)
	}
	return all, nil
}

func (c *verifyCommand) readSource(p *program, name string) ([]source, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return c.readBroker(p, name)
	}
	files, err := pactFiles(name)
	if err != nil {
		return nil, err
	}
	var all []source
	for _, file := range files {
		pact, err := readFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, source{pact: pact})
	}
	return all, nil
}

func (c *verifyCommand) readBroker(p *program, address string) ([]source, error) {
	client, err := broker.New(broker.Config{URL: address, Token: c.Token, Username: c.Username, Password: c.Password})
	if err != nil {
		return nil, err
	}
	pacts, err := client.Pacts(p.ctx, c.query(c.Provider))
	if err != nil {
		return nil, err
	}
	var all []source
	for _, offered := range pacts {
		pact, err := contracts.ReadPact(offered.Content, offered.Source)
		if err != nil {
			return nil, err
		}
		all = append(all, source{pact, client, &offered})
	}
	return all, nil
}

// chosen returns the pacts with the provider and the consumers that are asked for, and says which it leaves out.
func (c *verifyCommand) chosen(p *program, all []source) ([]source, error) {
	var kept []source
	for _, s := range all {
		if len(c.Consumers) > 0 && !slices.Contains(c.Consumers, s.pact.Consumer) {
			continue
		}
		if s.pact.Provider == c.Provider {
			kept = append(kept, s)
			continue
		}
		if _, err := fmt.Fprintf(p.stdout, "left out: %s is a contract with the provider %s\n", s.pact.Source, s.pact.Provider); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// pactFiles returns a file, or the JSON files of a folder.
func pactFiles(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".json") {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	return files, nil
}

func readFile(file string) (*contracts.Pact, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return contracts.ReadPact(data, file)
}
