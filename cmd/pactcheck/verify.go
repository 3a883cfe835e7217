//go:build pact

package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"gatehouse/contracts"
	"gatehouse/contracts/broker"
	"gatehouse/contracts/report"
	"gatehouse/contracts/verify"
)

type verifyCommand struct {
	Sources  []string `arg:"" name:"source" help:"A pact file, a folder of pact files, or the http or https address of a Pact Broker or of one pact in it."`
	Provider string   `default:"gatehouse" placeholder:"NAME" help:"What the pacts call gatehouse; pacts with another provider are left out (${default})."`
	BaseURL  string   `name:"base-url" placeholder:"URL" help:"Verify what runs there, and not the gatehouse that pactcheck brings along."`
	StateURL string   `name:"state-url" placeholder:"URL" help:"Where that one changes states; without it they are taken to be there."`

	JUnit    string `name:"junit" type:"path" placeholder:"FILE" group:"reports" help:"Write a report as JUnit XML."`
	JSON     string `name:"json" type:"path" placeholder:"FILE" group:"reports" help:"Write a report as JSON."`
	Markdown string `name:"markdown" type:"path" placeholder:"FILE" group:"reports" help:"Write a report as Markdown."`

	brokerFlags
}

var groups = []kongGroup{
	{Key: "reports", Title: "Reports:"},
	{Key: "broker", Title: "Pact Broker:"},
	{Key: "selectors", Title: "Which pacts of a broker (main branch, and deployed or released, unless some are named):"},
}

// Help is shown by pactcheck verify --help.
func (*verifyCommand) Help() string {
	return "Each interaction is tried by itself, on a gatehouse of its own that is put into the states that it asks for, and is one line " +
		"of output; what fails is followed by what was expected, what came and where. States that there are not, and values that they cannot have, are found before anything " +
		"runs: pactcheck states lists those that there are.\n\n" +
		"Examples:\n\n    pactcheck verify pacts/my-app-gatehouse.json\n" +
		"    pactcheck verify --junit report.xml pacts/\n" +
		"    pactcheck verify --publish --provider-version 1.4.0 --provider-branch main https://broker.example"
}

// Run verifies all pacts that the command line names.
func (c *verifyCommand) Run(p *program) error {
	began := time.Now()
	target, stop, err := c.target(p)
	if err != nil {
		return err
	}
	pacts, err := c.read(p)
	if err != nil {
		return errors.Join(err, stop())
	}
	base := "gatehouse in this process"
	if c.BaseURL != "" {
		base = c.BaseURL
	}
	r := &report.Run{Provider: base, Started: began, Pacts: []*report.Pact{}}
	live := &report.Live{W: p.stdout}
	err = c.verifyAll(p, target, pacts, r, live)
	r.Took = time.Since(began)
	if err != nil {
		return errors.Join(err, stop(), c.write(r))
	}
	live.End(r)
	if err := errors.Join(stop(), c.write(r), live.Err); err != nil {
		return err
	}
	if !r.OK() {
		return errUnverified
	}
	return nil
}

// target returns what is to be tried, and how to end it.
func (c *verifyCommand) target(p *program) (func() (verify.Target, error), func() error, error) {
	if c.BaseURL == "" {
		if c.StateURL != "" {
			return nil, nil, usagef("--state-url goes with --base-url")
		}
		var provider *contracts.Provider
		start := func() (verify.Target, error) {
			var err error
			if provider, err = contracts.Start(contracts.Config{}); err != nil {
				return verify.Target{}, err
			}
			return verify.Of(provider)
		}
		stop := func() error {
			if provider == nil {
				return nil
			}
			return provider.Close()
		}
		return start, stop, nil
	}
	base, err := httpURL("--base-url", c.BaseURL)
	if err != nil {
		return nil, nil, err
	}
	if c.StateURL != "" {
		if _, err := httpURL("--state-url", c.StateURL); err != nil {
			return nil, nil, err
		}
	}
	return func() (verify.Target, error) { return verify.Target{Base: base, StateURL: c.StateURL}, nil }, func() error { return nil }, nil
}

func httpURL(flag, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("%s must be an http or https URL", flag)
	}
	return u, nil
}

// verifyAll tries the pacts one after the other and publishes what is to be published.
func (c *verifyCommand) verifyAll(p *program, start func() (verify.Target, error), pacts []source, r *report.Run, live *report.Live) (err error) {
	target, err := start()
	if err != nil {
		return err
	}
	verifier, err := verify.New(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, verifier.Close()) }()
	for _, s := range pacts {
		result := &report.Pact{Source: s.pact.Source, Consumer: s.pact.Consumer, Provider: s.pact.Provider, Pending: s.pending(), Notices: s.notices(),
			Interactions: []*report.Interaction{}}
		r.Pacts = append(r.Pacts, result)
		live.Pact(result)
		if result.Interactions, err = verifier.Pact(p.ctx, s.pact, result.Pending, live.Interaction); err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		if c.Publish && s.broker != nil {
			c.publish(p, s, result)
			live.Published(result)
		}
	}
	return live.Err
}

// publish tells the broker what came of a pact, and notes in result whether it took that.
func (c *verifyCommand) publish(p *program, s source, result *report.Pact) {
	var all []broker.Result
	for i, it := range result.Interactions {
		one := broker.Result{ID: s.pact.Interactions[i].ID, Description: it.Description, Success: it.Result == report.Verified}
		for _, problem := range it.Problems {
			one.Problems = append(one.Problems, broker.Problem{Attribute: attribute(problem.Where), Description: problem.String()})
		}
		all = append(all, one)
	}
	version := broker.Version{Number: c.ProviderVersion, Branch: c.ProviderBranch, Tags: c.ProviderTags, BuildURL: c.BuildURL}
	if err := s.broker.Publish(p.ctx, *s.offered, version, result.Verified(), all); err != nil {
		result.PublishError = err.Error()
		return
	}
	result.Published = true
}
