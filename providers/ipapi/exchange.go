package ipapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/trace"
)

// exchange sends one request and returns the body of a response with status 200. A body of more
// than limit bytes is an error. The quota is valid with an error too.
func (c *Client) exchange(ctx context.Context, method, path string, content []byte,
	limit int64) ([]byte, geo.Quota, error) {
	var body io.Reader = emptyBody{}
	if content != nil {
		body = bytes.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path+"?"+c.parameter, body)
	if err != nil {
		return nil, geo.Quota{}, errors.New("the request cannot be built")
	}
	request.Header.Set("User-Agent", "gatehouse")
	if traceparent := trace.Of(ctx); traceparent != "" {
		request.Header.Set(trace.Header, traceparent)
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, geo.Quota{}, kindOf(ctx, err)
	}
	defer response.Body.Close()
	quota := readQuota(response)
	if err := statusError(response.StatusCode); err != nil {
		return nil, quota, err
	}
	received, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, quota, kindOf(ctx, err)
	}
	if int64(len(received)) > limit {
		return nil, quota, errTooLarge
	}
	return received, quota, nil
}

// emptyBody is an empty request body that net/http cannot rewind. Without a body net/http retries a
// GET when a connection breaks before the response, and the upstream would count two requests.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }

func statusError(status int) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusTooManyRequests:
		return geo.ErrThrottled
	case http.StatusForbidden:
		return geo.ErrForbidden
	}
	return fmt.Errorf("upstream responded with status %d", status)
}

// longestReset limits the time that X-Ttl can set. The upstream documents a window of one minute.
const longestReset = time.Hour

// readQuota reads the headers X-Rl and X-Ttl. Unless both are whole numbers, the quota is not
// known; a response with status 429 needs only X-Ttl. Negative numbers count as 0.
func readQuota(r *http.Response) geo.Quota {
	seconds, err := strconv.Atoi(r.Header.Get("X-Ttl"))
	if err != nil {
		return geo.Quota{}
	}
	remaining := 0
	if r.StatusCode != http.StatusTooManyRequests {
		if remaining, err = strconv.Atoi(r.Header.Get("X-Rl")); err != nil {
			return geo.Quota{}
		}
	}
	seconds = min(max(0, seconds), int(longestReset/time.Second))
	return geo.Quota{Known: true, Remaining: max(0, remaining),
		Reset: time.Duration(seconds) * time.Second}
}

// Errors of an exchange other than the response's status.
var (
	errNoName    = errors.New("upstream's name does not resolve")
	errTimedOut  = errors.New("cannot connect to upstream: timed out")
	errNoConnect = errors.New("cannot connect to upstream")
	errTLS       = errors.New("cannot set up TLS with upstream")
	errBroken    = errors.New("connection to upstream broke")
	errTooLarge  = errors.New("upstream's response is too large")
)

// kindOf returns the context's error if it has ended, or else the kind of a net/http error. The
// error itself must not be returned: it contains the URL.
func kindOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var (
		dns         *net.DNSError
		op          *net.OpError
		errno       syscall.Errno
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
	)
	switch {
	case errors.As(err, &dns):
		return errNoName
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err,
		&alert), errors.Is(err, http.ErrSchemeMismatch):
		return errTLS
	case !errors.As(err, &op) || op.Op != "dial" && op.Op != "proxyconnect":
		return errBroken
	case op.Timeout():
		return errTimedOut
	case errors.As(err, &errno):
		return fmt.Errorf("%w: %s", errNoConnect, errno.Error())
	}
	return errNoConnect
}
