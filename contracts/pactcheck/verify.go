package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"gatehouse/contracts"
	"gatehouse/contracts/broker"
	"gatehouse/contracts/report"
	"gatehouse/contracts/verify"
)

type verifyCommand struct {
	Sources  []string `arg:"" name:"source" help:"A pact file, a folder of pact files, or the http or https address of a Pact Broker or of one pact in it."`
	Provider string   `default:"gatehouse" placeholder:"NAME" help:"What the pacts call gatehouse. Pacts with another provider are left out (${default})."`
	BaseURL  *url.URL `name:"base-url" placeholder:"URL" help:"Verify the service there, not the gatehouse inside pactcheck."`
	StateURL *url.URL `name:"state-url" placeholder:"URL" help:"Where that service takes state changes. Default: none, it already has its states."`

	Native bool `help:"Compare with libpact_ffi, if pactcheck is built with it, and not with pactcheck's own rules."`

	JUnit    output `name:"junit" type:"path" placeholder:"FILE" group:"reports" help:"Write a report as JUnit XML."`
	JSON     output `name:"json" type:"path" placeholder:"FILE" group:"reports" help:"Write a report as JSON."`
	Markdown output `name:"markdown" type:"path" placeholder:"FILE" group:"reports" help:"Write a report as Markdown."`

	brokerFlags
}

var groups = []kong.Group{
	{Key: "reports", Title: "Reports:"},
	{Key: "broker", Title: "Pact Broker:"},
	{Key: "selectors",
		Title: "Which pacts of a broker (default: of the main branch, and deployed or released ones):"},
}

// Help is shown by pactcheck verify --help.
func (*verifyCommand) Help() string {
	return "Each interaction runs on a gatehouse of its own, which is put into the interaction's states. The result is one line. " +
		"A failure also shows what was expected, what came, and where. " +
		"A file or interaction that cannot be tried fails, for instance for an unknown state, and all others are verified; " +
		"pactcheck states lists all states. Folders are searched for pacts with their subfolders.\n\n" +
		"Examples:\n\n    pactcheck verify pacts/my-app-gatehouse.json\n" +
		"    pactcheck verify --junit report.xml pacts/\n" +
		"    pactcheck verify --publish --provider-version 1.4.0 --provider-branch main https://broker.example"
}

// Validate returns an error for flags that are wrong or do not go together.
func (c *verifyCommand) Validate() error {
	if err := errors.Join(checkURL("--base-url", c.BaseURL),
		checkURL("--state-url", c.StateURL)); err != nil {
		return err
	}
	if c.Native && verify.LibraryVersion() == "" {
		return errors.New("--native: this pactcheck is built without libpact_ffi; go build -tags pact makes one with it")
	}
	if c.StateURL != nil && c.BaseURL == nil {
		return errors.New("--state-url goes with --base-url")
	}
	if err := c.brokerFlags.check(); err != nil {
		return err
	}
	if i := slices.IndexFunc(c.Sources, func(s string) bool { return !isURL(s) }); c.Publish && i >= 0 {
		return fmt.Errorf("--publish publishes the results of a broker's pacts, and %s is a file or folder: "+
			"publish it with pact-broker publish, then verify the address of the broker", c.Sources[i])
	}
	return nil
}

func checkURL(flag string, u *url.URL) error {
	if u != nil && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%s must be an http or https URL", flag)
	}
	return nil
}

// Run verifies the pacts of the command line.
func (c *verifyCommand) Run(p *program) error {
	r := &report.Run{Provider: "gatehouse in this process", Started: time.Now(),
		Pacts: []*report.Pact{}}
	if c.BaseURL != nil {
		r.Provider = c.BaseURL.Redacted()
	}
	live := &report.Live{W: p.stdout}
	pacts, untried, err := c.read(p)
	if err == nil {
		err = c.verifyAll(p, pacts, r, live)
	}
	r.Took = time.Since(r.Started)
	if err == nil {
		live.End(r)
		err = live.Err
	}
	for _, one := range contracts.Errors(err) {
		r.Errors = append(r.Errors, one.Error())
	}
	if untried != nil {
		err = errors.Join(err, &usageError{"files with errors:", contracts.Errors(untried)})
	}
	err = errors.Join(err, c.JUnit.write(r.WriteJUnit), c.JSON.write(r.WriteJSON),
		c.Markdown.write(r.WriteMarkdown))
	if err == nil && !r.OK() {
		return errUnverified
	}
	return err
}

// verifyAll verifies one pact after the other and publishes the results that are to be published.
func (c *verifyCommand) verifyAll(p *program, pacts []pact, r *report.Run,
	live *report.Live) (err error) {
	var target verify.Target
	if c.BaseURL != nil {
		target = verify.Remote(c.BaseURL, c.StateURL)
	} else {
		provider, err := contracts.Start(contracts.Config{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, provider.Close()) }()
		target = verify.Of(provider)
	}
	engine := verify.New
	if c.Native {
		engine = verify.NewNative
	}
	verifier, err := engine(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, verifier.Close()) }()
	for _, one := range pacts {
		result := &report.Pact{Source: one.Source, Consumer: one.Consumer, Provider: one.Provider,
			Pending: one.offered.Pending, Notices: one.offered.Notices,
			Interactions: []*report.Interaction{}}
		r.Pacts = append(r.Pacts, result)
		live.Pact(result)
		result.Interactions, err = verifier.Pact(p.ctx, one.Pact, result.Pending, live.Interaction)
		var absent *verify.AbsentError
		if errors.As(err, &absent) {
			return usagef("%s; the pact of %s was not verified", absent, one.Consumer)
		}
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		if c.Publish && one.broker != nil {
			c.publish(p, one, result)
			live.Published(result)
		}
	}
	return live.Err
}

// publish sends the result of a pact to its broker. It notes in result whether the broker accepted
// it.
func (c *verifyCommand) publish(p *program, one pact, result *report.Pact) {
	var all []broker.Result
	for i, it := range result.Interactions {
		r := broker.Result{ID: one.Interactions[i].ID, Description: it.Description,
			Success: it.Result == report.Verified}
		for _, problem := range it.Problems {
			r.Problems = append(r.Problems,
				broker.Problem{Attribute: attribute(problem.Where), Description: problem.String()})
		}
		all = append(all, r)
	}
	version := broker.Version{Number: c.ProviderVersion, Branch: c.ProviderBranch,
		Tags: c.ProviderTags, BuildURL: c.BuildURL}
	if err := one.broker.Publish(p.ctx, one.offered, version, result.Verified(), all); err != nil {
		result.PublishError = err.Error()
		return
	}
	result.Published = true
}
