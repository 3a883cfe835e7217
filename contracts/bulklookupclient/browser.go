package bulklookupclient

import (
	"context"

	"github.com/valyala/fasthttp"
)

// Permission is what web pages may do at an endpoint (CORS).
type Permission struct {
	Origins []string // "*" = all
	Methods []string
	Headers []string // of requests
	Exposed []string // response headers that a page may read
}

// Preflight returns what web pages of origin may do at path, as a browser asks for them.
func (c *Client) Preflight(ctx context.Context, origin, method, path string) (Permission, error) {
	response, err := c.Do(ctx, Request{Method: fasthttp.MethodOptions, Path: path,
		Header: map[string]string{"Origin": origin, "Access-Control-Request-Method": method}})
	if err != nil {
		return Permission{}, err
	}
	return Permission{
		Origins: response.values("Access-Control-Allow-Origin"),
		Methods: response.values("Access-Control-Allow-Methods"),
		Headers: response.values("Access-Control-Allow-Headers"),
		Exposed: response.values("Access-Control-Expose-Headers"),
	}, nil
}
