package actors

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// knownFor is how long a browser is known to an account after a sign-in.
const knownFor = 365 * 24 * time.Hour

// knownBrowsers makes and checks the marks that a browser keeps after a sign-in: the time, and a code over it, the account and its
// password's hash. So a mark is good for one account until its password changes, and nothing has to be kept of it.
type knownBrowsers struct {
	current, previous [32]byte // keys
}

// newKnownBrowsers derives the keys of marks from those of access tokens.
func newKnownBrowsers(keys oauth.Keys) knownBrowsers {
	derive := func(key [32]byte) [32]byte {
		mac := hmac.New(sha256.New, key[:])
		mac.Write([]byte("gatehouse: browsers known to an account"))
		return [32]byte(mac.Sum(nil))
	}
	k := knownBrowsers{current: derive(keys.Current), previous: derive(keys.Current)}
	if keys.Previous != [32]byte{} {
		k.previous = derive(keys.Previous)
	}
	return k
}

// markLength is the length of a mark before it is encoded: Unix minutes and a code of 128 bits.
const markLength = 4 + 16

// mark returns a mark for a browser that has signed in to u at now.
func (k *knownBrowsers) mark(u *account.User, now time.Time) string {
	mark := make([]byte, 4, markLength)
	binary.BigEndian.PutUint32(mark, uint32(now.Unix()/60))
	return base64.RawURLEncoding.EncodeToString(append(mark, codeOf(&k.current, mark, u)...))
}

// knows reports whether a browser with that mark has signed in to u before.
func (k *knownBrowsers) knows(mark string, u *account.User, now time.Time) bool {
	given, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil || len(given) != markLength {
		return false
	}
	made, code := given[:4], given[4:]
	genuine := hmac.Equal(code, codeOf(&k.current, made, u)) || hmac.Equal(code, codeOf(&k.previous, made, u))
	return genuine && now.Sub(time.Unix(60*int64(binary.BigEndian.Uint32(made)), 0)) < knownFor
}

func codeOf(key *[32]byte, made []byte, u *account.User) []byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write(made)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(u.ID)))
	mac.Write([]byte(u.PasswordHash))
	return mac.Sum(nil)[:markLength-4]
}
