package people

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// knownBrowsers issues and checks the mark that a browser keeps in a cookie after a sign-in. A mark
// is a time, and an HMAC of it, the account and the password hash. So a mark is valid for one account
// until its password changes, and the server stores nothing. The time is that of the first sign-in,
// and from a day later on a day before the last one: see entry.knownSince. The keys are for marks
// alone, so that a rotation of other keys leaves every browser known.
type knownBrowsers struct{ keys func() []oauth.Key }

// markLength is the length of a mark in bytes before base64: Unix minutes and 128 bits of HMAC.
const markLength = 4 + 16

// mark returns the mark of a browser that signs in to u at now.
func (k knownBrowsers) mark(u *account.User, now time.Time) string {
	return k.markFor(u, nil, now)
}

// ownMark is mark for a browser that has used the second factor of u: others cannot use up its
// attempts.
func (k knownBrowsers) ownMark(u *account.User, now time.Time) string {
	return k.markFor(u, factorOf(u), now)
}

func (k knownBrowsers) markFor(u *account.User, factor []byte, now time.Time) string {
	mark := make([]byte, 4, markLength)
	binary.BigEndian.PutUint32(mark, uint32(now.Unix()/60))
	mac := markMAC(&k.keys()[0], mark, u, factor)
	return base64.RawURLEncoding.EncodeToString(append(mark, mac...))
}

// factorOf returns what an ownMark is bound to besides; nil = u has no second factor.
func factorOf(u *account.User) []byte {
	if a := u.Credentials.Authenticator; a != nil {
		return binary.BigEndian.AppendUint64([]byte("app"), uint64(a.Created.UnixMilli()))
	}
	for _, key := range u.Credentials.Passkeys {
		if !key.SignsIn {
			return append([]byte("key"), key.ID...)
		}
	}
	return nil
}

// knows reports whether the browser with that mark has signed in to u before.
func (k knownBrowsers) knows(mark string, u *account.User, now time.Time) bool {
	return !k.since(mark, u, now).IsZero()
}

// since returns the time in the mark of a browser that has signed in to u before, in whole minutes;
// zero = the browser is not known.
func (k knownBrowsers) since(mark string, u *account.User, now time.Time) time.Time {
	if made := k.made(mark, u, nil, now); !made.IsZero() {
		return made
	}
	if factor := factorOf(u); factor != nil {
		return k.made(mark, u, factor, now)
	}
	return time.Time{}
}

// owns reports whether the browser with that mark has used the second factor of u before.
func (k knownBrowsers) owns(mark string, u *account.User, now time.Time) bool {
	factor := factorOf(u)
	return factor != nil && !k.made(mark, u, factor, now).IsZero()
}

// made returns the time in a mark; zero = the mark is not valid.
func (k knownBrowsers) made(mark string, u *account.User, factor []byte, now time.Time) time.Time {
	given, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil || len(given) != markLength {
		return time.Time{}
	}
	minutes, mac := given[:4], given[4:]
	genuine := slices.ContainsFunc(k.keys(), func(key oauth.Key) bool {
		return hmac.Equal(mac, markMAC(&key, minutes, u, factor))
	})
	made := time.Unix(60*int64(binary.BigEndian.Uint32(minutes)), 0)
	if !genuine || now.Sub(made) >= oauth.BrowserLifetime {
		return time.Time{}
	}
	return made
}

// markMAC returns the HMAC of a mark.
func markMAC(key *oauth.Key, minutes []byte, u *account.User, factor []byte) []byte {
	mac := hmac.New(sha256.New, key.Secret[:])
	mac.Write(minutes)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(u.ID)))
	mac.Write([]byte(u.PasswordHash))
	mac.Write(factor)
	return mac.Sum(nil)[:markLength-4]
}

// stranger returns the requester of an unknown caller at a network who asks for a code for a
// recipient. The store gets a MAC, so that a copy of the database does not reveal who asked.
func (k knownBrowsers) stranger(recipient [32]byte, network netip.Prefix) account.Requester {
	mac := hmac.New(sha256.New, k.keys()[0].Secret[:])
	mac.Write([]byte("requester of a code "))
	mac.Write(recipient[:])
	mac.Write(network.Addr().AsSlice())
	return account.Requester(mac.Sum(nil)[:len(account.Requester{})])
}
