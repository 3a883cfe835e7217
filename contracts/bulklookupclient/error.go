package bulklookupclient

import (
	"encoding/json"
	"fmt"
	"time"
)

// Error is an error response of the service.
type Error struct {
	Status     int           // HTTP status; 0 for an item of a Batch
	Code       string        // such as "invalid_query"; "" = no readable body
	Reason     string        // refines "invalid_query"; else ""
	Query      string        // as sent; "" for a whole Batch
	Message    string        // for a person
	RetryAfter time.Duration // 0 = unknown
	Allow      []string      // allowed methods, with status 405
	Origin     Origin        // if nothing is known about the query
}

// Error returns the code, the reason and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("status %d %s %s: %s", e.Status, e.Code, e.Reason, e.Message)
}

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool {
	switch e.Code {
	case "rate_limited", "provider_unreachable", "overloaded":
		return true
	}
	return e.Status >= 500
}

func errorOf(r *Response) *Error {
	e := &Error{Status: r.Status, RetryAfter: seconds(r.Header("Retry-After")),
		Allow: r.values("Allow"), Origin: originOf(r)}
	var body struct {
		Code    string `json:"error"`
		Reason  string `json:"reason"`
		Query   string `json:"query"`
		Message string `json:"message"`
	}
	if json.Unmarshal(r.Body, &body) == nil { // a proxy may respond without JSON
		e.Code, e.Reason, e.Query, e.Message = body.Code, body.Reason, body.Query, body.Message
	}
	return e
}
