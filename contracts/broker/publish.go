package broker

import (
	"context"
	"fmt"
	"net/http"
)

// Version is the verified version of the provider.
type Version struct {
	Number   string // required, such as a commit
	Branch   string // optional
	Tags     []string
	BuildURL string // optional: page of the CI run
}

// Result is the result of one interaction.
type Result struct {
	ID          string    `json:"interactionId,omitempty"` // from the broker's copy of the pact
	Description string    `json:"interactionDescription"`
	Success     bool      `json:"success"`
	Problems    []Problem `json:"mismatches,omitempty"`
}

// Problem is one difference.
type Problem struct {
	Attribute   string `json:"attribute"` // "status", "header", "body" or another
	Description string `json:"description"`
}

// verification is a result in the broker's format.
type verification struct {
	Success  bool     `json:"success"`
	Version  string   `json:"providerApplicationVersion"`
	BuildURL string   `json:"buildUrl,omitempty"`
	By       verifier `json:"verifiedBy"`
	Results  []Result `json:"testResults"`
}

type verifier struct {
	Implementation string `json:"implementation"`
	Version        string `json:"version"`
}

// Publish publishes the result of a pact that Pacts returned: first the version's branch and tags,
// then the result. Any response but 2xx is an error.
func (c *Client) Publish(ctx context.Context, p Pact, v Version, success bool,
	results []Result) error {
	if err := c.describe(ctx, p, v); err != nil {
		return err
	}
	to, err := c.find(&p.links, nil, "pb:publish-verification-results")
	if err != nil {
		return err
	}
	if results == nil {
		results = []Result{}
	}
	_, err = c.do(ctx, http.MethodPost, to,
		verification{Success: success, Version: v.Number, BuildURL: v.BuildURL,
			By: verifier{"gatehouse pactcheck", "1"}, Results: results})
	return err
}

// describe publishes the branch and the tags of a version.
func (c *Client) describe(ctx context.Context, p Pact, v Version) error {
	if v.Branch == "" && len(v.Tags) == 0 {
		return nil
	}
	at, err := c.find(&p.links, nil, "pb:provider")
	if err != nil {
		return err
	}
	provider, err := c.read(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	if v.Branch != "" {
		to, err := c.find(provider, map[string]string{"branch": v.Branch, "version": v.Number},
			"pb:branch-version")
		if err != nil {
			return err
		}
		if _, err := c.do(ctx, http.MethodPut, to, struct{}{}); err != nil {
			return fmt.Errorf("publish the branch: %w", err)
		}
	}
	for _, tag := range v.Tags {
		to, err := c.find(provider, map[string]string{"tag": tag, "version": v.Number},
			"pb:version-tag")
		if err != nil {
			return err
		}
		if _, err := c.do(ctx, http.MethodPut, to, struct{}{}); err != nil {
			return fmt.Errorf("publish the tag %s: %w", tag, err)
		}
	}
	return nil
}
