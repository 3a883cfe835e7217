package geo

import "time"

// Code is an error code of the service, as responses have it in the member "error".
type Code string

// The codes. CodeOverloaded is an extension of the interface document.
const (
	CodeInvalidQuery Code = "invalid_query" // not an IP address or domain, or it has no location
	CodeRateLimited  Code = "rate_limited"  // the upstream's budget has no room for the query
	CodeOverloaded   Code = "overloaded"    // gatehouse itself has no room for the query
	// CodeProviderUnreachable: the upstream fails, or does not respond in time.
	CodeProviderUnreachable Code = "provider_unreachable"
)

// Codes are all codes. A node refuses replies of another node that have any other.
var Codes = []Code{CodeInvalidQuery, CodeRateLimited, CodeOverloaded, CodeProviderUnreachable}

// Reason refines CodeInvalidQuery; it is "" with every other code.
type Reason string

// The reasons.
const (
	ReasonEmpty         Reason = "empty"          // the query is missing or blank
	ReasonMalformed     Reason = "malformed"      // neither an address nor a domain
	ReasonHasScheme     Reason = "has_scheme"     // http://…, //…, javascript:…
	ReasonHasPath       Reason = "has_path"       // it contains a slash
	ReasonPrivateRange  Reason = "private_range"  // an address of a private network
	ReasonReservedRange Reason = "reserved_range" // an address or name set aside for special use
	ReasonNotFound      Reason = "not_found"      // well-formed, but unknown to the upstream
	ReasonNoLocation    Reason = "no_location"    // a public address that the provider has no data about
	ReasonTooMany       Reason = "too_many"       // more queries in one request than allowed
)

// Message returns what to tell the person who sent the query.
func (r Reason) Message() string {
	switch r {
	case ReasonEmpty:
		return "The query is empty. Send an IPv4 address, an IPv6 address or a domain."
	case ReasonHasScheme:
		return "Remove the scheme, such as https://. Send only the domain or address."
	case ReasonHasPath:
		return "Remove the slash and everything after it. Send only the domain or address."
	case ReasonPrivateRange:
		return "This is an address of a private network. Only public addresses have a location."
	case ReasonReservedRange:
		return "This address or name is reserved for special use. Only public ones have a location."
	case ReasonNotFound:
		return "Nothing is known about this address or domain. Check its spelling."
	case ReasonNoLocation:
		return "The provider has no data about this address."
	case ReasonTooMany:
		return "A bulk request holds at most 50 queries. Split it into several requests."
	}
	return "This is not an IPv4 address, an IPv6 address or a domain. Check its spelling."
}

// DamagedMessage is what to tell the person whose query met a damaged record.
const DamagedMessage = "The database file has a damaged record of this address. The operator must replace the file."

// Error says why a query has no result. Values are shared and must not be modified.
type Error struct {
	Code       Code
	Reason     Reason        // only with CodeInvalidQuery
	RetryAfter time.Duration // time to wait before a retry; 0 = not known
	Damaged    bool          // the provider's record is damaged, so that a retry fails too
}

// Error returns the code and the reason, never the query.
func (e *Error) Error() string {
	if e.Reason == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + string(e.Reason)
}
