package broker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Selector selects versions of consumers, in the broker's format. The zero value selects none.
type Selector struct {
	MainBranch bool `json:"mainBranch,omitempty"`
	// the branch of the provider's version
	MatchingBranch     bool   `json:"matchingBranch,omitempty"`
	Branch             string `json:"branch,omitempty"`
	DeployedOrReleased bool   `json:"deployedOrReleased,omitempty"`
	Environment        string `json:"environment,omitempty"`
	Tag                string `json:"tag,omitempty"`
	Latest             bool   `json:"latest,omitempty"` // with Tag: only its latest version
	Consumer           string `json:"consumer,omitempty"`
}

// Query selects the pacts that a provider wants to verify.
type Query struct {
	Provider  string
	Selectors []Selector
	Branch    string    // of the provider's version; "" = none
	Tags      []string  // of the provider's version
	Pending   bool      // ask which pacts are pending: this branch has never verified them
	WIPSince  time.Time // also newer pacts that no selector has; zero = none. Implies Pending
}

// Pact is a pact that the broker wants verified.
type Pact struct {
	Content []byte // for contracts.ReadPact
	Source  string // its URL
	// Consumer is its name in the broker's links, "" = unknown.
	Consumer string
	Pending  bool // a failure does not count
	Notices  []string

	links document
}

// request is the body of a request to the broker's resource "provider pacts for verification".
type request struct {
	Selectors      []Selector `json:"consumerVersionSelectors,omitempty"`
	Branch         string     `json:"providerVersionBranch,omitempty"`
	Tags           []string   `json:"providerVersionTags,omitempty"`
	IncludePending bool       `json:"includePendingStatus"`
	WIPSince       string     `json:"includeWipPactsSince,omitempty"`
}

// listed is a pact in the broker's response.
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

// Pacts returns the pacts to verify. If the Client's URL is that of a pact, it returns that one.
func (c *Client) Pacts(ctx context.Context, q Query) ([]Pact, error) {
	response, err := c.do(ctx, http.MethodGet, c.base.String(), nil)
	if err != nil {
		return nil, err
	}
	index, err := parse(response)
	if err != nil {
		return nil, err
	}
	if isPact(response) {
		return []Pact{{Content: response, Source: c.base.String(), links: *index}}, nil
	}
	to, err := c.find(index, map[string]string{"provider": q.Provider},
		"pb:provider-pacts-for-verification", "beta:provider-pacts-for-verification")
	if err != nil {
		return nil, err
	}
	wanted := request{Selectors: q.Selectors, Branch: q.Branch, Tags: q.Tags,
		IncludePending: q.Pending || !q.WIPSince.IsZero()}
	if !q.WIPSince.IsZero() {
		wanted.WIPSince = q.WIPSince.Format(time.RFC3339)
	}
	found, err := c.read(ctx, http.MethodPost, to, wanted)
	if err != nil {
		return nil, err
	}
	return c.fetch(ctx, found)
}

// isPact reports whether a document is a pact rather than the broker's index.
func isPact(response []byte) bool {
	var pact struct {
		Consumer json.RawMessage `json:"consumer"`
		Provider json.RawMessage `json:"provider"`
	}
	return json.Unmarshal(response, &pact) == nil && pact.Consumer != nil && pact.Provider != nil
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
		if link := d.Links["pb:consumer"]; len(link) > 0 {
			p.Consumer = link[0].Name
		}
		for _, n := range one.Properties.Notices {
			if n.When == "" || n.When == "before_verification" {
				p.Notices = append(p.Notices, n.Text)
			}
		}
		all = append(all, p)
	}
	return all, nil
}
