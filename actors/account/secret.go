package account

import "crypto/rand"

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// secretLength is how many characters of base62 hold 256 bits.
const secretLength = 43

// NewSecret returns 256 random bits as 43 letters and digits, for a cookie.
func NewSecret() string {
	secret := make([]byte, 0, secretLength)
	var random [64]byte
	for {
		rand.Read(random[:]) // never fails
		for _, b := range random {
			if b >= 248 { // 248 is the highest multiple of 62: so that every character is equally likely
				continue
			}
			if secret = append(secret, base62[b%62]); len(secret) == secretLength {
				return string(secret)
			}
		}
	}
}

// LooksLikeSecret reports whether s has the form of what NewSecret returns.
func LooksLikeSecret(s string) bool {
	if len(s) != secretLength {
		return false
	}
	for i := range len(s) {
		if !letterOrDigit(s[i]) {
			return false
		}
	}
	return true
}
