package account

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
)

// Limits on passkeys.
const (
	// PasskeyChallengeLifetime is how long a browser may take for a challenge of WebAuthn.
	PasskeyChallengeLifetime = 5 * time.Minute
	// PasskeyOfferInterval is the time between two offers to add a passkey.
	PasskeyOfferInterval = 30 * 24 * time.Hour
	// MaxPasskeyName is the length of a passkey's name, in characters.
	MaxPasskeyName = 60
)

// PasskeyStore keeps which challenges of WebAuthn were used.
type PasskeyStore interface {
	// UsePasskeyChallenge notes that a challenge with that hash is used, which ends at a time. It returns
	// ErrConflict if it was used before, in any process.
	UsePasskeyChallenge(ctx context.Context, hash [32]byte, ends time.Time) error
}

// passkeyPrefix begins the ways in that are passkeys.
const passkeyPrefix = "passkey "

// IsPasskey reports whether the way in is a passkey.
func (w Way) IsPasskey() bool { return strings.HasPrefix(string(w), passkeyPrefix) }

// Passkey returns the index of the passkey with that ID among c.Passkeys, or -1.
func (c *Credentials) Passkey(id []byte) int {
	return slices.IndexFunc(c.Passkeys, func(p Passkey) bool { return bytes.Equal(p.ID, id) })
}

// SetPasskey replaces the passkey at an index, in a copy of the list.
func (c *Credentials) SetPasskey(i int, p Passkey) {
	c.Passkeys = slices.Clone(c.Passkeys)
	c.Passkeys[i] = p
}

// AddPasskey adds p, in a copy of the list.
func (c *Credentials) AddPasskey(p Passkey) { c.Passkeys = append(slices.Clip(c.Passkeys), p) }

// RemovePasskeys removes the passkeys that gone reports, in a copy of the list.
func (c *Credentials) RemovePasskeys(gone func(*Passkey) bool) {
	kept := slices.DeleteFunc(slices.Clone(c.Passkeys), func(p Passkey) bool { return gone(&p) })
	c.Passkeys = kept[:len(kept):len(kept)]
	if len(kept) == 0 {
		c.Passkeys = nil
	}
}

// SignsInByPasskey reports whether u has a passkey that signs in.
func (u *User) SignsInByPasskey() bool {
	return slices.ContainsFunc(u.Credentials.Passkeys, func(p Passkey) bool { return p.SignsIn })
}

// CheckPasskeyName returns name without spaces around it, or a FieldError.
func CheckPasskeyName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", FieldError{Field: "name", Message: "is missing", Rule: "passkey_name_missing"}
	}
	if p := line(MaxPasskeyName)(name); p.message != "" {
		return "", p.of("name")
	}
	return name, nil
}

// PasskeyDomain returns the relying party ID of WebAuthn for an issuer: wanted, or the host of the
// issuer. wanted must be that host or a parent that somebody can register; "" = the host. The result
// is "" if browsers have no passkeys there: the host is an IP address, or the issuer is http and not
// on localhost. Then wanted must be "".
func PasskeyDomain(issuer, wanted string) (string, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return "", fmt.Errorf("read issuer: %w", err)
	}
	host := strings.ToLower(u.Hostname())
	_, notAddress := netip.ParseAddr(host)
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if host == "" || notAddress == nil || u.Scheme != "https" && !local {
		if wanted != "" {
			return "", errors.New("needs a base URL with https and a host name")
		}
		return "", nil
	}
	if wanted = strings.ToLower(wanted); wanted == "" || wanted == host {
		return host, nil
	}
	registrable, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil || !strings.HasSuffix(host, "."+wanted) ||
		wanted != registrable && !strings.HasSuffix(wanted, "."+registrable) {
		return "", errors.New("must be the host of the base URL, or a parent of it that can be registered")
	}
	return wanted, nil
}
