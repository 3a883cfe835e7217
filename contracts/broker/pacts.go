package broker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Selector chooses versions of consumers, as the broker reads it. The zero value is none.
type Selector struct {
	MainBranch         bool   `json:"mainBranch,omitempty"`
	MatchingBranch     bool   `json:"matchingBranch,omitempty"` // that of the provider's version
	Branch             string `json:"branch,omitempty"`
	DeployedOrReleased bool   `json:"deployedOrReleased,omitempty"`
	Environment        string `json:"environment,omitempty"`
	Tag                string `json:"tag,omitempty"`
	Latest             bool   `json:"latest,omitempty"` // with Tag: its latest version alone
	Consumer           string `json:"consumer,omitempty"`
}

// Query says which pacts a provider wants to verify.
type Query struct {
	Provider  string
	Selectors []Selector
	Branch    string    // of the provider's version; "" = none
	Tags      []string  // likewise
	Pending   bool      // pacts that this branch has never verified may fail
	WIPSince  time.Time // also pacts of no selector that are newer; zero = none. It implies Pending
}

// Pact is a pact that the broker wants to be verified.
type Pact struct {
	Content []byte // as ReadPact takes it
	Source  string // where it was read
	Pending bool   // it may fail
	Notices []string

	links document
}

// request is what the broker takes (its resource "provider pacts for verification").
type request struct {
	Selectors      []Selector `json:"consumerVersionSelectors,omitempty"`
	Branch         string     `json:"providerVersionBranch,omitempty"`
	Tags           []string   `json:"providerVersionTags,omitempty"`
	IncludePending bool       `json:"includePendingStatus"`
	WIPSince       string     `json:"includeWipPactsSince,omitempty"`
}

// listed is a pact in the broker's answer.
type listed struct {
	Links      map[string]links `json:"_links"`
	Properties struct {
		Pending bool `json:"pending"`
		Notices []struct {
			When string `json:"when"`
			Text string `json:"text"`
		} `json:"notices"`
	} `json:"verificationProperties"`
}

// Pacts returns the pacts to verify, none when there are none; or the one pact that the address of the Client is of.
func (c *Client) Pacts(ctx context.Context, q Query) ([]Pact, error) {
	answer, err := c.do(ctx, http.MethodGet, c.base.String(), nil)
	if err != nil {
		return nil, err
	}
	index, err := parse(answer)
	if err != nil {
		return nil, err
	}
	if isPact(answer) {
		return []Pact{{Content: answer, Source: c.base.String(), links: *index}}, nil
	}
	to, err := c.find(index, map[string]string{"provider": q.Provider}, "pb:provider-pacts-for-verification", "beta:provider-pacts-for-verification")
	if err != nil {
		return nil, err
	}
	wanted := request{Selectors: q.Selectors, Branch: q.Branch, Tags: q.Tags, IncludePending: q.Pending || !q.WIPSince.IsZero()}
	if !q.WIPSince.IsZero() {
		wanted.WIPSince = q.WIPSince.Format(time.RFC3339)
	}
	found, err := c.read(ctx, http.MethodPost, to, wanted)
	if err != nil {
		return nil, err
	}
	return c.fetch(ctx, found)
}

// isPact reports whether a document is a pact and not the broker's index.
func isPact(answer []byte) bool {
	var pact struct {
		Consumer json.RawMessage `json:"consumer"`
		Provider json.RawMessage `json:"provider"`
	}
	return json.Unmarshal(answer, &pact) == nil && pact.Consumer != nil && pact.Provider != nil
}

func (c *Client) fetch(ctx context.Context, found *document) ([]Pact, error) {
	var list []listed
	if raw := found.Embedded["pacts"]; raw != nil {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, errors.New("the broker's list of pacts is malformed")
		}
	}
	var all []Pact
	for _, one := range list {
		at, err := c.find(&document{Links: one.Links}, nil, "self")
		if err != nil {
			return nil, err
		}
		p := Pact{Source: at, Pending: one.Properties.Pending}
		if p.Content, err = c.do(ctx, http.MethodGet, at, nil); err != nil {
			return nil, err
		}
		d, err := parse(p.Content)
		if err != nil {
			return nil, err
		}
		p.links = *d
		for _, n := range one.Properties.Notices {
			if n.When == "" || n.When == "before_verification" {
				p.Notices = append(p.Notices, n.Text)
			}
		}
		all = append(all, p)
	}
	return all, nil
}
