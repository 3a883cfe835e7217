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
)

// exchange sends one request and returns the body of a 200, of at most limit bytes. The quota is valid beside an error.
func (c *Client) exchange(ctx context.Context, method, path string, content []byte, limit int64) ([]byte, geo.Quota, error) {
	var body io.Reader = once{}
	if content != nil {
		body = bytes.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path+"?"+c.parameter, body)
	if err != nil {
		return nil, geo.Quota{}, errors.New("the request cannot be built")
	}
	request.Header.Set("User-Agent", "gatehouse")
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
	answer, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, quota, kindOf(ctx, err)
	}
	if int64(len(answer)) > limit {
		return nil, quota, errTooLarge
	}
	return answer, quota, nil
}

// once is an empty request body. With it net/http sends a GET once, whatever happens; without it, a second time when
// a connection breaks before the answer, and the upstream would count two.
type once struct{}

func (once) Read([]byte) (int, error) { return 0, io.EOF }

func statusError(status int) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusTooManyRequests:
		return geo.ErrThrottled
	case http.StatusForbidden:
		return geo.ErrForbidden
	}
	return fmt.Errorf("upstream answered status %d", status)
}

// longestReset bounds what the upstream can say of its window, which is one minute by its documentation.
const longestReset = time.Hour

// readQuota returns what X-Rl and X-Ttl say, and nothing unless both are whole numbers; beside a refusal for the rate
// limit X-Ttl is enough. Negative ones count as 0.
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
	return geo.Quota{Known: true, Remaining: max(0, remaining), Reset: time.Duration(seconds) * time.Second}
}

// What an exchange fails of, beside statuses.
var (
	errNoName    = errors.New("upstream's name does not resolve")
	errTimedOut  = errors.New("cannot connect to upstream: timed out")
	errNoConnect = errors.New("cannot connect to upstream")
	errTLS       = errors.New("TLS with upstream cannot be set up")
	errBroken    = errors.New("exchange with upstream broke off")
	errTooLarge  = errors.New("upstream's answer is too large")
)

// kindOf returns what may be told of an error of net/http: the context's error where that has ended, else the kind.
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
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
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
