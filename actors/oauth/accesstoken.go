package oauth

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/crypto/chacha20poly1305"
)

// The form of an access token is gtat_ and base64url of a head and a sealed record. The head is a
// format byte, the number of the key and the nonce, so that it fills whole groups of base64. It is
// authenticated with the record.
const (
	accessTokenFormat = 1
	jwtPartFormat     = 2 // of what a JWT carries

	// exchangedFormat is a bit of the format of a token that has a SubjectToken.
	exchangedFormat = 1 << 7

	numberOffset = 1
	nonceOffset  = numberOffset + 2
	headLength   = nonceOffset + len(TokenID{})

	// MaxAccessToken is the longest access token in bytes, but for those with a SubjectToken.
	MaxAccessToken = 263
	// MaxExchangedToken is the longest access token with a SubjectToken in bytes.
	MaxExchangedToken = 640

	maxSealed = (MaxExchangedToken - prefixLength) * 6 / 8 // bytes of head, record and tag
)

// TokenID is the nonce of an access token. It is unique and no secret.
type TokenID [chacha20poly1305.NonceSizeX]byte

// String returns id in base64url.
func (id TokenID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTokenID is the inverse of String.
func ParseTokenID(text string) (id TokenID, ok bool) {
	if len(text) != base64.RawURLEncoding.EncodedLen(len(id)) {
		return id, false
	}
	n, err := base64url.Decode(id[:], []byte(text))
	return id, err == nil && n == len(id)
}

// AccessToken is what an access token says (RFC 6749 section 1.4).
type AccessToken struct {
	ID       TokenID // set by Seal and Open, like Key
	Key      uint16  // number of the key that sealed it
	ClientID string
	UserID   int64     // 0 = no user (client_credentials)
	FamilyID uuid.UUID // uuid.Nil = no family
	Scopes   Scopes
	// Audience has the resources that it is for, from the first on; none = this service.
	Audience [MostTargets]Target
	Issued   int64 // Unix seconds
	Expires  int64 // Unix seconds, not before Issued
	Epochs   Epochs
	// AuthTime is when the user signed in, in Unix seconds; 0 = it is not known. TwoFactors says that it
	// was with two of them, so that the acr is ACR2.
	AuthTime   int64
	TwoFactors bool
	// Subject is the token that this one was exchanged for (RFC 8693); nil = it was not.
	Subject *SubjectToken
}

// ACR returns the authentication context class of the sign-in; "" = it is not known.
func (t *AccessToken) ACR() string { return acrOf(t.AuthTime, t.TwoFactors) }

func acrOf(authTime int64, twoFactors bool) string {
	switch {
	case authTime == 0:
		return ""
	case twoFactors:
		return ACR2
	}
	return ACR1
}

// SetTargets makes t a token for targets, of which there are at most MostTargets.
func (t *AccessToken) SetTargets(targets Targets) {
	t.Audience = [MostTargets]Target{}
	if len(targets) == 1 && targets[0].Resource == OwnResource {
		return
	}
	copy(t.Audience[:], targets)
}

// Targets returns the resources that t is for; none = this service.
func (t *AccessToken) Targets() (all Targets) {
	for _, target := range t.Audience {
		if target.Resource != 0 {
			all = append(all, target)
		}
	}
	return all
}

// The optional parts of a record, as bits of its first byte.
const (
	hasUUID = 1 << iota // the client ID is a UUID
	hasUser
	hasFamily
	hasAudience
	hasAuthTime
	hasTwoFactors
)

// TokenKey seals and opens access tokens. Its methods may be called by many goroutines.
type TokenKey struct {
	Number uint16
	aead   cipher.AEAD
}

// NewTokenKey returns the TokenKey of a key for TokenKeys.
func NewTokenKey(key *Key) *TokenKey {
	aead, err := chacha20poly1305.NewX(key.Secret[:])
	if err != nil {
		panic(err) // the key has another length
	}
	return &TokenKey{Number: key.Number, aead: aead}
}

// base64url accepts one spelling of each value, but for line breaks.
var base64url = base64.RawURLEncoding.Strict()

// Seal returns an access token that says t, and sets its ID and Key. The client ID must be one
// that IsClientID accepts.
func (k *TokenKey) Seal(t *AccessToken) string {
	return k.seal(t, accessTokenPrefix, accessTokenFormat)
}

// SealForJWT is Seal for an access token that is a JWT. The result is what the JWT carries for this
// service. It opens nothing without the JWT around it.
func (k *TokenKey) SealForJWT(t *AccessToken) string {
	return k.seal(t, jwtPartPrefix, jwtPartFormat)
}

func (k *TokenKey) seal(t *AccessToken, prefix string, format byte) string {
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	head := b.sealed[:headLength]
	if head[0] = format; t.Subject != nil {
		head[0] |= exchangedFormat
	}
	binary.BigEndian.PutUint16(head[numberOffset:], k.Number)
	nonce := head[nonceOffset:]
	copy(nonce, b.newNonce())
	t.ID, t.Key = TokenID(nonce), k.Number
	record := t.append(b.sealed[headLength:headLength])
	sealed := k.aead.Seal(record[:0], nonce, record, head)

	copy(b.text[:], prefix)
	end := prefixLength + base64url.EncodedLen(headLength+len(sealed))
	base64url.Encode(b.text[prefixLength:end], b.sealed[:headLength+len(sealed)])
	return string(b.text[:end])
}

// buffer is what sealing and opening a token work on: an interface would make it escape.
type buffer struct {
	text   [MaxExchangedToken]byte
	sealed [maxSealed]byte // head, record and tag
	nonces [32 * chacha20poly1305.NonceSizeX]byte
	unused []byte // of nonces
}

// newNonce returns a nonce. The system is asked for many at once, which takes a third of the time.
func (b *buffer) newNonce() []byte {
	if len(b.unused) == 0 {
		rand.Read(b.nonces[:])
		b.unused = b.nonces[:]
	}
	nonce := b.unused[:chacha20poly1305.NonceSizeX]
	b.unused = b.unused[chacha20poly1305.NonceSizeX:]
	return nonce
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// append appends the record of t.
func (t *AccessToken) append(dst []byte) []byte {
	client, isUUID := parseUUID(t.ClientID)
	flags := flag(isUUID, hasUUID) | flag(t.UserID != 0, hasUser) |
		flag(t.FamilyID != uuid.Nil, hasFamily) | flag(t.Audience[0].Resource != 0, hasAudience) |
		flag(t.AuthTime != 0, hasAuthTime) | flag(t.TwoFactors, hasTwoFactors)
	dst = binary.AppendUvarint(append(dst, flags), uint64(t.Scopes))
	if isUUID {
		dst = append(dst, client[:]...)
	} else {
		dst = append(append(dst, byte(len(t.ClientID))), t.ClientID...)
	}
	dst = binary.AppendUvarint(dst, uint64(t.Issued))
	dst = binary.AppendUvarint(dst, uint64(t.Expires-t.Issued))
	dst = binary.AppendUvarint(dst, uint64(t.Epochs.Client))
	if t.UserID != 0 {
		dst = binary.AppendUvarint(dst, uint64(t.UserID))
		dst = binary.AppendUvarint(dst, uint64(t.Epochs.User))
	}
	if t.FamilyID != uuid.Nil {
		dst = append(dst, t.FamilyID[:]...)
	}
	if t.AuthTime != 0 {
		dst = binary.AppendUvarint(dst, uint64(max(0, t.Issued-t.AuthTime)))
	}
	for subject := t.Subject; subject != nil; subject = subject.Subject {
		dst = subject.append(dst)
	}
	if t.Audience[0].Resource != 0 {
		for _, target := range t.Targets() {
			dst = binary.AppendUvarint(dst, uint64(target.Resource))
			dst = binary.AppendUvarint(dst, uint64(target.Scopes))
		}
	}
	return dst
}

// parseUUID returns the UUID that id is, in the one spelling that String returns. uuid.Parse
// accepts others, and takes a tenth of the time that a token does.
func parseUUID(id string) (parsed uuid.UUID, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return uuid.Nil, false
	}
	n := 0
	for i := 0; i < len(id); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		digit := id[i] - '0'
		if digit > 9 {
			if digit = id[i] - 'a'; digit > 5 {
				return uuid.Nil, false
			}
			digit += 10
		}
		parsed[n/2] = parsed[n/2]<<4 | digit
		n++
	}
	return parsed, true
}

