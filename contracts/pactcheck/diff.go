package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gatehouse/contracts"
	"gatehouse/contracts/broker"
	"gatehouse/contracts/lint"
	"gatehouse/contracts/report"
	"gatehouse/httpedge"
)

type diffCommand struct {
	Old      string   `arg:"" help:"The old OpenAPI document: a file, a URL, a git revision such as v1.2.0 or v1.2.0:path/openapi.yaml, or an archive of pactcheck-dist."`
	New      string   `arg:"" help:"The new one."`
	Pacts    []string `placeholder:"DIR|BROKER" help:"Pacts that may rely on the old document: files, folders, or the address of a Pact Broker; may repeat. Default: those in an old archive, or gatehouse's own pacts for a document of gatehouse."`
	Provider string   `default:"gatehouse" placeholder:"NAME" help:"What the pacts call the service. Those with another provider are left out (${default})."`
	Verify   bool     `default:"true" negatable:"" help:"If both are archives, also verify the old one's pacts with the pactcheck of the new one (on)."`
	FailOn   string   `name:"fail-on" enum:"consumer,document" default:"consumer" help:"Fail (1) if the changes break an interaction of a consumer, or if they break the document at all: consumer or document (${default})."`
	JSON     output   `name:"json" type:"path" placeholder:"FILE" group:"reports" help:"Write the changes as JSON."`
	Markdown output   `name:"markdown" type:"path" placeholder:"FILE" group:"reports" help:"Write a changelog as Markdown."`

	brokerAccess
}

// Help is shown by pactcheck diff --help.
func (*diffCommand) Help() string {
	return "Each change is of one class. It breaks consumers, if interactions of their pacts rely on what has changed: each is named. " +
		"It breaks the document only, if pacts use the operation but not what has changed. It is pinned by nobody, if no pact uses the operation. " +
		"Or it is compatible. oasdiff finds most changes. check finds what a pact needs of the new document. " +
		"Of two archives, the program of the new one verifies the pacts of the old one: what the new service really does.\n\n" +
		"Examples:\n\n    pactcheck diff v1.2.0 httpedge/openapi.yaml --pacts contracts/pacts\n" +
		"    pactcheck diff --fail-on document --markdown changes.md old.yaml https://api.example/openapi.json"
}

// defaultPath is where a git revision of gatehouse has its document.
const defaultPath = "httpedge/openapi.yaml"

