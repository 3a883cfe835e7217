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

// The cost of new password hashes: argon2id (RFC 9106) with the minimum that OWASP recommends.
const (
	hashMemory  = 19 * 1024 // KiB
	hashTime    = 2
	hashThreads = 1
	saltLength  = 16 // bytes
	hashLength  = 32 // bytes
)

// errUnreadableHash is returned for a stored text that Hash cannot have returned.
var errUnreadableHash = errors.New("unreadable password hash")

// passwordHash is a password hash with its parameters.
type passwordHash struct {
	memory  uint32 // KiB
	time    uint32
	threads uint8
	salt    []byte
	sum     []byte
}

// dummy matches no password. Verifying against it costs as much as against a new hash.
var dummy = passwordHash{memory: hashMemory, time: hashTime, threads: hashThreads,
	salt: make([]byte, saltLength), sum: make([]byte, hashLength)}

// newPasswordHash hashes a password with a new salt.
func newPasswordHash(password string) passwordHash {
	h := passwordHash{memory: hashMemory, time: hashTime, threads: hashThreads,
		salt: make([]byte, saltLength)}
	rand.Read(h.salt) // never fails
	h.sum = h.of(password, hashLength)
	return h
}

// of hashes password with h's parameters and salt. It normalizes the password (Unicode NFC),
// because keyboards encode the same characters differently.
func (h *passwordHash) of(password string, length uint32) []byte {
	return argon2.IDKey([]byte(norm.NFC.String(password)), h.salt, h.time, h.memory, h.threads,
		length)
}

// matches compares in constant time.
func (h *passwordHash) matches(password string) bool {
	return subtle.ConstantTimeCompare(h.of(password, uint32(len(h.sum))), h.sum) == 1
}

// outdated reports whether new hashes have other parameters.
func (h *passwordHash) outdated() bool {
	return h.memory != hashMemory || h.time != hashTime || h.threads != hashThreads ||
		len(h.sum) != hashLength
}

// String returns the PHC form.
func (h *passwordHash) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time,
		h.threads, b64(h.salt), b64(h.sum))
}

// parsePasswordHash parses the PHC form. It rejects parameters that would stall the process.
func parsePasswordHash(s string) (passwordHash, error) {
	var h passwordHash
	var version int
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return h, errUnreadableHash
	}
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return h, errUnreadableHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time,
		&h.threads); err != nil {
		return h, errUnreadableHash
	}
	var err error
	if h.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return h, errUnreadableHash
	}
	if h.sum, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
		return h, errUnreadableHash
	}
	if h.memory < 8 || h.memory > 256*1024 || h.time < 1 || h.time > 16 || h.threads < 1 ||
		h.threads > 8 || len(h.salt) < 8 || len(h.sum) < 16 || len(h.sum) > 64 {
		return h, errUnreadableHash
	}
	return h, nil
}
