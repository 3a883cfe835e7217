package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash/crc32"
	"time"
)

// The formats: a prefix for the kind, 256 random bits in base62, and a check. An access token ends
// with its expiry in Unix seconds and a message authentication code. The others end with a CRC-32,
// which only detects typing errors.
const (
	accessTokenPrefix       = "gtat_"
	refreshTokenPrefix      = "gtrt_"
	authorizationCodePrefix = "gtac_"
	clientSecretPrefix      = "gtcs_"

	prefixLength = 5
	randomLength = 43 // base62 characters for at least 256 bits
	crcLength    = 6  // for 32 bits
	expiryLength = 6  // for Unix seconds up to the year 3769
	macLength    = 11 // for 64 bits

	plainLength  = prefixLength + randomLength + crcLength
	signedLength = prefixLength + randomLength + expiryLength // input of the authentication code
	accessLength = signedLength + macLength
)

// Hash is the SHA-256 of a secret, code or token. Only the hash is stored.
type Hash [sha256.Size]byte

// HashOf returns the hash of a secret, code or token.
func HashOf(token string) Hash {
	var buffer [128]byte
	if len(token) > len(buffer) {
		return sha256.Sum256([]byte(token))
	}
	return sha256.Sum256(buffer[:copy(buffer[:], token)])
}

// Keys sign access tokens, so that a forged token is rejected without a database lookup.
type Keys struct {
	Current  [32]byte
	Previous [32]byte  // still accepted; zero = none
	Made     time.Time // when Current was made
}

// NewAccessToken returns a new access token that expires at expires, rounded down to a second. The
// year must be 1970 to 3769.
func (k *Keys) NewAccessToken(expires time.Time) string {
	var token [accessLength]byte
	copy(token[:], accessTokenPrefix)
	fillRandom(token[prefixLength:][:randomLength])
	putBase62(token[signedLength-expiryLength:signedLength], uint64(expires.Unix()))
	putBase62(token[signedLength:], authenticate(&k.Current, (*[signedLength]byte)(token[:])))
	return string(token[:])
}

// CheckAccessToken returns when an access token expires or has expired. ok is false if it was not
// signed with one of the keys. It does not allocate, and compares in constant time.
func (k *Keys) CheckAccessToken(token string) (expires time.Time, ok bool) {
	if len(token) != accessLength || token[:prefixLength] != accessTokenPrefix {
		return time.Time{}, false
	}
	var given [accessLength]byte
	copy(given[:], token)
	signed := (*[signedLength]byte)(given[:])
	genuine := signedBy(&k.Current, signed, given[signedLength:])
	if k.Previous != [32]byte{} {
		genuine |= signedBy(&k.Previous, signed, given[signedLength:])
	}
	if genuine != 1 {
		return time.Time{}, false
	}
	return time.Unix(int64(base62(given[signedLength-expiryLength:signedLength])), 0), true
}

// signedBy returns 1 if mac is the authentication code of signed under key, else 0.
func signedBy(key *[32]byte, signed *[signedLength]byte, mac []byte) int {
	var want [macLength]byte
	putBase62(want[:], authenticate(key, signed))
	return subtle.ConstantTimeCompare(want[:], mac)
}

// authenticate returns the first 64 bits of HMAC-SHA256 (RFC 2104). It does not use crypto/hmac,
// which allocates.
func authenticate(key *[32]byte, message *[signedLength]byte) uint64 {
	var inner [sha256.BlockSize + signedLength]byte
	var outer [sha256.BlockSize + sha256.Size]byte
	for i := range sha256.BlockSize {
		inner[i], outer[i] = 0x36, 0x5c
	}
	subtle.XORBytes(inner[:], inner[:], key[:])
	subtle.XORBytes(outer[:], outer[:], key[:])
	copy(inner[sha256.BlockSize:], message[:])
	sum := sha256.Sum256(inner[:])
	copy(outer[sha256.BlockSize:], sum[:])
	sum = sha256.Sum256(outer[:])
	return binary.BigEndian.Uint64(sum[:])
}

// NewRefreshToken returns a new refresh token.
func NewRefreshToken() string { return newToken(refreshTokenPrefix) }

// NewAuthorizationCode returns a new authorization code.
func NewAuthorizationCode() string { return newToken(authorizationCodePrefix) }

// NewClientSecret returns a new client secret.
func NewClientSecret() string { return newToken(clientSecretPrefix) }

func newToken(prefix string) string {
	var token [plainLength]byte
	copy(token[:], prefix)
	fillRandom(token[prefixLength:][:randomLength])
	body := token[:plainLength-crcLength]
	putBase62(token[len(body):], uint64(checksum(body)))
	return string(token[:])
}

// LooksLikeRefreshToken reports whether a token has the prefix, length and checksum of a refresh
// token.
func LooksLikeRefreshToken(token string) bool { return looksLike(token, refreshTokenPrefix) }

// LooksLikeAuthorizationCode reports whether a token has the prefix, length and checksum of an
// authorization code.
func LooksLikeAuthorizationCode(token string) bool {
	return looksLike(token, authorizationCodePrefix)
}

// LooksLikeClientSecret reports whether a token has the prefix, length and checksum of a client
// secret.
func LooksLikeClientSecret(token string) bool { return looksLike(token, clientSecretPrefix) }

func looksLike(token, prefix string) bool {
	if len(token) != plainLength || token[:prefixLength] != prefix {
		return false
	}
	var given [plainLength]byte
	copy(given[:], token)
	body := given[:plainLength-crcLength]
	var want [crcLength]byte
	putBase62(want[:], uint64(checksum(body)))
	return [crcLength]byte(given[len(body):]) == want
}

// checksum returns the CRC-32 of b. It does not use crc32.ChecksumIEEE, which makes b escape.
func checksum(b []byte) uint32 {
	sum := ^uint32(0)
	for _, c := range b {
		sum = crc32.IEEETable[byte(sum)^c] ^ sum>>8
	}
	return ^sum
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// fillRandom fills dst with uniformly distributed letters and digits.
func fillRandom(dst []byte) {
	const fair = 256 - 256%len(digits) // larger bytes would make some digits more likely
	var random [64]byte
	for len(dst) > 0 {
		rand.Read(random[:])
		for _, b := range random {
			if len(dst) > 0 && int(b) < fair {
				dst[0] = digits[int(b)%len(digits)]
				dst = dst[1:]
			}
		}
	}
}

// putBase62 writes n to dst with leading zeros, the most significant digit first.
func putBase62(dst []byte, n uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = digits[n%uint64(len(digits))]
		n /= uint64(len(digits))
	}
}

// base62 returns the number that putBase62 wrote.
func base62(digits []byte) uint64 {
	var n uint64
	for _, c := range digits {
		n = 62*n + uint64(digitValue(c))
	}
	return n
}

func digitValue(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 36
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
