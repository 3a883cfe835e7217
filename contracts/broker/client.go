// Package broker is a client of a Pact Broker. It fetches the pacts that a provider has to verify
// and publishes the results. It follows the links of the broker's HAL documents.
package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config is the address of a broker with credentials.
type Config struct {
	URL      string // required: the broker's index, or one pact
	Token    string `json:"-"` // optional: a bearer token; overrides Username
	Username string // optional
	Password string `json:"-"`
}

// Format prints c without its secrets, for every verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprint(f, "broker.Config") }

const (
	exchangeTimeout = 30 * time.Second
	maxResponse     = 64 << 20 // bytes
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
// broker's message.
func (c *Client) do(ctx context.Context, method, to string, body any) ([]byte, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, to, content)
	if err != nil {
		return nil, errors.New("the broker's address is malformed")
	}
	request.Header.Set("Accept", "application/hal+json, application/json;q=0.9")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	c.authenticate(request)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the broker: %w", err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, fmt.Errorf("read the broker's response: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("the broker responds to %s %s with %d%s", method, request.URL.Path,
			response.StatusCode, messageOf(got))
	}
	return got, nil
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