func flag(is bool, bit byte) byte {
	if is {
		return bit
	}
	return 0
}

// formatOf returns the format of a sealed access token by its prefix; 0 = it has none.
func formatOf(token string) byte {
	if len(token) <= prefixLength || len(token) > MaxExchangedToken {
		return 0
	}
	switch token[:prefixLength] {
	case accessTokenPrefix:
		return accessTokenFormat
	case jwtPartPrefix:
		return jwtPartFormat
	}
	return 0
}

// PeekAccessToken returns the ID of an access token, or of what a JWT carries, and the number of its
// key. It does not check that it is genuine; ok is false if it has not the form of one. It does not
// allocate.
func PeekAccessToken(token string) (id TokenID, number uint16, ok bool) {
	const encoded = headLength / 3 * 4
	format := formatOf(token)
	if format == 0 || len(token) <= prefixLength+encoded {
		return id, 0, false
	}
	var text [encoded]byte
	var head [headLength]byte
	copy(text[:], token[prefixLength:])
	n, err := base64url.Decode(head[:], text[:])
	if err != nil || n != headLength || head[0]&^exchangedFormat != format {
		return id, 0, false
	}
	return TokenID(head[nonceOffset:]), binary.BigEndian.Uint16(head[numberOffset:]), true
}

// Open returns what an access token says, or what a JWT carries, expired or not. ok is false if it
// was not sealed with k. It allocates nothing then.
func (k *TokenKey) Open(token string) (t AccessToken, ok bool) {
	format := formatOf(token)
	if format == 0 {
		return t, false
	}
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	length := copy(b.text[:], token[prefixLength:])
	n, err := base64url.Decode(b.sealed[:], b.text[:length])
	if err != nil || base64url.EncodedLen(n) != length || n < headLength+chacha20poly1305.Overhead {
		return t, false
	}
	head, body := b.sealed[:headLength], b.sealed[headLength:n]
	nonce := head[nonceOffset:]
	record, err := k.aead.Open(body[:0], nonce, body, head)
	if err != nil || head[0]&^exchangedFormat != format || !k.isNumber(head) {
		return t, false
	}
	t.ID, t.Key = TokenID(nonce), k.Number
	return t, t.parse(record, head[0]&exchangedFormat != 0)
}

