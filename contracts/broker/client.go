// Package broker speaks to a Pact Broker: it asks for the pacts that a provider has to verify, and publishes what came of
// them. It follows the links of the broker's HAL documents.
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

// Config says where the broker is and who asks.
type Config struct {
	URL      string // required: of the broker's index, or of one pact
	Token    string `json:"-"` // optional: a bearer token; it goes before Username
	Username string // optional
	Password string `json:"-"`
}

// Format prints c without what is secret, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprint(f, "broker.Config") }

const (
	patience      = 30 * time.Second // for one exchange
	largestAnswer = 64 << 20         // bytes
)

// Client speaks to one broker. Its methods may be called by many goroutines.
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
		return nil, errors.New("the broker's address must not hold a user or password: give them by flags or environment")
	case config.Token == "" && (config.Username == "") != (config.Password == ""):
		return nil, errors.New("the broker's username and password come together")
	}
	return &Client{config, base, &http.Client{Timeout: patience}}, nil
}

// document is a HAL resource.
type document struct {
	Links    map[string]links           `json:"_links"`
	Embedded map[string]json.RawMessage `json:"_embedded"`
}

// links are one link or a list of some.
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

// find returns the address of the first of the relations that the document has, with the values in the place of {name}.
func (c *Client) find(d *document, values map[string]string, relations ...string) (string, error) {
	for _, relation := range relations {
		if found := d.Links[relation]; len(found) > 0 && found[0].Href != "" {
			href := found[0].Href
			for name, value := range values {
				href = strings.ReplaceAll(href, "{"+name+"}", url.PathEscape(value))
			}
			u, err := c.base.Parse(href)
			if err != nil {
				return "", fmt.Errorf("the broker's link %s is no address", relation)
			}
			return u.String(), nil
		}
	}
	return "", fmt.Errorf("the broker offers no link %s", relations[0])
}

// do makes an exchange and returns the body of an answer with a status of 2xx. Another status is an error with what the broker
// says.
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
		return nil, fmt.Errorf("the broker does not answer: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the broker's answer: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("the broker answers %s %s with %d%s", method, request.URL.Path, response.StatusCode, complaint(answer))
	}
	return answer, nil
}

// authenticate sends credentials to the broker's own origin only.
func (c *Client) authenticate(r *http.Request) {
	switch {
	case r.URL.Host != c.base.Host || r.URL.Scheme != c.base.Scheme:
	case c.config.Token != "":
		r.Header.Set("Authorization", "Bearer "+c.config.Token)
	case c.config.Username != "":
		r.SetBasicAuth(c.config.Username, c.config.Password)
	}
}

// complaint is what a broker says of an error: {"errors":…}, {"error":…} or text.
func complaint(answer []byte) string {
	var said struct {
		Errors json.RawMessage `json:"errors"`
		Error  json.RawMessage `json:"error"`
	}
	text := ""
	if json.Unmarshal(answer, &said) == nil {
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

// read makes an exchange whose answer is a HAL document.
func (c *Client) read(ctx context.Context, method, to string, body any) (*document, error) {
	answer, err := c.do(ctx, method, to, body)
	if err != nil {
		return nil, err
	}
	return parse(answer)
}

func parse(answer []byte) (*document, error) {
	d := &document{}
	if err := json.Unmarshal(answer, d); err != nil {
		return nil, fmt.Errorf("the broker's answer is no HAL document: %w", err)
	}
	return d, nil
}
