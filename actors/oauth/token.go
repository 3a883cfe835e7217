package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"strings"
)

// The formats of refresh tokens, codes and client secrets: a prefix for the kind, 256 random bits
// in base62, and a CRC-32, which only detects typing errors. Access tokens have another: see
// TokenKey.
const (
	accessTokenPrefix       = "gtat_"
	jwtPartPrefix           = "gtjw_" // of what a JWT carries; it is no credential
	refreshTokenPrefix      = "gtrt_"
	authorizationCodePrefix = "gtac_"
	clientSecretPrefix      = "gtcs_"
	deviceCodePrefix        = "gtdc_"

	prefixLength = 5
	randomLength = 43 // base62 characters for at least 256 bits
	crcLength    = 6  // for 32 bits

	plainLength = prefixLength + randomLength + crcLength
)

// Hash is the SHA-256 of a secret, code or token. Only the hash is stored.
type Hash [sha256.Size]byte

// hashPrefix begins the text of a Hash.
const hashPrefix = "sha256:"

// String returns sha256: and the hash in hexadecimal digits.
func (h Hash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

// ParseHash is the inverse of String.
func ParseHash(text string) (h Hash, ok bool) {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	if !ok || len(digits) != hex.EncodedLen(len(h)) {
		return h, false
	}
	_, err := hex.Decode(h[:], []byte(digits))
	return h, err == nil
}

// HashOf returns the hash of a secret, code or token.
func HashOf(token string) Hash {
	var buffer [MaxAccessToken + 1]byte
	if len(token) > len(buffer) {
		return sha256.Sum256([]byte(token))
	}
	return sha256.Sum256(buffer[:copy(buffer[:], token)])
}

// NewRefreshToken returns a new refresh token.
func NewRefreshToken() string { return newToken(refreshTokenPrefix) }

// NewAuthorizationCode returns a new authorization code.
func NewAuthorizationCode() string { return newToken(authorizationCodePrefix) }

// NewDeviceCode returns a new device code.
func NewDeviceCode() string { return newToken(deviceCodePrefix) }

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

// LooksLikeDeviceCode reports whether a token has the prefix, length and checksum of a device code.
func LooksLikeDeviceCode(token string) bool { return looksLike(token, deviceCodePrefix) }

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
