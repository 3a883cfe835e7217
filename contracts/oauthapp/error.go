package oauthapp

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Error is an error response of the service.
type Error struct {
	Status      int    // HTTP status
	Code        string // such as "invalid_grant"; "" = none
	Description string // what is wrong
	Message     string // for a person
	Hint        string // what to change, from the token endpoint
	Challenge   string // the header WWW-Authenticate, with status 401 and 403
	RetryAfter  time.Duration
	Allow       []string // allowed methods, with status 405
	Quota       Quota    // of the access token, if the request counts
}

// Error returns the status, the code and the description.
func (e *Error) Error() string {
	text := e.Description
	if text == "" {
		text = e.Message
	}
	return fmt.Sprintf("status %d %s: %s", e.Status, e.Code, text)
}

// Expired reports whether the access token has expired.
func (e *Error) Expired() bool { return e.Code == "token_expired" }

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool { return e.Status == 429 || e.Status >= 500 }

func errorOf(r *Response) *Error {
	e := &Error{Status: r.Status,
		Challenge:  strings.Join(r.Header.Values("WWW-Authenticate"), ", "),
		RetryAfter: seconds(r.Header.Get("Retry-After")),
		Allow:      r.list("Allow"), Quota: quotaOf(r)}
	var body struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
		Message     string `json:"message"`
		Hint        string `json:"hint"`
		RetryAfter  int    `json:"retry_after"`
	}
	if json.Unmarshal(r.Body, &body) == nil { // errors of pages are pages
		e.Code, e.Description, e.Message, e.Hint = body.Code, body.Description, body.Message,
			body.Hint
		if body.RetryAfter > 0 {
			e.RetryAfter = time.Duration(body.RetryAfter) * time.Second
		}
	}
	return e
}

// seconds parses whole seconds; anything else is 0.
func seconds(s string) time.Duration {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
