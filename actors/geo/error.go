package geo

import "time"

// Code is an error code of the service, as it stands in the field "error" of an answer.
type Code string

// The codes. All but CodeOverloaded are the interface document's.
const (
	CodeInvalidQuery        Code = "invalid_query"        // not an IP address or domain, or one without a location
	CodeRateLimited         Code = "rate_limited"         // the upstream's budget has no room for the query
	CodeProviderUnreachable Code = "provider_unreachable" // the upstream does not answer, or not in time
	CodeOverloaded          Code = "overloaded"           // gatehouse itself has no room for the query
)

// Reason refines CodeInvalidQuery; it is "" with every other code.
type Reason string

// The reasons.
const (
	ReasonEmpty         Reason = "empty"          // nothing was asked
	ReasonMalformed     Reason = "malformed"      // neither an address nor a domain
	ReasonHasScheme     Reason = "has_scheme"     // http://…, //…, javascript:…
	ReasonHasPath       Reason = "has_path"       // something behind a slash
	ReasonPrivateRange  Reason = "private_range"  // an address of a private network
	ReasonReservedRange Reason = "reserved_range" // an address or name set aside for special use
	ReasonNotFound      Reason = "not_found"      // well-formed, but the upstream knows nothing of it
	ReasonTooMany       Reason = "too_many"       // more queries in one request than allowed
)

// Error is why a query has no result. Values are shared: they are never changed after they are made.
type Error struct {
	Code       Code
	Reason     Reason        // only with CodeInvalidQuery
	RetryAfter time.Duration // when to come back; 0 = not known
}

// Error returns the code and the reason, never the query.
func (e *Error) Error() string {
	if e.Reason == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + string(e.Reason)
}
