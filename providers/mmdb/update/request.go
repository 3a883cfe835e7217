package update

import (
	"bufio"
	"bytes"
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

// get requests a URL. It repeats what fails for now, follows redirects, and counts each request. The
// response has the status 200 or 304.
func (j *job) get(ctx context.Context, address string, header http.Header) (*http.Response, error) {
	for try := 1; ; try++ {
		response, err := j.follow(ctx, address, header)
		var status *statusError
		permanent := errors.As(err, &status) && !status.isTemporary()
		var limited *limit
		if err == nil || permanent || errors.As(err, &limited) || errors.Is(err, errRefusedURL) ||
			try == maxTries || ctx.Err() != nil {
			return response, err
		}
		pause := j.pause << try
		select {
		case <-time.After(pause + rand.N(pause)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errRefusedURL says that a URL is not requested.
var errRefusedURL = errors.New("this URL is not requested")

// follow requests a URL, and then those that redirects name.
func (j *job) follow(ctx context.Context, address string, header http.Header) (*http.Response, error) {
	first, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the URL is malformed")
	}
	at := first
	for range maxRedirects + 1 {
		response, err := j.request(ctx, at, sameOrigin(first, at), header)
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
			if at, err = j.moved(first, next); err != nil {
				return nil, err
			}
		default:
			return nil, j.failed(response, at)
		}
	}
	return nil, fmt.Errorf("%s redirects more than %d times: %w", where(first), maxRedirects, errRefusedURL)
}

// moved returns the URL of a redirect, without the secret if it is of another host.
func (j *job) moved(first, next *url.URL) (*url.URL, error) {
	if first.Scheme == "https" && next.Scheme != "https" {
		return nil, fmt.Errorf("%s redirects to a URL without https: %w", where(first), errRefusedURL)
	}
	if sameOrigin(first, next) {
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
	if err := j.charge(); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errors.New("the URL is malformed")
	}
	request.Header = header.Clone()
	request.Header.Set("User-Agent", "gatehouse")
	request.Header.Set("Accept-Encoding", "identity") // a file is packed by its publisher, or not at all
	if withSecret {
		j.authorize(request)
	}
	response, err := j.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where(at), causeOf(err))
	}
	return response, nil
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
func (j *job) charge() error {
	name, daily := j.publisher()
	if err := j.state.charge(name, daily, time.Now()); err != nil {
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
			name, _ := j.publisher()
			until := time.Now().Add(min(wait, 48*time.Hour)).Truncate(time.Second)
			j.state.hold(name, until)
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

func hostOf(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return at.Hostname()
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

// checksum returns the checksum that the publisher has for a URL, in lower case.
func (j *job) checksum(ctx context.Context, address string) (string, error) {
	from := j.Checksum
	if !strings.Contains(from, "://") {
		at, err := url.Parse(address)
		if err != nil {
			return "", errors.New("the URL is malformed")
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
	response, err := j.get(ctx, from, http.Header{})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxText))
	if err != nil {
		return "", causeOf(err)
	}
	return sumIn(text, address)
}

var sumForm = regexp.MustCompile(`^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})$`)

// sumIn returns the checksum of a file in the text of sha256sum and its like: in the line with the
// file's name, or else the only one.
func sumIn(text []byte, address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the URL is malformed")
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
