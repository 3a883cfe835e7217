// Package ipapi asks ip-api.com, its commercial tier, or the simulator that speaks like them.
//
// Nothing that leaves this package for a person's eyes holds a query, an address or the key: the errors of net/http
// name whole URLs, so that all that is passed on of them is their kind. One line is beyond its reach: when the upstream
// sends bytes that no request asked for, net/http prints them to the standard logger. A program that must be silent
// about queries discards that logger's output (log.SetOutput).
package ipapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"gatehouse/actors/geo"
)

const (
	batchSize = 100                  // the upstream's own bound
	gather    = 8 * time.Millisecond // how long a miss waits for company where no budget paces it
	fields    = "64225275"           // the members that a geo.Result is made of
)

// Client is a geo.Provider. It makes at most one request a call and never repeats one by itself, so that what the
// caller counts is what the upstream counts. Its waits end with the caller's context.
//
// It speaks HTTP/1.1 over connections kept alive, through the proxy that the environment names for the base address
// (HTTP_PROXY, HTTPS_PROXY, NO_PROXY; never for loopback), and follows no redirect.
type Client struct {
	tier      Tier
	base      string // no trailing slash
	parameter string // the query of every URL; holds the key
	http      *http.Client
}

// New returns a Client. Close ends it. The error says in one line what is wrong with config.
func New(config Config) (*Client, error) {
	base, err := config.validate()
	if err != nil {
		return nil, err
	}
	connections := config.Connections
	if connections == 0 {
		connections = DefaultConnections
	}
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	parameter := "fields=" + fields
	if config.Tier == Pro {
		parameter += "&key=" + url.QueryEscape(config.Key)
	}
	return &Client{config.Tier, base, parameter, &http.Client{
		Transport:     newTransport(connections, dial),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func newTransport(connections int, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		Protocols:              &http1,
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxConnsPerHost:        connections,
		MaxIdleConnsPerHost:    connections,
		IdleConnTimeout:        15 * time.Second, // before the upstream closes it in the middle of a request
		MaxResponseHeaderBytes: 16 << 10,
	}
}

// Close closes the connections that are idle. Calls in flight go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Format prints what c is, and nothing that is in it, whatever the verb.
func (c Client) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "ipapi.Client(%s)", c.tier) }

// Terms says how the tier wants to be asked. No batch brings reverse names.
func (c *Client) Terms() geo.Terms { return c.tier.terms() }

// Single asks about one address or domain. Where the upstream finds fault with it, so does the answer's Err; an answer
// that does not belong to q is an error.
func (c *Client) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	if !q.IsDomain() && !q.Addr().IsValid() {
		return geo.Reply{}, errors.New("look up one: no query")
	}
	body, quota, err := c.exchange(ctx, http.MethodGet, "/json/"+url.PathEscape(q.String()), nil, 64<<10)
	reply := geo.Reply{Quota: quota}
	if err != nil {
		return reply, fmt.Errorf("look up one: %w", err)
	}
	answer, err := decodeAnswer(body, q)
	if err != nil {
		return reply, fmt.Errorf("look up one: %w", err)
	}
	reply.Answers = []geo.Answer{answer}
	return reply, nil
}

// Batch asks about 1 to 100 addresses. An element that does not fit its query fails alone, as CodeProviderUnreachable.
func (c *Client) Batch(ctx context.Context, qs []geo.Query) (geo.Reply, error) {
	if len(qs) == 0 || len(qs) > batchSize {
		return geo.Reply{}, fmt.Errorf("look up %d: a batch has 1 to %d queries", len(qs), batchSize)
	}
	addresses := make([]string, len(qs))
	for i, q := range qs {
		if !q.Addr().IsValid() {
			return geo.Reply{}, fmt.Errorf("look up %d: a batch has addresses only", len(qs))
		}
		addresses[i] = q.String()
	}
	request, err := json.Marshal(addresses)
	if err != nil {
		return geo.Reply{}, fmt.Errorf("look up %d: %w", len(qs), err)
	}
	body, quota, err := c.exchange(ctx, http.MethodPost, "/batch", request, 1<<20)
	reply := geo.Reply{Quota: quota}
	if err != nil {
		return reply, fmt.Errorf("look up %d: %w", len(qs), err)
	}
	if reply.Answers, err = decodeBatch(body, qs); err != nil {
		return reply, fmt.Errorf("look up %d: %w", len(qs), err)
	}
	return reply, nil
}
