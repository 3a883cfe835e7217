package broker

import (
	"context"
	"fmt"
	"net/http"
)

// Version is the provider's version that was tried.
type Version struct {
	Number   string // required: of a commit, for one
	Branch   string // optional
	Tags     []string
	BuildURL string // optional: where people find the run
}

// Result is what came of one interaction.
type Result struct {
	ID          string    `json:"interactionId,omitempty"` // that the broker has put into the pact
	Description string    `json:"interactionDescription"`
	Success     bool      `json:"success"`
	Problems    []Problem `json:"mismatches,omitempty"`
}

// Problem is one difference.
type Problem struct {
	Attribute   string `json:"attribute"` // "status", "header", "body" or another
	Description string `json:"description"`
}

// verification is what the broker takes as a result.
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

// Publish tells the broker what came of a pact that Pacts returned: first the version's branch and tags, then the result. Every
// answer but 2xx is an error.
func (c *Client) Publish(ctx context.Context, p Pact, v Version, success bool, results []Result) error {
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
	_, err = c.do(ctx, http.MethodPost, to, verification{Success: success, Version: v.Number, BuildURL: v.BuildURL,
		By: verifier{"gatehouse pactcheck", "1"}, Results: results})
	return err
}

// describe tells the branch and the tags of a version.
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
		to, err := c.find(provider, map[string]string{"branch": v.Branch, "version": v.Number}, "pb:branch-version")
		if err != nil {
			return err
		}
		if _, err := c.do(ctx, http.MethodPut, to, struct{}{}); err != nil {
			return fmt.Errorf("tell the branch: %w", err)
		}
	}
	for _, tag := range v.Tags {
		to, err := c.find(provider, map[string]string{"tag": tag, "version": v.Number}, "pb:version-tag")
		if err != nil {
			return err
		}
		if _, err := c.do(ctx, http.MethodPut, to, struct{}{}); err != nil {
			return fmt.Errorf("tell the tag %s: %w", tag, err)
		}
	}
	return nil
}
