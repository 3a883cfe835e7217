package account

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

const (
	saltLength = 16 // bytes
	hashLength = 32 // bytes
)

// Cost is the cost of one password hash: the parameters of argon2id (RFC 9106).
type Cost struct {
	Memory  uint32 // KiB
	Time    uint32 // passes over the memory
	Threads uint8
}

// DefaultCost returns the minimum that OWASP recommends.
func DefaultCost() Cost { return Cost{Memory: 19 * 1024, Time: 2, Threads: 1} }

// CheapCost is for tests: a hash takes less than a millisecond, and protects nothing.
func CheapCost() Cost { return Cost{Memory: 8, Time: 1, Threads: 1} }

// errUnreadableHash is returned for a stored text that Hash cannot have returned.
var errUnreadableHash = errors.New("unreadable password hash")

// The variants of argon2. New hashes have argon2id.
const (
	argon2i  = "argon2i"
	argon2id = "argon2id"
)

// passwordHash is a password hash with its parameters.
type passwordHash struct {
	variant string
	cost    Cost
	salt    []byte
	sum     []byte
}

// dummyHash matches no password. Verifying against it costs as much as against a new hash.
func dummyHash(cost Cost) passwordHash {
	return passwordHash{variant: argon2id, cost: cost, salt: make([]byte, saltLength),
		sum: make([]byte, hashLength)}
}

// newPasswordHash hashes a password with a new salt.
func newPasswordHash(password string, cost Cost) passwordHash {
	h := passwordHash{variant: argon2id, cost: cost, salt: make([]byte, saltLength)}
	rand.Read(h.salt) // never fails
	h.sum = h.of(norm.NFC.String(password), hashLength)
	return h
}

// of hashes password with h's parameters and salt.
func (h *passwordHash) of(password string, length uint32) []byte {
	key := argon2.IDKey
	if h.variant == argon2i {
		key = argon2.Key
	}
	return key([]byte(password), h.salt, h.cost.Time, h.cost.Memory, h.cost.Threads, length)
}

// matches compares in constant time.
func (h *passwordHash) matches(password string) bool {
	return subtle.ConstantTimeCompare(h.of(password, uint32(len(h.sum))), h.sum) == 1
}

// outdated reports whether new hashes, of that cost, have other parameters.
func (h *passwordHash) outdated(cost Cost) bool {
	return h.variant != argon2id || h.cost != cost || len(h.sum) != hashLength
}

// String returns the PHC form.
func (h *passwordHash) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$%s$v=%d$m=%d,t=%d,p=%d$%s$%s", h.variant, argon2.Version, h.cost.Memory,
		h.cost.Time, h.cost.Threads, b64(h.salt), b64(h.sum))
}

// parsePasswordHash parses the PHC form. It rejects parameters that would stall the process.
func parsePasswordHash(s string) (passwordHash, error) {
	var h passwordHash
	var version int
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != argon2id && parts[1] != argon2i {
		return h, errUnreadableHash
	}
	h.variant = parts[1]
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return h, errUnreadableHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.cost.Memory, &h.cost.Time,
		&h.cost.Threads); err != nil {
		return h, errUnreadableHash
	}
	var err error
	if h.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return h, errUnreadableHash
	}
	if h.sum, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
		return h, errUnreadableHash
	}
	c := h.cost
	if c.Memory < 8 || c.Memory > 256*1024 || c.Time < 1 || c.Time > 16 || c.Threads < 1 ||
		c.Threads > 8 || len(h.salt) < 8 || len(h.sum) < 16 || len(h.sum) > 64 {
		return h, errUnreadableHash
	}
	return h, nil
}
