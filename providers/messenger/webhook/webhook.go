// Package webhook posts signed JSON to a URL of the operator's.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gatehouse/actors/trace"
)

// MinSecret is the minimum length of a secret, in bytes.
const MinSecret = 32

const (
	attemptTimeout = 5 * time.Second  // of one attempt, from dialling to end of response
	maxRetryAfter  = 10 * time.Second // longest wait that Retry-After can request
)

// Errors of a URL. They do not quote it: it may contain a password.
var (
	errHost     = errors.New("must have a host, and a port from 1 to 65535 if any")
	errFragment = errors.New("must have no fragment")
	errClear    = errors.New("must be https, or http on loopback")
)

// CheckURL returns an error unless requests may go to u. The error continues a sentence that begins
// with the setting's name.
func CheckURL(u *url.URL) error {
	switch {
	case !HasValidHost(u):
		return errHost
	case u.Fragment != "":
		return errFragment
	case u.Scheme != "https" && (u.Scheme != "http" || !IsLoopback(u.Hostname())):
		return errClear
	}
	return nil
}

// HasValidHost reports whether u has a host and, if any, a port from 1 to 65535.
func HasValidHost(u *url.URL) bool {
	if u.Hostname() == "" || strings.HasSuffix(u.Host, ":") {
		return false
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && n > 0
}

// IsLoopback reports whether host is this machine, by name or address.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Client posts to one URL. It may be used by many goroutines.
type Client struct {
	HTTP   *http.Client // tests may change it before the first Post
	url    string
	secret []byte
}

// New returns a Client. CheckURL has accepted the URL, and the secret has MinSecret bytes.
func New(url, secret string) *Client {
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: attemptTimeout}).DialContext,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 16 << 10,
	}
	return &Client{url: url, secret: []byte(secret), HTTP: &http.Client{
		Transport: transport,
		Timeout:   attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Post posts body once, within 5 seconds. The receiver recognizes a retry by the id. It accepts
// with a status from 200 to 299. With an error, wait is the minimum wait before a retry; 0 = the
// receiver has refused this body. The error has no part of the URL.
func (c *Client) Post(ctx context.Context, id string, body []byte) (wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the request cannot be built")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "gatehouse")
	request.Header.Set("Idempotency-Key", id)
	if traceparent := trace.Of(ctx); traceparent != "" {
		request.Header.Set(trace.Header, traceparent)
	}
	request.Header.Set(SignatureHeader, sign(c.secret, time.Now(), body))
	response, err := c.HTTP.Do(request)
	if err != nil {
		return 1, KindOf(ctx, err)
	}
	defer response.Body.Close()
	status := response.StatusCode
	if status >= 200 && status <= 299 {
		_, err := io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
		_ = err // the body is accepted, whatever the response says
		return 0, nil
	}
	err = fmt.Errorf("the receiver responded with status %d", status)
	if status == http.StatusTooManyRequests || status >= 500 {
		return max(1, retryAfter(response)), err
	}
	return 0, err
}

// retryAfter returns the wait of a Retry-After header in seconds, at most maxRetryAfter; 0 = none.
func retryAfter(r *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return min(maxRetryAfter, time.Duration(seconds)*time.Second)
}

// SignatureHeader has the value "t=SECONDS,v1=HEX": the time of the attempt in Unix seconds, and
// the HMAC-SHA256 with the secret of that time as written, a dot, and the body. A receiver computes
// the same and compares in constant time. It rejects a time more than a few minutes ago, and an ID
// that it has seen: within those minutes a copy of a request has a valid signature too.
const SignatureHeader = "X-Gatehouse-Signature"

// sign returns the value of the signature header for a body that is sent at now.
func sign(secret []byte, now time.Time, body []byte) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
