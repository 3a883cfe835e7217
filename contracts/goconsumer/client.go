// Package greeter greets people by their name and says where their address is. It is an example of a client of gatehouse that has a
// contract with it.
package greeter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Client asks the gatehouse at a base URL. Its methods may be called by many goroutines.
type Client struct{ Base string }

// Profile is what is needed of the basic profile.
type Profile struct {
	Name  string  `json:"name"`
	Email *string `json:"email"` // nil = the person has none
}

// Place is what is needed of a look-up.
type Place struct {
	Location struct {
		Country string  `json:"country"`
		Lat     float64 `json:"lat"`
		Lon     float64 `json:"lon"`
	} `json:"location"`
}

// Refusal is an error of the service.
type Refusal struct {
	Status  int    `json:"-"`
	Code    string `json:"error"`  // "" for a token that is not valid
	Reason  string `json:"reason"` // of look-ups
	Message string `json:"message"`
}

// Error is the message, for people.
func (r *Refusal) Error() string { return r.Message }

// Profile returns that of the person whose access token it is. The error is a *Refusal when the service refuses.
func (c *Client) Profile(ctx context.Context, token string) (*Profile, error) {
	p := new(Profile)
	return p, c.get(ctx, "/api/user", "Bearer "+token, p)
}

// Lookup returns where an address or a domain is. The error is a *Refusal when the service refuses.
func (c *Client) Lookup(ctx context.Context, query string) (*Place, error) {
	p := new(Place)
	return p, c.get(ctx, "/api/lookup?q="+url.QueryEscape(query), "", p)
}

func (c *Client) get(ctx context.Context, path, authorization string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+path, nil)
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask gatehouse: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		refusal := &Refusal{Status: response.StatusCode}
		if err := json.NewDecoder(response.Body).Decode(refusal); err != nil {
			return fmt.Errorf("read an answer with status %d: %w", response.StatusCode, err)
		}
		return refusal
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	return nil
}
