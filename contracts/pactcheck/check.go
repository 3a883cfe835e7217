package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"gatehouse/contracts"
	"gatehouse/contracts/lint"
	"gatehouse/contracts/report"
	"gatehouse/httpedge"
)

type checkCommand struct {
	Pacts    []string `arg:"" name:"pact" help:"A pact file, or a folder of pact files."`
	OpenAPI  string   `name:"openapi" placeholder:"FILE|URL" help:"An OpenAPI document of version 3.0 or 3.1, instead of gatehouse's own. Then pacts with any provider are checked, and provider states are not."`
	Provider string   `default:"gatehouse" placeholder:"NAME" help:"What the pacts call gatehouse. Pacts with another provider are left out, unless --openapi is given (${default})."`

	JUnit output `name:"junit" type:"path" placeholder:"FILE" group:"reports" help:"Write a report as JUnit XML."`
	JSON  output `name:"json" type:"path" placeholder:"FILE" group:"reports" help:"Write the errors as JSON."`
	SARIF output `name:"sarif" type:"path" placeholder:"FILE" group:"reports" help:"Write the errors as SARIF 2.1.0, which code hosts show beside the lines."`
}

// Help is shown by pactcheck check --help.
func (*checkCommand) Help() string {
	return "No service runs. The request, the example of the response and the matching rules of each interaction are compared with the document: " +
		"paths, methods, parameters, statuses, headers, content types, members, types and listed values; and provider states with their parameters. " +
		"A request whose response is an error may break the document. Each error is a line with JSON pointers into the pact and into the document.\n\n" +
		"verify finds more: what the service really responds.\n\n" +
		"Examples:\n\n    pactcheck check pacts/\n    pactcheck check --openapi https://api.example/openapi.json --sarif check.sarif pacts/"
}

// Run checks the pacts and prints the errors.
func (c *checkCommand) Run(p *program) error {
	began := time.Now()
	document, err := c.document(p)
	if err != nil {
		return err
	}
	run := &report.Run{Provider: cmp.Or(c.OpenAPI, "gatehouse's own document"), Started: began}
	found := []lint.Finding{}
	for _, name := range c.Pacts {
		pacts, err := readPacts(p, name, c.Provider)
		if err != nil {
			return usagef("%s", err)
		}
		for _, one := range pacts {
			if one.Provider != c.Provider && c.OpenAPI == "" {
				if _, err := fmt.Fprintf(p.stdout, "left out: %s is a contract with the provider %s\n",
					report.Line(one.Source), report.Line(one.Provider)); err != nil {
					return err
				}
				continue
			}
			all := document.Check(one.Pact, c.OpenAPI == "")
			found = append(found, all...)
			run.Pacts = append(run.Pacts, results(one.Pact, all))
		}
	}
	if len(run.Pacts) == 0 {
		return usagef("there are no pacts to check")
	}
	run.Took = time.Since(began)
	for _, f := range found {
		if _, err := fmt.Fprintln(p.stdout, report.Line(lineOf(f))); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(p.stdout, "%d interactions of %d pacts checked: %d errors\n", count(run),
		len(run.Pacts), len(found)); err != nil {
		return err
	}
	return c.end(run, found)
}

// end writes the reports. Any error in a pact is errUnverified.
func (c *checkCommand) end(run *report.Run, found []lint.Finding) error {
	asJSON := func(w io.Writer) error { return encode(w, map[string]any{"errors": found}) }
	asSARIF := func(w io.Writer) error { return encode(w, sarif(found)) }
	for _, err := range []error{c.JUnit.write(run.WriteJUnit), c.JSON.write(asJSON),
		c.SARIF.write(asSARIF)} {
		if err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return errUnverified
	}
	return nil
}

func count(run *report.Run) int {
	all, _, _, _ := run.Counts()
	return all
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// maxDocument limits a document from the network, in bytes.
const maxDocument = 64 << 20

// document loads gatehouse's own document or the one that is asked for.
func (c *checkCommand) document(p *program) (*lint.Document, error) {
	data := httpedge.OpenAPI()
	if c.OpenAPI != "" {
		var err error
		if data, err = fetch(p, c.OpenAPI); err != nil {
			return nil, usagef("--openapi: %s", err)
		}
	}
	d, err := lint.Load(data)
	if err != nil {
		return nil, usagef("--openapi: %s cannot be read: %s", cmp.Or(c.OpenAPI, "the document"), err)
	}
	return d, nil
}

// fetch reads a file or a URL.
func fetch(p *program, name string) ([]byte, error) {
	if !isURL(name) {
		return os.ReadFile(name)
	}
	request, err := http.NewRequestWithContext(p.ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s responds with %s", request.URL.Redacted(), response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxDocument))
}

// lineOf returns an error as one line.
func lineOf(f lint.Finding) string {
	line := fmt.Sprintf("%s#%s: interaction %q: %s", f.Source, f.Pointer, f.Interaction, f.Message)
	if f.Document != "" {
		line += " (document#" + f.Document + ")"
	}
	return line
}

// results returns the errors of a pact as results of its interactions.
func results(p *contracts.Pact, found []lint.Finding) *report.Pact {
	all := &report.Pact{Source: p.Source, Consumer: p.Consumer, Provider: p.Provider}
	for i := range p.Interactions {
		it := &p.Interactions[i]
		one := &report.Interaction{Description: it.Description,
			Request: it.Method + " " + it.Path, Result: report.Verified}
		for _, f := range found {
			if f.Of(i) {
				one.Result = report.Failed
				one.Problems = append(one.Problems, report.Problem{Where: f.Pointer, Reason: f.Message})
			}
		}
		all.Interactions = append(all.Interactions, one)
	}
	return all
}

// sarif returns a log of one run (SARIF 2.1.0).
func sarif(found []lint.Finding) any {
	type object = map[string]any
	results, texts := []any{}, map[string][]byte{}
	for _, f := range found {
		if _, ok := texts[f.Source]; !ok {
			text, err := os.ReadFile(f.Source)
			if err != nil {
				text = nil // it was there a moment ago: the line is then the first
			}
			texts[f.Source] = text
		}
		results = append(results, object{"ruleId": "contract", "level": "error",
			"message": object{"text": fmt.Sprintf("%s: %s", f.Interaction, f.Message)},
			"locations": []any{object{
				"physicalLocation": object{"artifactLocation": object{"uri": f.Source},
					"region": object{"startLine": lint.Line(texts[f.Source], f.Pointer)}},
				"logicalLocations": []any{object{"fullyQualifiedName": f.Pointer}}}},
			"properties": object{"document": f.Document}})
	}
	return object{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{object{"tool": object{"driver": object{"name": "pactcheck",
			"version": cmp.Or(version, "0"), "rules": []any{object{"id": "contract",
				"shortDescription": object{"text": "A pact must fit the OpenAPI document."}}}}},
			"results": results}}}
}
