package oauth

// Scopes is a set of scope values (RFC 6749 section 3.3). The zero value is the empty set.
type Scopes uint8

// The scopes (interface document, section 2.6).
const (
	ViewUser         Scopes = 1 << iota // "view-user": read the basic profile
	DetailUser                          // "detail-user": read the detailed profile, once the client is approved
	ServerOperations                    // "server-operations": the admin API; for operator clients
)

// UserScopes are the scopes that only a user can grant.
const UserScopes = ViewUser | DetailUser

// Contains reports whether all of other is in s.
func (s Scopes) Contains(other Scopes) bool { return s&other == other }
