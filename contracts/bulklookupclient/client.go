// Package bulklookupclient is a consumer of the geolocation service: it asks where addresses and domains are, one at a
// time or up to 50 at once.
package bulklookupclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// MaxQueries is how many queries Bulk takes.
const MaxQueries = 50

// patience bounds a request whose context has no deadline.
const patience = 10 * time.Second

// Client asks one geolocation service. Its methods may be called by many goroutines; each makes one request. Their errors are an
// *Error where the service refused.
type Client struct {
	base string
	http *fasthttp.Client
}

// New returns a client of the service at the URL base.
func New(base string) *Client {
	return &Client{strings.TrimRight(base, "/"), &fasthttp.Client{Name: "bulk-lookup-client", MaxResponseBodySize: 4 << 20}}
}

// Close closes the connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// MyIP says where the caller's own address is, as the service sees it.
func (c *Client) MyIP(ctx context.Context) (*Answer, error) {
	return c.answer(ctx, "/api/my-ip")
}

// Lookup says where an IPv4 address, an IPv6 address or a domain is.
func (c *Client) Lookup(ctx context.Context, query string) (*Answer, error) {
	return c.answer(ctx, lookupPath(query))
}

func lookupPath(query string) string { return "/api/lookup?q=" + url.QueryEscape(query) }

func (c *Client) answer(ctx context.Context, path string) (*Answer, error) {
	response, err := c.Do(ctx, Request{Path: path})
	if err != nil {
		return nil, err
	}
	answer := &Answer{Origin: originOf(response)}
	if err := decode(response, &answer.Result); err != nil {
		return nil, err
	}
	if !answer.Result.OK {
		return nil, fmt.Errorf("got a result that is not ok with status %d", response.Status)
	}
	return answer, nil
}

// Check says what Lookup would say of where its answer comes from, without the answer.
func (c *Client) Check(ctx context.Context, query string) (Origin, error) {
	response, err := c.Do(ctx, Request{Method: fasthttp.MethodHead, Path: lookupPath(query)})
	if err != nil {
		return Origin{}, err
	}
	return originOf(response), nil
}

// Bulk looks up 1 to MaxQueries addresses and domains. The items are in the order of the queries; an item fails alone.
func (c *Client) Bulk(ctx context.Context, queries []string) (*Batch, error) {
	body, err := json.Marshal(struct {
		Queries []string `json:"queries"`
	}{queries})
	if err != nil {
		return nil, fmt.Errorf("write the queries: %w", err)
	}
	return c.BulkFrom(ctx, "application/json", body)
}

// BulkFrom is Bulk with a request body as it was kept somewhere.
func (c *Client) BulkFrom(ctx context.Context, contentType string, body []byte) (*Batch, error) {
	response, err := c.Do(ctx, Request{Method: fasthttp.MethodPost, Path: "/api/bulk", ContentType: contentType, Body: body})
	if err != nil {
		return nil, err
	}
	batch := new(Batch)
	if err := decode(response, batch); err != nil {
		return nil, err
	}
	batch.Sources = response.values("X-Geo-Source")
	if !batch.OK || batch.Count != len(batch.Items) {
		return nil, fmt.Errorf("got %d items of %d", len(batch.Items), batch.Count)
	}
	return batch, nil
}

func decode(r *Response, into any) error {
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fmt.Errorf("read an answer with status %d: %w", r.Status, err)
	}
	return nil
}