// Run compares the documents and prints the changes.
func (c *diffCommand) Run(p *program) (err error) {
	folder, err := os.MkdirTemp("", "pactcheck-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	changes, err := c.compare(p, filepath.Join(folder, "old"), filepath.Join(folder, "new"))
	if err != nil {
		return usagef("%s", err)
	}
	return c.end(p, changes)
}

// compare returns the changes. Archives are unpacked to the folders older and newer.
func (c *diffCommand) compare(p *program, older, newer string) ([]lint.Change, error) {
	before, err := c.document(p, c.Old, older)
	if err != nil {
		return nil, fmt.Errorf("the old document: %w", err)
	}
	after, err := c.document(p, c.New, newer)
	if err != nil {
		return nil, fmt.Errorf("the new document: %w", err)
	}
	archives := isArchive(c.Old) && isArchive(c.New)
	if isArchive(c.Old) && len(c.Pacts) == 0 {
		c.Pacts = []string{filepath.Join(older, "pacts")}
	}
	pacts, err := c.pacts(p, before)
	if err != nil {
		return nil, fmt.Errorf("--pacts: %w", err)
	}
	changes, err := lint.Compare(before, after, pacts)
	if err != nil || !archives || !c.Verify {
		return changes, err
	}
	verified, err := verifyWith(p.ctx, older, newer, c.Provider)
	return append(verified, changes...), err
}

// end prints the changes and writes the reports.
func (c *diffCommand) end(p *program, changes []lint.Change) error {
	broken := 0
	for _, one := range changes {
		if one.Class == lint.BreaksConsumer || one.Class != lint.BreaksNothing && c.FailOn == "document" {
			broken++
		}
		if _, err := fmt.Fprintln(p.stdout, report.Line(title(one.Class)+": "+changeLine(one))); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(p.stdout, "%d changes, %d of them break what --fail-on %s says\n",
		len(changes), broken, c.FailOn); err != nil {
		return err
	}
	asJSON := func(w io.Writer) error { return encode(w, map[string]any{"changes": changes}) }
	if err := c.JSON.write(asJSON); err != nil {
		return err
	}
	if err := c.Markdown.write(func(w io.Writer) error { return changelog(w, changes) }); err != nil {
		return err
	}
	if broken > 0 {
		return errUnverified
	}
	return nil
}

// title returns the heading of a class.
func title(class lint.Class) string {
	return map[lint.Class]string{lint.BreaksConsumer: "breaks consumers",
		lint.BreaksDocument: "breaks the document", lint.BreaksNobody: "pinned by nobody",
		lint.BreaksNothing: "compatible"}[class]
}

// changeLine returns a change as one line.
func changeLine(c lint.Change) string {
	line := fmt.Sprintf("%s: %s (%s)", c.Operation, c.Message, c.Rule)
	if len(c.PinnedBy) > 0 {
		line += "; relied on by " + strings.Join(c.PinnedBy, ", ")
	}
	return line
}

// changelog writes the changes as Markdown, a section for each class.
func changelog(w io.Writer, changes []lint.Change) error {
	var b strings.Builder
	b.WriteString("# Changes of the interface\n")
	var class lint.Class
	for _, one := range changes {
		if one.Class != class {
			class = one.Class
			heading := title(class)
			fmt.Fprintf(&b, "\n## %s\n\n", strings.ToUpper(heading[:1])+heading[1:])
		}
		fmt.Fprintf(&b, "- %s: %s", report.Code(one.Operation), report.Code(one.Message))
		for _, name := range one.PinnedBy {
			fmt.Fprintf(&b, "\n  - %s", report.Code(name))
		}
		b.WriteString("\n")
	}
	if len(changes) == 0 {
		b.WriteString("\nNone.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// document reads a file, a URL, a git revision, or an archive, which it unpacks to a folder.
func (c *diffCommand) document(p *program, name, folder string) ([]byte, error) {
	if isArchive(name) && !isURL(name) {
		if err := unpack(name, folder); err != nil {
			return nil, err
		}
		return os.ReadFile(filepath.Join(folder, "openapi.yaml"))
	}
	if _, err := os.Stat(name); err == nil || isURL(name) {
		return fetch(p, name)
	}
	if strings.HasPrefix(name, "-") {
		return nil, fmt.Errorf("%s is no file, URL or git revision", name)
	}
	if !strings.Contains(name, ":") {
		name += ":" + defaultPath
	}
	text, err := exec.CommandContext(p.ctx, "git", "show", "--end-of-options", name).Output()
	if err != nil {
		return nil, fmt.Errorf("%s is no file, and git does not show it", name)
	}
	return text, nil
}

// pacts reads the pacts of --pacts with the provider. Broken ones are an error. Without --pacts, a
// document of gatehouse goes with gatehouse's own pacts.
func (c *diffCommand) pacts(p *program, before []byte) (all []*contracts.Pact, err error) {
	if len(c.Pacts) == 0 {
		return c.own(p, before)
	}
	reader := &verifyCommand{Provider: c.Provider}
	for _, name := range c.Pacts {
		var found []pact
		if isURL(name) {
			var client *broker.Client
			if client, err = broker.New(broker.Config{URL: name, Token: c.Token, Username: c.Username,
				Password: c.Password}); err == nil {
				found, err = reader.fetch(p, client)
			}
		} else if found, err = readPacts(p, name, c.Provider); err == nil {
			found, err = reader.choose(p, found)
		}
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			if one.broken {
				return nil, one.Malformed()
			}
			all = append(all, one.Pact)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s have no pact with the provider %s; --provider names another",
			strings.Join(c.Pacts, ", "), c.Provider)
	}
	return all, nil
}

// own returns gatehouse's own pacts for a document of gatehouse. For any other it says that there
// are none.
func (c *diffCommand) own(p *program, before []byte) ([]*contracts.Pact, error) {
	old, err := lint.Load(before)
	if err != nil {
		return nil, fmt.Errorf("the old document: %w", err)
	}
	mine, err := lint.Load(httpedge.OpenAPI())
	if err != nil {
		return nil, err
	}
	if old.Title() == mine.Title() {
		return contracts.Own(), nil
	}
	_, err = fmt.Fprintln(p.stderr, "pactcheck: there are no pacts, so that no change breaks a consumer: "+
		"--pacts names files, folders or a broker")
	return nil, err
}
