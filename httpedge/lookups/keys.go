package lookups

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/endpoint"
)

// headerKey is the request header of an API key, in canonical form.
const headerKey = "X-Api-Key"

// Keys are the API keys of callers, from a file that has a line for each: the caller's name, a
// space and the SHA-256 of the key in hexadecimal. A caller may have several keys. Blank lines and
// those that begin with # are skipped. Its methods may be called by many goroutines.
type Keys struct {
	file     string
	required bool
	callers  atomic.Pointer[callers]
}

// callers are the addresses that stand for callers, by the SHA-256 of their keys.
//
// The time to find a key in the map depends on its hash, not on its text. At most, it tells how a
// stored hash begins. That does not help to find a key, which has 130 random bits.
type callers map[[sha256.Size]byte]netip.Addr

// maxKeys limits the lines of a file.
const maxKeys = 1000

var keyName = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)

// OpenKeys reads the keys of file. With required, requests without a key are refused.
func OpenKeys(file string, required bool) (*Keys, error) {
	k := &Keys{file: file, required: required}
	if err := k.Reload(); err != nil {
		return nil, err
	}
	return k, nil
}

// Required reports whether requests without a key are refused. It may be called on nil.
func (k *Keys) Required() bool { return k != nil && k.required }

// Reload reads the file again. After an error, the keys stay as they were.
func (k *Keys) Reload() error {
	text, err := os.ReadFile(k.file)
	if err != nil {
		return fmt.Errorf("read API keys: %w", err)
	}
	all, err := parseKeys(string(text))
	if err != nil {
		return fmt.Errorf("read API keys of %s: %w", k.file, err)
	}
	k.callers.Store(&all)
	return nil
}

func parseKeys(text string) (callers, error) {
	all := callers{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 || !keyName.MatchString(fields[0]) {
			return nil, fmt.Errorf("line %d must be a name, a space and the SHA-256 of a key; names have 1 to 64 letters, digits, dots, underscores and hyphens", number)
		}
		hash, err := hex.DecodeString(fields[1])
		if err != nil || len(hash) != sha256.Size {
			return nil, fmt.Errorf("the SHA-256 in line %d must have 64 hexadecimal digits", number)
		}
		key := [sha256.Size]byte(hash)
		if all[key].IsValid() {
			return nil, fmt.Errorf("the key of line %d is there twice", number)
		}
		if all[key] = addressOf(fields[0]); len(all) > maxKeys {
			return nil, fmt.Errorf("there are more than %d keys", maxKeys)
		}
	}
	return all, nil
}

// NewKey returns a new key for a caller, and its line for the file.
func NewKey(name string) (key, line string, err error) {
	if !keyName.MatchString(name) {
		return "", "", errors.New(
			"a name has 1 to 64 letters, digits, dots, underscores and hyphens")
	}
	key = "gtlk_" + rand.Text()
	hash := sha256.Sum256([]byte(key))
	return key, name + " " + hex.EncodeToString(hash[:]), nil
}

// caller is Caller for the keys in the header of a request.
func (k *Keys) caller(h *fasthttp.RequestHeader) (address netip.Addr, fault error) {
	return k.Caller(h.PeekAll(headerKey))
}

// Caller returns the address that stands for the caller who sent a key, or the zero Addr without a
// key. Two keys are refused.
func (k *Keys) Caller(sent [][]byte) (address netip.Addr, fault error) {
	switch {
	case len(sent) == 0 && k.required:
		return netip.Addr{}, endpoint.ErrKeyRequired
	case len(sent) == 0:
		return netip.Addr{}, nil
	case len(sent) > 1:
		return netip.Addr{}, endpoint.ErrInvalidKey
	}
	address, known := (*k.callers.Load())[sha256.Sum256(sent[0])]
	if !known {
		return netip.Addr{}, endpoint.ErrInvalidKey
	}
	return address, nil
}

// addressOf returns the address that stands for a caller with a key wherever callers are told apart
// by address. It is in 4000::/3, which no host has (RFC 4291 section 4).
func addressOf(name string) netip.Addr {
	hash := sha256.Sum256([]byte(name))
	address := [16]byte(hash[:16])
	address[0] = 0x40 | address[0]&0x1f
	return netip.AddrFrom16(address)
}