// isNumber reports whether the head of a token names k.
func (k *TokenKey) isNumber(head []byte) bool {
	return binary.BigEndian.Uint16(head[numberOffset:]) == k.Number
}

// parse reads a record, that of an exchanged token or of another. It returns false if append did not
// write it.
func (t *AccessToken) parse(record []byte, exchanged bool) bool {
	r := recordReader{rest: record}
	flags := r.bytes(1)[0]
	t.Scopes = Scopes(r.number())
	if flags&hasUUID != 0 {
		t.ClientID = uuid.UUID(r.bytes(16)).String()
	} else {
		t.ClientID = string(r.bytes(int(r.bytes(1)[0])))
	}
	t.Issued = r.number()
	t.Expires = t.Issued + r.number()
	t.Epochs.Client = r.number()
	if flags&hasUser != 0 {
		t.UserID = r.number()
		t.Epochs.User = r.number()
	}
	if flags&hasFamily != 0 {
		t.FamilyID = uuid.UUID(r.bytes(16))
	}
	if flags&hasAuthTime != 0 {
		t.AuthTime = t.Issued - r.number()
	}
	t.TwoFactors = flags&hasTwoFactors != 0
	if exchanged {
		t.Subject = r.subjects()
	}
	for i := 0; i < MostTargets && flags&hasAudience != 0 && len(r.rest) > 0; i++ {
		t.Audience[i] = Target{uint16(r.number()), uint16(r.number())}
	}
	return !r.short && len(r.rest) == 0
}

// recordReader reads the parts of a record. Once one is missing, all that follow are zero.
type recordReader struct {
	rest  []byte
	short bool
}

var noBytes [255]byte

func (r *recordReader) bytes(n int) []byte {
	if len(r.rest) < n {
		r.short, r.rest = true, nil
		return noBytes[:n]
	}
	part := r.rest[:n]
	r.rest = r.rest[n:]
	return part
}

func (r *recordReader) number() int64 {
	value, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.short, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return int64(value)
}
