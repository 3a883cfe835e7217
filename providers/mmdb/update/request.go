package update

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxRedirects = 10
	maxTries     = 3
	maxText      = 64 << 10 // bytes of a response that is no file
	shortWait    = 10 * time.Second
	stallTime    = time.Minute // without a byte of a response
)

// statusError is a response of no use.
type statusError struct {
	code   int
	where  string // host and path
	reason string // what the body says
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%s responds with %d %s", e.where, e.code, http.StatusText(e.code))
	if e.reason != "" {
		text += ": " + e.reason
	}
	switch e.code {
	case http.StatusUnauthorized:
		text += " (check the account and its key)"
	case http.StatusPaymentRequired, http.StatusForbidden:
		text += " (the account has no permission for this file)"
	}
	return text
}

// isTemporary reports whether the same request may succeed soon.
func (e *statusError) isTemporary() bool {
	return e.code >= 500 || e.code == http.StatusRequestTimeout
}

// get requests a URL and has read take the response, whose status is 200 or 304. It repeats what
// fails for now, also a body that breaks off, so read may be called several times. It follows
// redirects, and counts each request.
func (j *job) get(ctx context.Context, address string, header http.Header,
	read func(*http.Response) error) error {
	for try := 1; ; try++ {
		again, err := j.try(ctx, address, header, read)
		if err == nil || !again || try == maxTries || ctx.Err() != nil {
			return err
		}
		pause := j.pause << try
		select {
		case <-time.After(pause + rand.N(pause)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try is one try of get. again says that another may succeed.
func (j *job) try(ctx context.Context, address string, header http.Header,
	read func(*http.Response) error) (again bool, err error) {
	response, err := j.follow(ctx, address, header)
	var status *statusError
	var limited *limit
	switch {
	case errors.As(err, &status):
		return status.isTemporary(), err
	case errors.As(err, &limited), errors.Is(err, errRefusedURL):
		return false, err
	case err != nil:
		return true, err
	}
	defer response.Body.Close()
	if err = read(response); err != nil {
		again = response.Body.(*body).err != nil
	}
	return again, err
}

// text requests a URL and returns the body.
func (j *job) text(ctx context.Context, address string) (text []byte, err error) {
	err = j.get(ctx, address, http.Header{}, func(response *http.Response) (err error) {
		text, err = io.ReadAll(io.LimitReader(response.Body, maxText))
		return causeOf(err)
	})
	return text, err
}

// errRefusedURL says that a URL is not requested.
var errRefusedURL = errors.New("this URL is not requested")

var errMalformed = errors.New("the URL is malformed")

// follow requests a URL, and then those that redirects name.
func (j *job) follow(ctx context.Context, address string, header http.Header) (*http.Response, error) {
	first, err := url.Parse(address)
	home, err2 := url.Parse(cmp.Or(j.Host, j.URL))
	if err != nil || err2 != nil {
		return nil, errMalformed
	}
	at := first
	for range maxRedirects + 1 {
		response, err := j.request(ctx, at, sameOrigin(home, at), header)
		if err != nil {
			return nil, err
		}
		switch response.StatusCode {
		case http.StatusOK, http.StatusNotModified:
			return response, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
			http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			next, err := at.Parse(response.Header.Get("Location"))
			response.Body.Close()
			if err != nil || response.Header.Get("Location") == "" {
				return nil, fmt.Errorf("%s redirects to a malformed URL: %w", where(at), errRefusedURL)
			}
			if at, err = j.moved(home, first, next); err != nil {
				return nil, err
			}
		default:
			return nil, j.failed(response, at)
		}
	}
	return nil, fmt.Errorf("%s redirects more than %d times: %w", where(first), maxRedirects, errRefusedURL)
}

// moved returns the URL of a redirect, without the secret if it is of another host than home, to
// which that belongs.
func (j *job) moved(home, first, next *url.URL) (*url.URL, error) {
	if first.Scheme == "https" && next.Scheme != "https" {
		return nil, fmt.Errorf("%s redirects to a URL without https: %w", where(first), errRefusedURL)
	}
	if sameOrigin(home, next) {
		return next, nil
	}
	next.User = nil
	query := next.Query()
	for name, values := range query {
		if name == j.Query || slices.ContainsFunc(values, func(v string) bool {
			return j.Secret != "" && strings.Contains(v, j.Secret)
		}) {
			query.Del(name)
		}
	}
	if len(query) != len(next.Query()) {
		next.RawQuery = query.Encode()
	}
	for _, secret := range j.secrets() {
		if strings.Contains(next.String(), secret) {
			return nil, fmt.Errorf("%s redirects to another host with the secret in the URL: %w",
				where(first), errRefusedURL)
		}
	}
	return next, nil
}

// request sends one request, which has the secret if it goes where that belongs.
func (j *job) request(ctx context.Context, at *url.URL, withSecret bool, header http.Header) (*http.Response, error) {
	if at.Scheme != "https" && !isLoopback(at.Hostname()) {
		return nil, fmt.Errorf("%s needs https: %w", where(at), errRefusedURL)
	}
	if err := j.charge(at); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(j.stall, func() { cancel(errStalled) })
	stop := func() { timer.Stop(); cancel(nil) }
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		stop()
		return nil, errMalformed
	}
	request.Header = header.Clone()
	request.Header.Set("User-Agent", "gatehouse")
	request.Header.Set("Accept-Encoding", "identity") // a file is packed by its publisher, or not at all
	if withSecret {
		j.authorize(request)
	}
	response, err := j.client.Do(request)
	if err != nil {
		if errors.Is(context.Cause(ctx), errStalled) {
			err = errStalled
		}
		stop()
		return nil, fmt.Errorf("%s: %w", where(at), causeOf(err))
	}
	timer.Reset(j.stall)
	response.Body = &body{ReadCloser: response.Body, ctx: ctx, stop: stop,
		progress: func() { timer.Reset(j.stall) }}
	return response, nil
}

// errStalled ends a request whose response has stopped to come.
var errStalled = fmt.Errorf("no byte came for %s", stallTime)

// body is the body of a response that has to come without long pauses.
type body struct {
	io.ReadCloser
	ctx      context.Context
	progress func() // lets the next pause begin
	stop     func()
	err      error // that broke it off; nil = none
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && err == nil {
		b.progress()
	}
	if err != nil && err != io.EOF {
		if errors.Is(context.Cause(b.ctx), errStalled) {
			err = errStalled
		}
		b.err = err
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}

// authorize adds the secret to a request.
func (j *job) authorize(request *http.Request) {
	switch {
	case j.Edition != "":
		request.SetBasicAuth(j.Account, j.Secret)
	case j.Header != "":
		request.Header.Set(j.Header, j.Prefix+j.Secret)
	case j.Query != "":
		query := request.URL.Query()
		query.Set(j.Query, j.Secret)
		request.URL.RawQuery = query.Encode()
	}
}

// charge counts a request before it is sent, unless the publisher allows none.
func (j *job) charge(at *url.URL) error {
	now := time.Now()
	for _, host := range []string{j.home(), at.Host} {
		if err := j.state.held(host, now); err != nil {
			return err
		}
	}
	name, daily := j.publisher()
	if err := j.state.charge(name, daily, now); err != nil {
		return err
	}
	return j.state.save()
}

// failed returns the error of a response. It notes for how long the publisher wants no requests.
func (j *job) failed(response *http.Response, at *url.URL) error {
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 256)) // as much as there is
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable {
		wait := retryAfter(response.Header.Get("Retry-After"))
		if wait == 0 && response.StatusCode == http.StatusTooManyRequests {
			wait = time.Hour
		}
		if wait > shortWait || response.StatusCode == http.StatusTooManyRequests {
			until := time.Now().Add(min(wait, 48*time.Hour)).Truncate(time.Second)
			j.state.hold(j.home(), until)
			j.state.hold(at.Host, until)
			return &limit{until}
		}
	}
	reason := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "")), " ")
	if strings.HasPrefix(reason, "<") {
		reason = "" // a page
	}
	return &statusError{response.StatusCode, where(at), reason}
}

