// Package ipapi is a client of ip-api.com, its commercial tier, or the simulator of both.
//
// No error or printed value of this package contains a query, an address or the key. The errors of
// net/http contain whole URLs, so this package returns only their kind. There is one exception:
// when the upstream sends bytes without a request, net/http prints them to the standard logger. A
// program that must not log queries has to discard that logger's output (log.SetOutput).
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
	batchSize = 100                  // the upstream's limit
	gather    = 8 * time.Millisecond // geo.Terms.Gather of a tier without a budget
	fields    = "64225275"           // bit set of the members that geo.Result needs
)

// Client is a geo.Provider. Each call sends at most one request and never retries, so that the
// caller counts requests as the upstream does. A call returns when its context ends. The methods
// may be called by many goroutines.
//
// The client uses HTTP/1.1 with keep-alive. It uses the proxy of the environment (HTTP_PROXY,
// HTTPS_PROXY, NO_PROXY; never for loopback) and follows no redirects.
type Client struct {
	tier      Tier
	base      string // without a trailing slash
	parameter string // query of every URL; contains the key
	http      *http.Client
}

// New returns a Client; close it after use. The error says in one line what is wrong with config.
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
		Transport: newTransport(connections, dial),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}, nil
}

func newTransport(connections int, dial func(context.Context, string, string) (net.Conn,
	error)) *http.Transport {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		Protocols:           &http1,
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dial,
		TLSHandshakeTimeout: 5 * time.Second,
		MaxConnsPerHost:     connections,
		MaxIdleConnsPerHost: connections,
		// Close first: the upstream might close a connection while a request is sent.
		IdleConnTimeout:        15 * time.Second,
		MaxResponseHeaderBytes: 16 << 10,
	}
}

// Close closes idle connections. Calls in flight continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Format prints the tier of c and none of its secrets, for every verb.
func (c Client) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "ipapi.Client(%s)", c.tier) }

// Terms returns the limits of the tier. Batch results have no reverse names.
func (c *Client) Terms() geo.Terms { return c.tier.terms() }

// Single looks up one address or domain. If the upstream rejects the query, the answer's Err says
// so. A response that does not match q is an error.
func (c *Client) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	if !q.IsDomain() && !q.Addr().IsValid() {
		return geo.Reply{}, errors.New("look up one: no query")
	}
	body, quota, err := c.exchange(ctx, http.MethodGet, "/json/"+url.PathEscape(q.String()), nil,
		64<<10)
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

// Batch looks up 1 to 100 addresses. If an element of the response does not match its query, only
// that answer has the error CodeProviderUnreachable.
func (c *Client) Batch(ctx context.Context, qs []geo.Query) (geo.Reply, error) {
	if len(qs) == 0 || len(qs) > batchSize {
		return geo.Reply{}, fmt.Errorf("look up %d: a batch has 1 to %d queries", len(qs),
			batchSize)
	}
	addresses := make([]string, len(qs))
	for i, q := range qs {
		if !q.Addr().IsValid() {
			return geo.Reply{}, fmt.Errorf("look up %d: a batch must not contain domains", len(qs))
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
