// Package bulklookupclient is a consumer of the geolocation service. It looks up addresses and
// domains, one at a time or up to 50 at once.
package bulklookupclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// MaxQueries is the maximum number of queries of Bulk.
const MaxQueries = 50

// requestTimeout limits a request whose context has no deadline.
const requestTimeout = time.Minute

// Client is a client of one geolocation service. Methods are safe for concurrent use, and each
// makes one request. An error response is an *Error.
type Client struct {
	base string
	http *fasthttp.Client
}

// New returns a client of the service at the URL base.
func New(base string) *Client {
	return &Client{strings.TrimRight(base, "/"),
		&fasthttp.Client{Name: "bulk-lookup-client", MaxResponseBodySize: 4 << 20}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// MyIP looks up the caller's own address, as the service sees it.
func (c *Client) MyIP(ctx context.Context) (*Lookup, error) {
	return c.lookup(ctx, "/api/my-ip")
}

// Lookup looks up an IPv4 address, an IPv6 address or a domain.
func (c *Client) Lookup(ctx context.Context, query string) (*Lookup, error) {
	return c.lookup(ctx, lookupPath(query))
}

func lookupPath(query string) string { return "/api/lookup?q=" + url.QueryEscape(query) }

func (c *Client) lookup(ctx context.Context, path string) (*Lookup, error) {
	response, err := c.Do(ctx, Request{Path: path})
	if err != nil {
		return nil, err
	}
	found := &Lookup{Origin: originOf(response)}
	if err := decode(response, &found.Result); err != nil {
		return nil, err
	}
	if !found.Result.OK {
		return nil, fmt.Errorf("got a result that is not ok with status %d", response.Status)
	}
	return found, nil
}

// Check returns the Origin that Lookup would return, without the result.
func (c *Client) Check(ctx context.Context, query string) (Origin, error) {
	response, err := c.Do(ctx, Request{Method: fasthttp.MethodHead, Path: lookupPath(query)})
	if err != nil {
		return Origin{}, err
	}
	return originOf(response), nil
}

// Bulk looks up 1 to MaxQueries addresses and domains. The items are in the order of the queries,
// and each can fail by itself.
func (c *Client) Bulk(ctx context.Context, queries []string) (*Batch, error) {
	body, err := json.Marshal(struct {
		Queries []string `json:"queries"`
	}{queries})
	if err != nil {
		return nil, fmt.Errorf("write the queries: %w", err)
	}
	return c.BulkFrom(ctx, "application/json", body)
}

// BulkFrom is Bulk with a request body of the caller.
func (c *Client) BulkFrom(ctx context.Context, contentType string, body []byte) (*Batch, error) {
	response, err := c.Do(ctx, Request{Method: fasthttp.MethodPost, Path: "/api/bulk",
		ContentType: contentType, Body: body})
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

// Stream looks up the queries of body: lines of text/plain or application/x-ndjson. The items are
// in the order of the queries. It returns an error if the response was cut off.
func (c *Client) Stream(ctx context.Context, contentType, body string) ([]Item, error) {
	response, err := c.Do(ctx, Request{Method: fasthttp.MethodPost, Path: "/api/stream",
		ContentType: contentType, Body: []byte(body)})
	if err != nil {
		return nil, err
	}
	var all []Item
	lines := json.NewDecoder(bytes.NewReader(response.Body))
	for {
		var line struct {
			Item
			Done  bool `json:"done"`
			Count int  `json:"count"`
		}
		if err := lines.Decode(&line); err != nil {
			return nil, fmt.Errorf("read line %d of a stream: %w", len(all)+1, err)
		}
		if line.Done {
			if line.Count != len(all) {
				return nil, fmt.Errorf("got %d lines of %d", len(all), line.Count)
			}
			return all, nil
		}
		all = append(all, line.Item)
	}
}

func decode(r *Response, into any) error {
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fmt.Errorf("read a response with status %d: %w", r.Status, err)
	}
	return nil
}
