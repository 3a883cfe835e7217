//go:build pact

package main

import (
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"gatehouse/contracts/broker"
)

type kongGroup = kong.Group

// brokerFlags are the flags that are about a Pact Broker.
type brokerFlags struct {
	Token    string `name:"broker-token" env:"PACT_BROKER_TOKEN" placeholder:"TOKEN" group:"broker" help:"Bearer token."`
	Username string `name:"broker-username" env:"PACT_BROKER_USERNAME" placeholder:"NAME" group:"broker" help:"User name."`
	Password string `name:"broker-password" env:"PACT_BROKER_PASSWORD" placeholder:"PASSWORD" group:"broker" help:"Its password."`

	Publish         bool     `group:"broker" help:"Tell the broker what came of its pacts; if it does not take that, pactcheck fails. For CI alone."`
	ProviderVersion string   `name:"provider-version" placeholder:"VERSION" group:"broker" help:"Version of gatehouse that is tried: a commit, for one."`
	ProviderBranch  string   `name:"provider-branch" placeholder:"BRANCH" group:"broker" help:"Branch of that version."`
	ProviderTags    []string `name:"provider-tag" placeholder:"TAG" group:"broker" help:"Tag of that version; may repeat."`
	BuildURL        string   `name:"build-url" placeholder:"URL" group:"broker" help:"Where people find this run."`

	MainBranch         bool      `group:"selectors" help:"Of the main branch of each consumer."`
	MatchingBranch     bool      `group:"selectors" help:"Of the branch that has the name of --provider-branch."`
	Branches           []string  `name:"branch" placeholder:"BRANCH" group:"selectors" help:"Of that branch; may repeat."`
	DeployedOrReleased bool      `group:"selectors" help:"Of all versions that are deployed or released."`
	Environments       []string  `name:"environment" placeholder:"NAME" group:"selectors" help:"Of the versions that are deployed or released there; may repeat."`
	Tags               []string  `name:"tag" placeholder:"TAG" group:"selectors" help:"Of the newest version with that tag; may repeat."`
	Consumers          []string  `name:"consumer" placeholder:"NAME" group:"selectors" help:"Of that consumer alone, also of files; may repeat."`
	Pending            bool      `default:"true" negatable:"" group:"selectors" help:"Let pacts fail that no version of --provider-branch has ever verified (on)."`
	WIPSince           time.Time `name:"wip-since" format:"2006-01-02" placeholder:"YYYY-MM-DD" group:"selectors" help:"Also pacts that are in the works since then; they may fail."`
}

// check returns what does not go together.
func (f *brokerFlags) check() error {
	switch {
	case f.Publish && f.ProviderVersion == "":
		return usagef("--publish needs --provider-version")
	case f.MatchingBranch && f.ProviderBranch == "":
		return usagef("--matching-branch needs --provider-branch")
	case !f.WIPSince.IsZero() && f.ProviderBranch == "" && len(f.ProviderTags) == 0:
		return usagef("--wip-since needs --provider-branch or --provider-tag")
	}
	return nil
}

// query is what a broker is asked for.
func (f *brokerFlags) query(provider string) broker.Query {
	return broker.Query{Provider: provider, Selectors: f.selectors(), Branch: f.ProviderBranch, Tags: f.ProviderTags,
		Pending: f.Pending && (f.ProviderBranch != "" || len(f.ProviderTags) > 0), WIPSince: f.WIPSince}
}

// selectors returns those that were named, for each consumer that was.
func (f *brokerFlags) selectors() []broker.Selector {
	var all []broker.Selector
	if f.MainBranch {
		all = append(all, broker.Selector{MainBranch: true})
	}
	if f.MatchingBranch {
		all = append(all, broker.Selector{MatchingBranch: true})
	}
	if f.DeployedOrReleased {
		all = append(all, broker.Selector{DeployedOrReleased: true})
	}
	for _, name := range f.Branches {
		all = append(all, broker.Selector{Branch: name})
	}
	for _, name := range f.Environments {
		all = append(all, broker.Selector{Environment: name, DeployedOrReleased: true})
	}
	for _, name := range f.Tags {
		all = append(all, broker.Selector{Tag: name, Latest: true})
	}
	if len(all) == 0 {
		all = []broker.Selector{{MainBranch: true}, {DeployedOrReleased: true}}
	}
	if len(f.Consumers) == 0 {
		return all
	}
	var narrow []broker.Selector
	for _, consumer := range f.Consumers {
		for _, s := range all {
			s.Consumer = consumer
			narrow = append(narrow, s)
		}
	}
	return narrow
}

// attribute is what a broker calls the place of a problem.
func attribute(where string) string {
	switch name, _, _ := strings.Cut(where, " "); name {
	case "status", "header", "body":
		return name
	}
	return "interaction"
}
