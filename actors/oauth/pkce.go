package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
)

// ValidCodeChallenge reports whether s can be an S256 code challenge: 32 bytes in base64url without
// padding (RFC 7636 section 4.2).
func ValidCodeChallenge(s string) bool {
	var sum [sha256.Size]byte
	if len(s) != base64.RawURLEncoding.EncodedLen(len(sum)) {
		return false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(sum[:], []byte(s))
	return err == nil && n == len(sum)
}

// ValidCodeVerifier reports whether s has the form of a code verifier: 43 to 128 unreserved
// characters (RFC 7636 section 4.1).
func ValidCodeVerifier(s string) bool {
	if len(s) < 43 || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		if !unreserved(s[i]) {
			return false
		}
	}
	return true
}

// verifies reports whether verifier matches the S256 challenge (RFC 7636 section 4.6).
func verifies(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	want := base64.RawURLEncoding.EncodeToString(sum[:])
	return ValidCodeVerifier(verifier) &&
		subtle.ConstantTimeCompare([]byte(want), []byte(challenge)) == 1
}

// unreserved reports whether c is an unreserved character of URIs (RFC 3986 section 2.3).
func unreserved(c byte) bool {
	return letter(c) || digit(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func digit(c byte) bool  { return '0' <= c && c <= '9' }
