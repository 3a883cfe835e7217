package visit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	formLifetime = time.Hour // how long a form may be looked at before it is sent
	nonceSize    = 16        // bytes
	macSize      = sha256.Size
	maxSpent     = 1 << 16 // nonces that are remembered
)

var base64url = base64.RawURLEncoding

// newBrowserSecret returns 256 random bits for the cookie that forms are bound to.
func newBrowserSecret() string {
	var bits [32]byte
	rand.Read(bits[:])
	return base64url.EncodeToString(bits[:])
}

// isBrowserSecret reports whether s is written like one.
func isBrowserSecret(s string) bool {
	bits, err := base64url.DecodeString(s)
	return err == nil && len(bits) == 32
}

// Binding is what a sealed value is good for: one purpose, about one subject, in one browser.
type Binding struct {
	secret  string // of the browser's cookie
	purpose string
	subject string // what it is about
}

func (b Binding) mac(head []byte) []byte {
	m := hmac.New(sha256.New, []byte(b.secret))
	for _, part := range []string{b.purpose, b.subject} {
		m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		m.Write([]byte(part))
	}
	m.Write(head)
	return m.Sum(nil)
}

// Seal returns payload with the time, in a form that only who knows the browser's secret can make.
func (b Binding) Seal(payload []byte, now time.Time) string {
	head := append(binary.BigEndian.AppendUint64(nil, uint64(now.Unix())), payload...)
	return base64url.EncodeToString(append(head, b.mac(head)...))
}

// Open returns the payload of size bytes and when it was sealed, to the second; false says that it was not sealed for
// this Binding, or longer than lifetime ago.
func (b Binding) Open(sealed string, size int, lifetime time.Duration, now time.Time) (payload []byte, made time.Time, ok bool) {
	raw, err := base64url.DecodeString(sealed)
	if err != nil || len(raw) != 8+size+macSize || b.secret == "" {
		return nil, time.Time{}, false
	}
	head := raw[:8+size]
	if !hmac.Equal(raw[8+size:], b.mac(head)) {
		return nil, time.Time{}, false
	}
	made = time.Unix(int64(binary.BigEndian.Uint64(head)), 0)
	age := now.Sub(made)
	return head[8:], made, age > -time.Minute && age < lifetime
}

// NewFormToken returns a token for one showing of a form.
func (b Binding) NewFormToken(now time.Time) string {
	var nonce [nonceSize]byte
	rand.Read(nonce[:])
	return b.Seal(nonce[:], now)
}

// checkFormToken reports whether token was made for this Binding.
func (b Binding) checkFormToken(token string, now time.Time) bool {
	_, _, ok := b.Open(token, nonceSize, formLifetime, now)
	return ok
}

// spendFormToken is checkFormToken for forms that can be sent once.
func (b Binding) spendFormToken(s *spent, token string, now time.Time) bool {
	nonce, made, ok := b.Open(token, nonceSize, formLifetime, now)
	return ok && s.spend(made, [nonceSize]byte(nonce))
}

// spent remembers the tokens of forms that grant something, so that each is good once. What it can no longer know, or
// could not know yet, it takes for used. Its methods may be called by many goroutines.
type spent struct {
	mu    sync.Mutex
	since time.Time // tokens made before then are taken for used
	made  map[[nonceSize]byte]time.Time
	order [][nonceSize]byte // a ring of the keys of made, the oldest at next once it is full
	next  int
}

func newSpent(now time.Time) *spent {
	return &spent{since: now.Truncate(time.Second), made: make(map[[nonceSize]byte]time.Time)}
}

// spend reports whether the token was not used before, and marks it.
func (s *spent) spend(made time.Time, nonce [nonceSize]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used(made, nonce) {
		return false
	}
	if len(s.order) < maxSpent {
		s.order = append(s.order, nonce)
	} else {
		s.forget(s.order[s.next])
		s.order[s.next] = nonce
		s.next = (s.next + 1) % maxSpent
	}
	s.made[nonce] = made
	return true
}

// knows reports whether the token was used before, as far as can be known.
func (s *spent) knows(made time.Time, nonce [nonceSize]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used(made, nonce)
}

// used is knows for who holds the mutex.
func (s *spent) used(made time.Time, nonce [nonceSize]byte) bool {
	_, used := s.made[nonce]
	return used || made.Before(s.since)
}

func (s *spent) forget(nonce [nonceSize]byte) {
	if after := s.made[nonce].Add(time.Second); after.After(s.since) {
		s.since = after
	}
	delete(s.made, nonce)
}

// crossSite reports whether the browser says that the form was sent from elsewhere (Fetch Metadata). Browsers that say
// nothing are held by the token alone.
func crossSite(ctx *fasthttp.RequestCtx) bool {
	switch string(ctx.Request.Header.Peek("Sec-Fetch-Site")) {
	case "", "same-origin", "none":
		return false
	}
	return true
}
