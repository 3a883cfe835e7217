// Package passkeytest has an authenticator of WebAuthn for tests, which shares nothing with the
// program.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"
)

// Flags of authenticator data (WebAuthn level 3, section 6.1).
const (
	UserPresent    = 1 << 0
	UserVerified   = 1 << 2
	BackupEligible = 1 << 3
	BackedUp       = 1 << 4
	attested       = 1 << 6
)

// Key is an authenticator with one passkey. Its fields may be changed between two uses.
type Key struct {
	ID      []byte
	Handle  []byte // user handle; nil = it does not tell
	Flags   byte
	Counter uint32 // of the last use; 0 = it does not count
	Origin  string // of the page
	Domain  string // that it signs for; "" = that of the options
	private *ecdsa.PrivateKey
}

// New returns an authenticator without a passkey, which verifies the user, for a page at origin.
func New(tb testing.TB, origin string) *Key {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	id := make([]byte, 16)
	rand.Read(id)
	return &Key{ID: id, Flags: UserPresent | UserVerified, Origin: origin, private: private}
}

// options are those that a page hands to a browser.
type options struct {
	Challenge string `json:"challenge"`
	Domain    string `json:"rpId"`
	RP        struct {
		ID string `json:"id"`
	} `json:"rp"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
}

// Create makes the passkey and returns the browser's response.
func (k *Key) Create(tb testing.TB, text []byte) []byte {
	tb.Helper()
	o := read(tb, text)
	if k.Domain == "" {
		k.Domain = o.RP.ID
	}
	k.Handle = decode(tb, o.User.ID)
	data := k.data(attested)
	data = append(data, make([]byte, 16)...) // AAGUID
	data = binary.BigEndian.AppendUint16(data, uint16(len(k.ID)))
	data = append(append(data, k.ID...), k.Public(tb)...)
	object := append([]byte{0xa3, 0x63}, "fmt"...)
	object = append(append(object, 0x64), "none"...)
	object = append(append(object, 0x67), "attStmt"...)
	object = append(append(object, 0xa0, 0x68), "authData"...)
	object = append(object, 0x59)
	object = binary.BigEndian.AppendUint16(object, uint16(len(data)))
	object = append(object, data...)
	return k.response(tb, map[string]any{
		"clientDataJSON":    encode(k.client(tb, "webauthn.create", o)),
		"attestationObject": encode(object), "transports": []string{"internal"},
	})
}

// Public returns the public key as a COSE_Key: {1: 2, 3: -7, -1: 1, -2: x, -3: y} (RFC 9053 section
// 7.1).
func (k *Key) Public(tb testing.TB) []byte {
	tb.Helper()
	point, err := k.private.PublicKey.Bytes() // 4, x, y
	if err != nil {
		tb.Fatal(err)
	}
	key := append([]byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32}, point[1:33]...)
	return append(append(key, 0x22, 0x58, 32), point[33:]...)
}

// Get uses the passkey and returns the browser's response.
func (k *Key) Get(tb testing.TB, text []byte) []byte {
	tb.Helper()
	o := read(tb, text)
	if k.Counter > 0 {
		k.Counter++
	}
	data, client := k.data(0), k.client(tb, "webauthn.get", o)
	hash := sha256.Sum256(client)
	sum := sha256.Sum256(append(append([]byte{}, data...), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, k.private, sum[:])
	if err != nil {
		tb.Fatal(err)
	}
	response := map[string]any{"clientDataJSON": encode(client), "authenticatorData": encode(data),
		"signature": encode(signature)}
	if k.Handle != nil {
		response["userHandle"] = encode(k.Handle)
	}
	return k.response(tb, response)
}

func (k *Key) data(flags byte) []byte {
	domain := sha256.Sum256([]byte(k.Domain))
	return binary.BigEndian.AppendUint32(append(domain[:], k.Flags|flags), k.Counter)
}

func (k *Key) client(tb testing.TB, kind string, o options) []byte {
	return write(tb, map[string]any{"type": kind, "challenge": o.Challenge, "origin": k.Origin,
		"crossOrigin": false})
}

func (k *Key) response(tb testing.TB, response map[string]any) []byte {
	return write(tb, map[string]any{"id": encode(k.ID), "rawId": encode(k.ID), "type": "public-key",
		"response": response})
}

func read(tb testing.TB, text []byte) (o options) {
	tb.Helper()
	if err := json.Unmarshal(text, &o); err != nil {
		tb.Fatalf("got the options %s: %v", text, err)
	}
	return o
}

func write(tb testing.TB, v any) []byte {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decode(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
