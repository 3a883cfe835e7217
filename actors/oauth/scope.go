package oauth

import "strings"

// Scopes is a set of scope values (RFC 6749 section 3.3). The zero value is the empty set.
type Scopes uint16

// The scopes (interface document, section 2.6).
const (
	ViewUser         Scopes = 1 << iota // "view-user": read the basic profile
	DetailUser                          // "detail-user": read the detailed profile; needs approval
	ServerOperations                    // "server-operations": use the admin API; operator clients
)

// The scopes of OpenID Connect (Core sections 3.1.2.1, 5.4 and 11).
const (
	OpenID        Scopes = 1 << (iota + 3) // "openid": get an id_token, and use userinfo
	Profile                                // "profile": the claims name, picture, gender and more
	Email                                  // "email": email and email_verified
	Phone                                  // "phone": phone_number; needs approval for DetailUser
	Address                                // "address": needs approval for DetailUser
	OfflineAccess                          // "offline_access": refresh tokens outlive the session
	Groups                                 // "groups": the claim groups
)

// OpenIDScopes is the set of scopes of OpenID Connect, and Groups, which is used with them.
const OpenIDScopes = OpenID | Profile | Email | Phone | Address | OfflineAccess | Groups

// UserScopes is the set of scopes of the profile endpoints.
const UserScopes = ViewUser | DetailUser

// GrantableScopes is the set of scopes that only a user can grant.
const GrantableScopes = UserScopes | OpenIDScopes

// AllScopes is the set of all scopes.
const AllScopes = GrantableScopes | ServerOperations

// scopeNames holds the scope values in the order of all lists.
var scopeNames = []struct {
	scope Scopes
	name  string
}{
	{ViewUser, "view-user"},
	{DetailUser, "detail-user"},
	{ServerOperations, "server-operations"},
	{OpenID, "openid"},
	{Profile, "profile"},
	{Email, "email"},
	{Phone, "phone"},
	{Address, "address"},
	{OfflineAccess, "offline_access"},
	{Groups, "groups"},
}

// ParseScopes parses a scope parameter; "" is the empty set. A value may repeat. An unknown value
// or a superfluous space is an InvalidScope error.
func ParseScopes(s string) (Scopes, *Error) {
	var set Scopes
	for rest, more := s, s != ""; more; {
		var name string
		name, rest, more = strings.Cut(rest, " ")
		scope := scopeNamed(name)
		if scope == 0 {
			return 0, errUnknownScope
		}
		set |= scope
	}
	return set, nil
}

var errUnknownScope = invalidScope("The scope is unknown or malformed.",
	"Send scopes that the metadata names, separated by single spaces. Scopes of a resource need the parameter resource.")

func scopeNamed(name string) Scopes {
	for _, known := range scopeNames {
		if known.name == name {
			return known.scope
		}
	}
	return 0
}

// Contains reports whether all of other is in s.
func (s Scopes) Contains(other Scopes) bool { return s&other == other }

// Names returns the values of the set, always in the same order; nil for the empty set.
func (s Scopes) Names() []string {
	var names []string
	for _, known := range scopeNames {
		if s.Contains(known.scope) {
			names = append(names, known.name)
		}
	}
	return names
}

// String returns the values separated by spaces, always in the same order; "" for the empty set.
func (s Scopes) String() string { return scopeTexts[s&AllScopes] }

// List returns the values as people write them: "a, b and c".
func (s Scopes) List() string { return listOf(s.Names()) }

// scopeTexts holds the result of String for each set.
var scopeTexts = func() (texts [AllScopes + 1]string) {
	for set := range texts {
		texts[set] = strings.Join(Scopes(set).Names(), " ")
	}
	return texts
}()
