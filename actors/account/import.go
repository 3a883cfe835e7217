package account

import "time"

// ImportPart is a part of an import of users. A command sends the parts in their order, and sends one
// again when it does not know whether it was done.
type ImportPart struct {
	ID     string // of the import: a UUID
	Line   int64  // of the first user
	Digest string // of what the part has: one that is sent again must be the same
	// Dry says that nothing is kept.
	Dry   bool
	Users []ImportedUser
	// Refused are the lines that are not imported. Checks before the Store may have found some.
	Refused []RefusedLine
	Created int // users that the part has created; set by the Store
	// Lost is how many authenticator apps cannot be opened: they were sealed under another key file.
	// Their users are imported without a second factor.
	Lost int
}

// ImportedUser is a user in an import. The ID and ServiceID of User are those that it should have;
// 0 and "" = new ones.
type ImportedUser struct {
	Line int64
	User *User
}

// RefusedLine says why a line is not imported. It holds nothing of the line but its number.
type RefusedLine struct {
	Line int64 `json:"line"`
	FieldError
}

// ImportKept is how long an import may stand still before a part that is sent again is taken for a new
// one: its users then collide with themselves.
const ImportKept = 30 * 24 * time.Hour

// MaxID is the greatest ID of a user: JSON numbers are exact up to it.
const MaxID = 1<<53 - 1
