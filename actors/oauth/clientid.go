package oauth

import (
	"errors"

	"github.com/google/uuid"
)

// The length of a client's ID in bytes.
const (
	shortestClientID = 3
	longestClientID  = 40
)

// ErrClientIDTaken: another client has the ID that was chosen.
var ErrClientIDTaken = errors.New("a client with that ID exists")

// IsClientID reports whether id may be the ID of a client: 3 to 40 letters, digits, dots, underscores
// and hyphens. Digits alone are the IDs of users, and both may be the subject of a token (RFC 9068
// section 5).
func IsClientID(id string) bool {
	if len(id) < shortestClientID || len(id) > longestClientID {
		return false
	}
	onlyDigits := true
	for i := range len(id) {
		switch c := id[i]; {
		case c >= '0' && c <= '9':
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '.', c == '_', c == '-':
			onlyDigits = false
		default:
			return false
		}
	}
	return !onlyDigits
}

// CheckID returns a *RegistrationError unless the client's ID may be chosen by an operator. A UUID of
// version 8 is made from the URL of a metadata document.
func (c *Client) CheckID() error {
	if !IsClientID(c.ID) {
		return &RegistrationError{"client_id", "it must have 3 to 40 letters, digits, dots, " +
			"underscores and hyphens, and not digits alone"}
	}
	if id, err := uuid.Parse(c.ID); err == nil && id.Version() == 8 {
		return &RegistrationError{"client_id", "a UUID of version 8 cannot be chosen"}
	}
	return nil
}
