//go:build pact

package main

import (
	"errors"
	"fmt"
	"os"

	"gatehouse/contracts/coverage"
	"gatehouse/httpedge"
)

type coverageCommand struct {
	Pacts    []string `arg:"" name:"pact" help:"A pact file, or a folder of pact files."`
	OpenAPI  string   `name:"openapi" type:"existingfile" placeholder:"FILE" help:"Another OpenAPI document than that of gatehouse."`
	Pinned   bool     `help:"List what is pinned, each part with the interactions that pin it, and not what is missing."`
	Complete bool     `help:"Fail (1) unless every part is pinned, or excluded for a reason."`
	JSON     string   `name:"json" type:"path" placeholder:"FILE" help:"Write every part, with what pins it, as JSON."`
	Markdown string   `name:"markdown" type:"path" placeholder:"FILE" help:"Write what is missing as Markdown."`
}

// Help is shown by pactcheck coverage --help.
func (*coverageCommand) Help() string {
	return "A part is an operation, parameter, status, member, type, null, listed value, error code or header of gatehouse's OpenAPI document. A pact pins it if " +
		"an interaction would fail without it. Each part that none pins is a line of output. " +
		"--pinned lists what the pacts do pin: what gatehouse cannot change unnoticed.\n\n" +
		"In the names, \"default\" is any status that the operation does not list; \"Problem\", \"LookupError\" and so on are shapes that several answers share; " +
		"\"left out\" is an answer without the member; \"nothing else\" is that the object has no other members; \"queries of 50\" is a list of that length.\n\n" +
		"Examples:\n\n    pactcheck coverage --pinned pacts/my-app-gatehouse.json\n    pactcheck coverage --complete --markdown coverage.md contracts/pacts"
}

// Run compares the pacts with the document.
func (c *coverageCommand) Run(p *program) error {
	document := httpedge.OpenAPI()
	var exclusions []coverage.Exclusion
	if c.OpenAPI == "" {
		exclusions = coverage.Exclusions()
	} else {
		var err error
		if document, err = os.ReadFile(c.OpenAPI); err != nil {
			return usagef("%s", err)
		}
	}
	pacts, err := c.read()
	if err != nil {
		return usagef("%s", err)
	}
	r, err := coverage.Measure(document, pacts, exclusions)
	if err != nil {
		return usagef("%s", err)
	}
	list := r.WriteText
	if c.Pinned {
		list = r.WritePinned
	}
	if err := errors.Join(list(p.stdout), writeReport(c.JSON, r.WriteJSON), writeReport(c.Markdown, r.WriteMarkdown)); err != nil {
		return err
	}
	if c.Complete && (len(r.Missing()) > 0 || len(r.Stale) > 0) {
		return errUnverified
	}
	return nil
}

// read returns the files that the command line names; there is at least one.
func (c *coverageCommand) read() ([][]byte, error) {
	var all [][]byte
	for _, name := range c.Pacts {
		files, err := pactFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no pacts in %v", c.Pacts)
	}
	return all, nil
}
