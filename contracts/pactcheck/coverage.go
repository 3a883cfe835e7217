package main

import (
	"errors"
	"os"

	"gatehouse/contracts/coverage"
	"gatehouse/httpedge"
)

type coverageCommand struct {
	Pacts    []string `arg:"" name:"pact" help:"A pact file, or a folder of pact files."`
	OpenAPI  string   `name:"openapi" type:"existingfile" placeholder:"FILE" help:"Use another OpenAPI document than gatehouse's own."`
	Pinned   bool     `help:"List the pinned parts, each with the interactions that pin it, instead of the missing parts."`
	Complete bool     `help:"Fail (1) unless every part is pinned, or excluded for a reason."`
	JSON     output   `name:"json" type:"path" placeholder:"FILE" help:"Write every part, with the interactions that pin it, as JSON."`
	Markdown output   `name:"markdown" type:"path" placeholder:"FILE" help:"Write the missing parts as Markdown."`
}

// Help is shown by pactcheck coverage --help.
func (*coverageCommand) Help() string {
	return "A part is an operation, parameter, status, member, type, null, listed value, error code or header of gatehouse's OpenAPI document. " +
		"A pact pins a part if one of its interactions would fail without it. Each part that no pact pins is a line of output. " +
		"--pinned lists what the pacts do pin: gatehouse cannot change it unnoticed.\n\n" +
		"In the names, \"default\" is any status that the operation does not list; \"Problem\", \"LookupError\" and so on are shapes that several responses share; " +
		"\"left out\" is a response without the member; \"nothing else\" means that the object has no other members; \"queries of 50\" is a list of that length.\n\n" +
		"Examples:\n\n    pactcheck coverage --pinned pacts/my-app-gatehouse.json\n    pactcheck coverage --complete --markdown coverage.md contracts/pacts"
}

// Run compares the pacts with the document.
func (c *coverageCommand) Run(p *program) error {
	var pacts [][]byte
	for _, name := range c.Pacts {
		files, err := readFiles(name)
		if err != nil {
			return usagef("%s", err)
		}
		for _, f := range files {
			pacts = append(pacts, f.text)
		}
	}
	if len(pacts) == 0 {
		return usagef("there are no pacts in %v", c.Pacts)
	}
	document, exclusions := httpedge.OpenAPI(), coverage.Exclusions()
	if c.OpenAPI != "" {
		var err error
		if document, err = os.ReadFile(c.OpenAPI); err != nil {
			return usagef("%s", err)
		}
		exclusions = nil
	}
	r, err := coverage.Measure(document, pacts, exclusions)
	if err != nil {
		return usagef("%s", err)
	}
	list := r.WriteText
	if c.Pinned {
		list = r.WritePinned
	}
	if err := errors.Join(list(p.stdout), c.JSON.write(r.WriteJSON),
		c.Markdown.write(r.WriteMarkdown)); err != nil {
		return err
	}
	if c.Complete && (len(r.Missing()) > 0 || len(r.Stale) > 0) {
		return errUnverified
	}
	return nil
}
