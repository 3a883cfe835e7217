package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"gatehouse/contracts"
)

type statesCommand struct {
	JSON bool `name:"json" help:"Print JSON, with descriptions, types and defaults."`
}

// Help is shown by pactcheck states --help.
func (*statesCommand) Help() string {
	return "A pact names a state and may set its parameters. The state returns values, which the pact can use in requests " +
		"(\"from provider state\").\n\nExamples:\n\n    pactcheck states\n    pactcheck states --json"
}

// Run prints the catalogue.
func (c *statesCommand) Run(p *program) error {
	if c.JSON {
		e := json.NewEncoder(p.stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(contracts.Catalogue())
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(w, "STATE\tPARAMETERS\tVALUES"); err != nil {
		return err
	}
	for _, s := range contracts.Catalogue() {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", s.Title(), s.ParameterNames(),
			s.ValueNames()); err != nil {
			return err
		}
	}
	return w.Flush()
}
