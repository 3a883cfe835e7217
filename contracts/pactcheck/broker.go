package main

import (
	"errors"
	"strings"
	"time"

	"gatehouse/contracts/broker"
)

// brokerAccess are the credentials for a Pact Broker.
type brokerAccess struct {
	Token    string `name:"broker-token" env:"PACT_BROKER_TOKEN" placeholder:"TOKEN" group:"broker" help:"Bearer token."`
	Username string `name:"broker-username" env:"PACT_BROKER_USERNAME" placeholder:"NAME" group:"broker" help:"User name."`
	Password string `name:"broker-password" env:"PACT_BROKER_PASSWORD" placeholder:"PASSWORD" group:"broker" help:"Password of that user."`
}

// brokerFlags are the flags for a Pact Broker.
type brokerFlags struct {
	brokerAccess

	Publish         bool     `group:"broker" help:"Publish the results to the broker. pactcheck fails if the broker rejects them. For CI only."`
	ProviderVersion string   `name:"provider-version" placeholder:"VERSION" group:"broker" help:"Version of gatehouse that is verified, such as a commit."`
	ProviderBranch  string   `name:"provider-branch" placeholder:"BRANCH" group:"broker" help:"Branch of that version."`
	ProviderTags    []string `name:"provider-tag" placeholder:"TAG" group:"broker" help:"Tag of that version; may repeat."`
	BuildURL        string   `name:"build-url" placeholder:"URL" group:"broker" help:"Page of this CI run."`

	MainBranch         bool      `group:"selectors" help:"Of the main branch of each consumer."`
	MatchingBranch     bool      `group:"selectors" help:"Of the branch with the name of --provider-branch."`
	Branches           []string  `name:"branch" placeholder:"BRANCH" group:"selectors" help:"Of that branch; may repeat."`
	DeployedOrReleased bool      `group:"selectors" help:"Of all versions that are deployed or released."`
	Environments       []string  `name:"environment" placeholder:"NAME" group:"selectors" help:"Of the versions that are deployed or released there; may repeat."`
	Tags               []string  `name:"tag" placeholder:"TAG" group:"selectors" help:"Of the newest version with that tag; may repeat."`
	Consumers          []string  `name:"consumer" placeholder:"NAME" group:"selectors" help:"Of that consumer only, also among files; may repeat."`
	Pending            bool      `default:"true" negatable:"" group:"selectors" help:"Do not fail for pacts that no version of --provider-branch has ever verified (on)."`
	WIPSince           time.Time `name:"wip-since" format:"2006-01-02" placeholder:"YYYY-MM-DD" group:"selectors" help:"Also work-in-progress pacts since that date. They do not fail the run."`
}

// check returns an error for flags that do not go together.
func (f *brokerFlags) check() error {
	switch {
	case f.Publish && f.ProviderVersion == "":
		return errors.New("--publish needs --provider-version")
	case f.Publish && f.Pending && f.ProviderBranch == "" && len(f.ProviderTags) == 0:
		return errors.New("--publish needs --provider-branch: without one, no pact is pending, " +
			"and the first pact of a new consumer can fail this run; --no-pending accepts that")
	case f.MatchingBranch && f.ProviderBranch == "":
		return errors.New("--matching-branch needs --provider-branch")
	case !f.WIPSince.IsZero() && f.ProviderBranch == "" && len(f.ProviderTags) == 0:
		return errors.New("--wip-since needs --provider-branch or --provider-tag")
	}
	return nil
}

// query returns the query for pacts of a provider.
func (f *brokerFlags) query(provider string) broker.Query {
	return broker.Query{Provider: provider, Selectors: f.selectors(), Branch: f.ProviderBranch,
		Tags:     f.ProviderTags,
		Pending:  f.Pending && (f.ProviderBranch != "" || len(f.ProviderTags) > 0),
		WIPSince: f.WIPSince}
}

// selectors returns the selectors of the flags, each for every consumer of the flags.
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

// attribute returns the broker's word for the place of a problem.
func attribute(where string) string {
	switch name, _, _ := strings.Cut(where, " "); name {
	case "status", "header", "body":
		return name
	}
	return "interaction"
}
