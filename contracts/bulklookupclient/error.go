package bulklookupclient

import (
	"encoding/json"
	"fmt"
	"time"
)

// Error is a refusal of the service.
type Error struct {
	Status     int           // HTTP status; 0 for an item of a Batch
	Code       string        // such as "invalid_query"; "" when the answer had no body that could be read
	Reason     string        // refines "invalid_query"; else ""
	Query      string        // as it was asked; "" for a whole Batch
	Message    string        // for a person
	RetryAfter time.Duration // when to come back; 0 = nothing is said
	Allow      []string      // with status 405: the methods that there are
	Origin     Origin        // of the knowledge that there is nothing
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

func refusalOf(r *Response) *Error {
	e := &Error{Status: r.Status, RetryAfter: seconds(r.Header("Retry-After")), Allow: r.values("Allow"), Origin: originOf(r)}
	var body struct {
		Code    string `json:"error"`
		Reason  string `json:"reason"`
		Query   string `json:"query"`
		Message string `json:"message"`
	}
	if json.Unmarshal(r.Body, &body) == nil { // what is in front of a service may answer without JSON
		e.Code, e.Reason, e.Query, e.Message = body.Code, body.Reason, body.Query, body.Message
	}
	return e
}
