package visit

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
)

const (
	nonceSize   = 16 // bytes
	macSize     = sha256.Size
	hiddenNonce = 12 // bytes, of AES-GCM

	clockDifference = 5 * time.Second // at most, between servers
)

var base64url = base64.RawURLEncoding

// newBrowserSecret returns 256 random bits for the cookie that forms are bound to.
func newBrowserSecret() string {
	var bits [32]byte
	rand.Read(bits[:])
	return base64url.EncodeToString(bits[:])
}

// isBrowserSecret reports whether s has the form of a browser secret.
func isBrowserSecret(s string) bool {
	bits, err := base64url.DecodeString(s)
	return err == nil && len(bits) == 32
}

// Binding is what a sealed value is valid for: one purpose, one subject, one browser. Seals need a
// key of the server, so that a browser cannot make one with its own secret.
type Binding struct {
	keys    func() []oauth.Key // for oauth.FormKeys, the current one first
	secret  string             // of the browser's cookie
	purpose string
	subject string // such as the authorization request
}

// mac returns the MAC of head under a key of the server and the browser's secret.
func (b Binding) mac(key *oauth.Key, head []byte) []byte {
	m := hmac.New(sha256.New, key.Secret[:])
	m.Write([]byte(b.secret))
	m = hmac.New(sha256.New, m.Sum(nil))
	for _, part := range []string{b.purpose, b.subject} {
		m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		m.Write([]byte(part))
	}
	m.Write(head)
	return m.Sum(nil)
}

// Seal returns payload with the time and a MAC under the current key.
func (b Binding) Seal(payload []byte, now time.Time) string {
	head := append(binary.BigEndian.AppendUint64(nil, uint64(now.Unix())), payload...)
	return base64url.EncodeToString(append(head, b.mac(&b.keys()[0], head)...))
}

// Open returns the payload of size bytes and the time of the seal, in whole seconds. It returns
// false when the value was sealed for another binding, under a key that has expired, in the future,
// or lifetime or longer ago.
func (b Binding) Open(sealed string, size int, lifetime time.Duration,
	now time.Time) (payload []byte, made time.Time, ok bool) {
	raw, err := base64url.DecodeString(sealed)
	if err != nil || len(raw) != 8+size+macSize || b.secret == "" {
		return nil, time.Time{}, false
	}
	head := raw[:8+size]
	genuine := slices.ContainsFunc(b.keys(), func(key oauth.Key) bool {
		return hmac.Equal(raw[8+size:], b.mac(&key, head))
	})
	if !genuine {
		return nil, time.Time{}, false
	}
	made = time.Unix(int64(binary.BigEndian.Uint64(head)), 0)
	age := now.Sub(made)
	return head[8:], made, age >= -clockDifference && age < lifetime
}

// Hide returns payload with the time, encrypted under the current key: for what must not be read in a
// URL or a cookie.
func (b Binding) Hide(payload []byte, now time.Time) string {
	nonce := make([]byte, hiddenNonce)
	rand.Read(nonce)
	head := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	return base64url.EncodeToString(b.hider(&b.keys()[0]).Seal(nonce, nonce, append(head, payload...), nil))
}

// Reveal returns the payload that Hide was given. It returns false where Open does.
func (b Binding) Reveal(hidden string, lifetime time.Duration, now time.Time) (payload []byte, ok bool) {
	raw, err := base64url.DecodeString(hidden)
	if err != nil || len(raw) < hiddenNonce || b.secret == "" {
		return nil, false
	}
	for _, key := range b.keys() {
		text, err := b.hider(&key).Open(nil, raw[:hiddenNonce], raw[hiddenNonce:], nil)
		if err == nil && len(text) >= 8 {
			age := now.Sub(time.Unix(int64(binary.BigEndian.Uint64(text)), 0))
			return text[8:], age >= -clockDifference && age < lifetime
		}
	}
	return nil, false
}

// hider returns the cipher of the binding under a key of the server.
func (b Binding) hider(key *oauth.Key) cipher.AEAD {
	block, err := aes.NewCipher(b.mac(key, []byte("hidden")))
	if err != nil {
		panic(err) // the key has 256 bits
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the block has 128 bits
	}
	return aead
}

// NewFormToken returns a token for one rendering of a form. It differs from that of any other, so
// that two clicks on one form can be told from one click on each of two.
func (b Binding) NewFormToken(now time.Time) string {
	var nonce [nonceSize]byte
	rand.Read(nonce[:])
	return b.Seal(nonce[:], now)
}

// checkFormToken reports whether token is valid for this binding.
func (b Binding) checkFormToken(token string, now time.Time) bool {
	_, _, ok := b.Open(token, nonceSize, oauth.FormLifetime, now)
	return ok
}

// isCrossSite reports whether the browser says that another site sent the form (Fetch Metadata).
// Browsers without these headers are checked by the form token alone.
func isCrossSite(ctx *fasthttp.RequestCtx) bool {
	switch string(ctx.Request.Header.Peek("Sec-Fetch-Site")) {
	case "", "same-origin", "none":
		return false
	}
	return true
}
