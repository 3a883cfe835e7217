package account

import (
	"crypto/subtle"
	"encoding/base32"
	"net/url"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
)

// Parameters of authenticator apps (RFC 6238), those that all apps know: SHA-1 and 6 digits.
const (
	TOTPSecret = 20 // bytes (RFC 4226 section 4 recommends 160 bits)
	totpStep   = 30 // seconds
	totpSkew   = 1  // steps before and after now that are accepted
)

// MatchTOTP returns the time step whose code of a secret was entered, in units of 30 s since 1970. ok
// is false if it is the code of no step from one before now to one after.
func MatchTOTP(secret []byte, code string, now time.Time) (step int64, ok bool) {
	code = TidyCode(code)
	text := base32.StdEncoding.EncodeToString(secret)
	current := now.Unix() / totpStep
	for n := current - totpSkew; n <= current+totpSkew; n++ {
		want, err := hotp.GenerateCodeCustom(text, uint64(n), hotp.ValidateOpts{
			Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1,
		})
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 && !ok {
			step, ok = n, true
		}
	}
	return step, ok
}

// TOTPURL returns the URL of a secret in base32 for authenticator apps, which show issuer and name.
func TOTPURL(issuer, name, secret string) string {
	label := url.PathEscape(issuer) + ":" + url.PathEscape(name)
	query := "secret=" + secret + "&issuer=" + strings.ReplaceAll(url.QueryEscape(issuer), "+", "%20") +
		"&algorithm=SHA1&digits=6&period=30"
	return "otpauth://totp/" + label + "?" + query
}
