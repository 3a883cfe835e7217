package account

import (
	"errors"
	"sync/atomic"
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
// hashed again because the parameters have changed. An empty kept, for an unknown account or one
// without a password, takes the same time and never matches. The error says that kept cannot be
// parsed.
func (h *Hasher) Verify(kept, password string) (ok, outdated bool, err error) {
	hash := dummyHash(h.cost)
	if kept != "" {
		if hash, err = parsePasswordHash(kept); err != nil {
			return false, false, err
		}
	}
	h.hashes.Add(1)
	if !hash.matches(password) || kept == "" {
		return false, false, nil
	}
	return true, hash.outdated(h.cost), nil
}