// retryAfter returns the time that a header names; 0 = none.
func retryAfter(value string) time.Duration {
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// sameOrigin reports whether a secret for a may go to b.
func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// where names a URL without what may be secret in it.
func where(at *url.URL) string { return at.Host + at.EscapedPath() }

// home returns the host and port of the publisher.
func (s *Source) home() string {
	at, err := url.Parse(cmp.Or(s.Host, s.URL))
	if err != nil {
		return ""
	}
	return at.Host
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// secrets returns the secret as it may stand in a text.
func (s *Source) secrets() []string {
	if s.Secret == "" {
		return nil
	}
	all := []string{s.Secret, url.QueryEscape(s.Secret), url.PathEscape(s.Secret)}
	return slices.Compact(all)
}

// checksum returns the checksum that the publisher has for a URL of a time, in lower case.
func (j *job) checksum(ctx context.Context, address string, at time.Time) (string, error) {
	from := j.filled(j.Checksum, at)
	if !strings.Contains(from, "://") {
		at, err := url.Parse(address)
		if err != nil {
			return "", errMalformed
		}
		switch {
		case strings.HasPrefix(from, "/"):
			at.Path, at.RawPath = from, ""
		case strings.HasPrefix(from, "."):
			at.Path, at.RawPath = at.Path+from, ""
		default:
			at.Path, at.RawPath = path.Join(path.Dir(at.Path), from), ""
		}
		from = at.String()
	}
	text, err := j.text(ctx, from)
	if err != nil {
		return "", err
	}
	return sumIn(text, address)
}

var sumForm = regexp.MustCompile(`^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})$`)

// sumIn returns the checksum of a file in the text of sha256sum and its like: in the line with the
// file's name, or else the only one.
func sumIn(text []byte, address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", errMalformed
	}
	var sums []string
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		words := strings.Fields(strings.ToLower(lines.Text()))
		i := slices.IndexFunc(words, sumForm.MatchString)
		if i < 0 {
			continue
		}
		if strings.Contains(lines.Text(), path.Base(at.Path)) {
			return words[i], nil
		}
		sums = append(sums, words[i])
	}
	if len(sums) != 1 {
		return "", fmt.Errorf("the text has %d checksums and no line for %s", len(sums), path.Base(at.Path))
	}
	return sums[0], nil
}
