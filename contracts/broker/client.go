// Package broker is a client of a Pact Broker. It fetches the pacts that a provider has to verify
// and publishes the results. It follows the links of the broker's HAL documents.
package broker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config is the address of a broker with credentials.
type Config struct {
	URL      string // required: the broker's index, or one pact
	Token    string `json:"-"` // optional: a bearer token; overrides Username
	Username string // optional
	Password string `json:"-"`
	// Pause is the time before the second attempt, and doubles for the third; 0 = 500 ms.
	Pause time.Duration
}

// Format prints c without its secrets, for every verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprint(f, "broker.Config") }

const (
	exchangeTimeout = 30 * time.Second
	maxResponse     = 64 << 20 // bytes
	attempts        = 3
	maxRetryAfter   = time.Minute // the client waits no longer, whatever the broker asks for
)

// Client is a client of one broker. Methods are safe for concurrent use.
type Client struct {
	config Config
	base   *url.URL
	http   *http.Client
}

// New checks config and returns a Client.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.URL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("the broker's address must be an http or https URL")
	case base.User != nil:
		return nil,
			errors.New("the broker's address must not contain a user or password: use flags or the environment")
	case config.Token == "" && (config.Username == "") != (config.Password == ""):
		return nil, errors.New("the broker needs both username and password")
	}
	config.Pause = cmp.Or(config.Pause, 500*time.Millisecond)
	return &Client{config, base, &http.Client{Timeout: exchangeTimeout}}, nil
}

// document is a HAL resource.
type document struct {
	Links    map[string]links           `json:"_links"`
	Embedded map[string]json.RawMessage `json:"_embedded"`
}

// links is one link or a list of links.
type links []link

type link struct {
	Href  string `json:"href"`
	Name  string `json:"name"`
	Title string `json:"title"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *links) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, (*[]link)(l))
	}
	var one link
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*l = links{one}
	return nil
}

// find returns the link of the first relation that the document has. Values replace {name} in it.
func (c *Client) find(d *document, values map[string]string, relations ...string) (string, error) {
	for _, relation := range relations {
		if found := d.Links[relation]; len(found) > 0 && found[0].Href != "" {
			href := found[0].Href
			for name, value := range values {
				href = strings.ReplaceAll(href, "{"+name+"}", url.PathEscape(value))
			}
			u, err := c.base.Parse(href)
			if err != nil {
				return "", fmt.Errorf("the broker's link %s is malformed", relation)
			}
			return u.String(), nil
		}
	}
	return "", fmt.Errorf("the broker has no link %s", relations[0])
}

// do sends a request and returns the body of a 2xx response. Any other status is an error with the
// broker's message. A broker that is busy, broken or out of reach is asked three times.
func (c *Client) do(ctx context.Context, method, to string, body any) ([]byte, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	pause := c.config.Pause
	for attempt := 1; ; attempt++ {
		got, err := c.once(ctx, method, to, content)
		var again *temporaryError
		if !errors.As(err, &again) {
			return got, err
		}
		if attempt == attempts || ctx.Err() != nil {
			return nil, fmt.Errorf("%w (%d attempts)", err, attempt)
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(pause, min(again.after, maxRetryAfter))):
		}
		pause *= 2
	}
}

// temporaryError is a failure that the next attempt may not have.
type temporaryError struct {
	error
	after time.Duration // as the broker asks; 0 = it does not
}

// Unwrap returns the failure.
func (e *temporaryError) Unwrap() error { return e.error }

// once makes one attempt. content nil = no body.
func (c *Client) once(ctx context.Context, method, to string, content []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(content))
	if err != nil {
		return nil, errors.New("the broker's address is malformed")
	}
	request.Header.Set("Accept", "application/hal+json, application/json;q=0.9")
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	c.authenticate(request)
	at := request.URL.Scheme + "://" + request.URL.Host + request.URL.EscapedPath()
	response, err := c.http.Do(request)
	if err != nil {
		return nil, &temporaryError{error: fmt.Errorf("ask the broker at %s: %w", at, err)}
	}
	defer response.Body.Close()
	got, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, &temporaryError{error: fmt.Errorf("read the broker's response from %s: %w", at,
			err)}
	}
	if response.StatusCode/100 == 2 {
		return got, nil
	}
	err = fmt.Errorf("the broker responds to %s %s with %d%s%s", method, at, response.StatusCode,
		messageOf(got), advice(response.StatusCode))
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode/100 == 5 {
		return nil, &temporaryError{err, retryAfter(response.Header.Get("Retry-After"))}
	}
	return nil, err
}

// advice returns what to do about a status; "" = nothing is known.
func advice(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "; set PACT_BROKER_TOKEN, or PACT_BROKER_USERNAME and PACT_BROKER_PASSWORD"
	}
	return ""
}

// retryAfter parses the header (RFC 9110 section 10.2.3); 0 = it is missing or malformed.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 16); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return time.Until(at)
	}
	return 0
}

// authenticate adds credentials to requests to the broker's own origin.
func (c *Client) authenticate(r *http.Request) {
	switch {
	case r.URL.Host != c.base.Host || r.URL.Scheme != c.base.Scheme:
	case c.config.Token != "":
		r.Header.Set("Authorization", "Bearer "+c.config.Token)
	case c.config.Username != "":
		r.SetBasicAuth(c.config.Username, c.config.Password)
	}
}

// messageOf returns the message of an error response: {"errors":…} or {"error":…}.
func messageOf(response []byte) string {
	var said struct {
		Errors json.RawMessage `json:"errors"`
		Error  json.RawMessage `json:"error"`
	}
	text := ""
	if json.Unmarshal(response, &said) == nil {
		text = string(said.Errors)
		if text == "" {
			text = string(said.Error)
		}
	}
	if text == "" {
		return ""
	}
	return ": " + text[:min(len(text), 500)]
}

// read sends a request and parses the response as a HAL document.
func (c *Client) read(ctx context.Context, method, to string, body any) (*document, error) {
	response, err := c.do(ctx, method, to, body)
	if err != nil {
		return nil, err
	}
	return parse(response)
}

func parse(response []byte) (*document, error) {
	d := &document{}
	if err := json.Unmarshal(response, d); err != nil {
		return nil, fmt.Errorf("the broker's response is not a HAL document: %w", err)
	}
	return d, nil
}
