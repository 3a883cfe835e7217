package account

import (
	"errors"
	"strings"
	"sync/atomic"

	"golang.org/x/text/unicode/norm"
)

// ErrBusy is returned when too many passwords wait to be hashed.
var ErrBusy = errors.New("too many passwords wait to be hashed")

// Hasher hashes passwords. One at DefaultCost takes tens of milliseconds of CPU and 19 MiB, which
// other requests need too, so callers limit how many run at once. Its methods may be called by many
// goroutines.
type Hasher struct {
	cost   Cost
	hashes atomic.Int64
}

// NewHasher returns a Hasher whose new hashes have that cost.
func NewHasher(cost Cost) *Hasher { return &Hasher{cost: cost} }

// Hashes returns how many hashes have been computed, for Hash and for Verify.
func (h *Hasher) Hashes() int64 { return h.hashes.Load() }

// Hash returns the argon2id hash of password in PHC form.
func (h *Hasher) Hash(password string) string {
	h.hashes.Add(1)
	hash := newPasswordHash(password, h.cost)
	return hash.String()
}

// Verify reports whether kept is the hash of password and, if so, whether the password should be
// hashed again: because the parameters have changed, or because another program made the hash (see
// CheckHash). An empty kept, for an unknown account or one without a password, takes the same time
// and never matches; so does an empty password. The error says that kept cannot be parsed.
//
// Keyboards encode the same characters differently, so that new hashes are of the normalized password
// (Unicode NFC). Other programs hash what was typed, so that is tried as well where it differs.
func (h *Hasher) Verify(kept, password string) (ok, outdated bool, err error) {
	hash := dummyHash(h.cost)
	matches := hash.matches
	switch {
	case strings.HasPrefix(kept, "$argon2id$"):
		if hash, err = parsePasswordHash(kept); err != nil {
			return false, false, err
		}
	case kept != "":
		outdated = true
		problem := ""
		if matches, problem = parseKept(kept); problem != "" {
			return false, false, errUnreadableHash
		}
	}
	for _, form := range forms(password) {
		h.hashes.Add(1)
		ok = matches(form) || ok
	}
	if !ok || kept == "" || password == "" {
		return false, false, nil
	}
	return true, outdated || hash.outdated(h.cost), nil
}

// forms returns a password normalized, and as typed if that differs.
func forms(password string) []string {
	normal := norm.NFC.String(password)
	if normal == password {
		return []string{password}
	}
	return []string{normal, password}
}
