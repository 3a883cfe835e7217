// Package greeter greets people by name and shows the location of their address. It is an example
// of a client that has a contract with gatehouse.
package greeter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Client is a client of the gatehouse at a base URL. Methods are safe for concurrent use.
type Client struct{ Base string }

// Profile is the part of the basic profile that the greeter needs.
type Profile struct {
	Name  string  `json:"name"`
	Email *string `json:"email"` // nil = the person has none
}

// Place is the part of a lookup that the greeter needs.
type Place struct {
	Location struct {
		Country string  `json:"country"`
		Lat     float64 `json:"lat"`
		Lon     float64 `json:"lon"`
	} `json:"location"`
}

// Error is an error response of the service.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"error"`  // "" for an invalid token
	Reason  string `json:"reason"` // of lookups
	Message string `json:"message"`
}

// Error returns the message, which is for people.
func (e *Error) Error() string { return e.Message }

// Profile returns the profile of an access token's person. An error response is an *Error.
func (c *Client) Profile(ctx context.Context, token string) (*Profile, error) {
	p := new(Profile)
	return p, c.get(ctx, "/api/user", "Bearer "+token, p)
}

// Lookup looks up an address or a domain. An error response is an *Error.
func (c *Client) Lookup(ctx context.Context, query string) (*Place, error) {
	p := new(Place)
	return p, c.get(ctx, "/api/lookup?q="+url.QueryEscape(query), "", p)
}

func (c *Client) get(ctx context.Context, path, authorization string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
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
		failure := &Error{Status: response.StatusCode}
		if err := json.NewDecoder(response.Body).Decode(failure); err != nil {
			return fmt.Errorf("read a response with status %d: %w", response.StatusCode, err)
		}
		return failure
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("read a response: %w", err)
	}
	return nil
}
