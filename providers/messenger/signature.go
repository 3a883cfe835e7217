package messenger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// signatureHeader carries "t=SECONDS,v1=HEX": the time of the try in Unix seconds, and the HMAC-SHA256 under the secret over that time as
// it is written, a dot, and the body. A receiver computes the same, compares in constant time, refuses what is older than a few
// minutes, and, since a time does not keep a copy from being sent within them, what has an id that it has seen.
const signatureHeader = "X-Gatehouse-Signature"

// sign returns the value of the signature header for a body sent at now.
func sign(secret []byte, now time.Time, body []byte) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
