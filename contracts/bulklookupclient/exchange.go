package bulklookupclient

import (
	"context"
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// Request is a request without an own method of Client.
type Request struct {
	Method      string // "" = GET
	Path        string // with the query
	ContentType string // of Body
	Body        []byte
	Header      map[string]string // further headers
}

// Response is a response with a status below 400.
type Response struct {
	Status int
	Body   []byte
	header fasthttp.ResponseHeader
}

// Header returns all values of a header, joined by commas; "" = none.
func (r *Response) Header(name string) string {
	var all []string
	for _, v := range r.header.PeekAll(name) {
		all = append(all, string(v))
	}
	return strings.Join(all, ", ")
}

// values returns the elements of a list header.
func (r *Response) values(name string) []string {
	var all []string
	for v := range strings.SplitSeq(r.Header(name), ",") {
		if v = strings.TrimSpace(v); v != "" {
			all = append(all, v)
		}
	}
	return all
}

// Do sends a request. A status of 400 or more is an *Error.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(c.base + r.Path)
	request.Header.SetMethod(r.Method)
	request.Header.Set(fasthttp.HeaderAccept, "application/json")
	if r.ContentType != "" {
		request.Header.SetContentType(r.ContentType)
	}
	for name, value := range r.Header {
		request.Header.Set(name, value)
	}
	request.SetBody(r.Body)
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(requestTimeout)
	}
	if err := c.http.DoDeadline(request, response, deadline); err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	got := &Response{Status: response.StatusCode(), Body: append([]byte(nil), response.Body()...)}
	response.Header.CopyTo(&got.header)
	if got.Status >= 400 {
		return nil, errorOf(got)
	}
	kind, _, err := mime.ParseMediaType(got.Header(fasthttp.HeaderContentType))
	if len(got.Body) > 0 && (err != nil || kind != "application/json" &&
		kind != "application/x-ndjson") {
		return nil, fmt.Errorf("got a response with status %d that is not JSON", got.Status)
	}
	return got, nil
}
