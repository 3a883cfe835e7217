package people

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

// knownBrowsers makes and checks the marks that a browser keeps after a sign-in. A mark is the time,
// and an authentication code over it, the account and the hash of its password. So it is valid for
// one account until its password changes, and nothing of it has to be stored.
type knownBrowsers struct{ keys func() oauth.Keys }

// markKey returns the key of marks that derives from a key of access tokens.
func markKey(key [32]byte) []byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte("gatehouse: browsers known to an account"))
	return mac.Sum(nil)
}

// markLength is the length of a mark before it is encoded: Unix minutes and a code of 128 bits.
const markLength = 4 + 16

// mark returns a mark for a browser that has signed in to u at now.
func (k knownBrowsers) mark(u *account.User, now time.Time) string {
	mark := make([]byte, 4, markLength)
	binary.BigEndian.PutUint32(mark, uint32(now.Unix()/60))
	return base64.RawURLEncoding.EncodeToString(append(mark, codeOf(markKey(k.keys().Current), mark, u)...))
}

// knows reports whether a browser with that mark has signed in to u before.
func (k knownBrowsers) knows(mark string, u *account.User, now time.Time) bool {
	given, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil || len(given) != markLength {
		return false
	}
	made, code := given[:4], given[4:]
	keys := k.keys()
	genuine := hmac.Equal(code, codeOf(markKey(keys.Current), made, u)) ||
		keys.Previous != [32]byte{} && hmac.Equal(code, codeOf(markKey(keys.Previous), made, u))
	return genuine && now.Sub(time.Unix(60*int64(binary.BigEndian.Uint32(made)), 0)) < knownFor
}

func codeOf(key []byte, made []byte, u *account.User) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(made)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(u.ID)))
	mac.Write([]byte(u.PasswordHash))
	return mac.Sum(nil)[:markLength-4]
}
