package account

import "crypto/rand"

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// secretLength is the number of base62 characters that hold 256 bits.
const secretLength = 43

// NewSecret returns 256 random bits as 43 letters and digits, for a cookie.
func NewSecret() string {
	secret := make([]byte, 0, secretLength)
	var random [64]byte
	for {
		rand.Read(random[:]) // never fails
		for _, b := range random {
			if b >= 248 { // 248 = 4·62: larger bytes would make some characters more likely
				continue
			}
			if secret = append(secret, base62[b%62]); len(secret) == secretLength {
				return string(secret)
			}
		}
	}
}

// LooksLikeSecret reports whether s has the form of a secret from NewSecret.
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
