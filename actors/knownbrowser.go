package actors

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync/atomic"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// knownFor is how long a browser is known to an account after a sign-in.
const knownFor = 365 * 24 * time.Hour

// knownBrowsers makes and checks the marks that a browser keeps after a sign-in: the time, and a code over it, the account and its
// password's hash. So a mark is good for one account until its password changes, and nothing has to be kept of it.
type knownBrowsers struct{ keys *atomic.Pointer[markKeys] }

type markKeys struct{ current, previous [32]byte }

func newKnownBrowsers(keys oauth.Keys) knownBrowsers {
	k := knownBrowsers{new(atomic.Pointer[markKeys])}
	k.use(keys)
	return k
}

// use derives the keys of marks from those of access tokens.
func (k knownBrowsers) use(keys oauth.Keys) {
	derive := func(key [32]byte) [32]byte {
		mac := hmac.New(sha256.New, key[:])
		mac.Write([]byte("gatehouse: browsers known to an account"))
		return [32]byte(mac.Sum(nil))
	}
	derived := markKeys{current: derive(keys.Current), previous: derive(keys.Current)}
	if keys.Previous != [32]byte{} {
		derived.previous = derive(keys.Previous)
	}
	k.keys.Store(&derived)
}

// markLength is the length of a mark before it is encoded: Unix minutes and a code of 128 bits.
const markLength = 4 + 16

// mark returns a mark for a browser that has signed in to u at now.
func (k knownBrowsers) mark(u *account.User, now time.Time) string {
	mark := make([]byte, 4, markLength)
	binary.BigEndian.PutUint32(mark, uint32(now.Unix()/60))
	return base64.RawURLEncoding.EncodeToString(append(mark, codeOf(&k.keys.Load().current, mark, u)...))
}

// knows reports whether a browser with that mark has signed in to u before.
func (k knownBrowsers) knows(mark string, u *account.User, now time.Time) bool {
	keys := k.keys.Load()
	given, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil || len(given) != markLength {
		return false
	}
	made, code := given[:4], given[4:]
	genuine := hmac.Equal(code, codeOf(&keys.current, made, u)) || hmac.Equal(code, codeOf(&keys.previous, made, u))
	return genuine && now.Sub(time.Unix(60*int64(binary.BigEndian.Uint32(made)), 0)) < knownFor
}

func codeOf(key *[32]byte, made []byte, u *account.User) []byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write(made)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(u.ID)))
	mac.Write([]byte(u.PasswordHash))
	return mac.Sum(nil)[:markLength-4]
}
