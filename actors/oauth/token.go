package oauth

import (
	"crypto/sha256"
	"time"
)

// Hash is the SHA-256 of a secret, code or token: what is kept of it.
type Hash [sha256.Size]byte

// HashOf returns what is kept of a secret, code or token.
func HashOf(token string) Hash { return sha256.Sum256([]byte(token)) }

// Keys sign access tokens, so that a forged one is refused without a look-up.
type Keys struct {
	Current  [32]byte
	Previous [32]byte // still accepted; zero = none
}

// The functions below are stubs of the signatures that others build against.

// NewAccessToken returns a new access token that ends at expires, to the second.
func (k *Keys) NewAccessToken(expires time.Time) string { return "" }

// CheckAccessToken returns when a genuine access token ends, or ended; false says that it is none of ours.
func (k *Keys) CheckAccessToken(token string) (expires time.Time, ok bool) { return time.Time{}, false }

// NewRefreshToken, NewAuthorizationCode and NewClientSecret return 256 random bits in the format of their kind.
func NewRefreshToken() string      { return "" }
func NewAuthorizationCode() string { return "" }
func NewClientSecret() string      { return "" }

// LooksLike reports whether a token has the prefix, length and checksum of a refresh token, code or client secret.
func LooksLikeRefreshToken(token string) bool      { return false }
func LooksLikeAuthorizationCode(token string) bool { return false }
func LooksLikeClientSecret(token string) bool      { return false }
