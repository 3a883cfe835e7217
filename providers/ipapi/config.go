package ipapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"gatehouse/actors/geo"
)

// Tier is what was agreed with the upstream. The zero value is none.
type Tier string

// The tiers, named as in IP_PROVIDER.
const (
	Free Tier = "ip-api"     // 45 single look-ups and 15 batches a minute, plain HTTP, non-commercial use only
	Pro  Tier = "ip-api-pro" // a key and no budget
	Sim  Tier = "sim"        // the upstream simulator: no key, and no budget unless it says one
)

// DefaultConnections stands for Config.Connections 0.
const DefaultConnections = 8

// Config says where and how the upstream is asked. Its Key is left out wherever it is printed or marshalled.
type Config struct {
	Base        string // required: its base address, http or https; a trailing slash means nothing
	Tier        Tier   // required
	Key         string `json:"-"` // required for Pro, never sent by another tier
	Connections int    // connections at once, and kept alive; 0 = DefaultConnections

	// Dial makes the connections; optional: nil = over TCP. Tests without a network have one.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`
}

// Format prints c without its Key, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "ipapi.Config(%s at %d connections)", c.Tier, c.Connections)
}

// validate returns the base address in the form that paths are appended to. Its errors are one line and hold neither
// the key nor the base, which may have a secret in the wrong place.
func (c Config) validate() (string, error) {
	switch c.Tier {
	case Free, Pro, Sim:
	default:
		return "", fmt.Errorf("tier must be %s, %s or %s", Free, Pro, Sim)
	}
	if c.Connections < 0 {
		return "", errors.New("connections must not be negative")
	}
	base, err := parseBase(c.Base)
	if err != nil {
		return "", err
	}
	if c.Tier == Pro {
		if err := validateKey(c.Key); err != nil {
			return "", err
		}
		if base.Scheme == "http" && !isLoopback(base.Hostname()) {
			return "", fmt.Errorf("base address must be https for %s, or the key travels in the clear", Pro)
		}
	}
	return strings.TrimRight(base.String(), "/"), nil
}

func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || s == "":
		return nil, errors.New("base address must be a URL like http://ip-api.com")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("base address must begin with http:// or https://")
	case u.User != nil:
		return nil, errors.New("base address must not hold a user or password")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		return nil, errors.New("base address must not hold a query or fragment")
	case u.Hostname() == "":
		return nil, errors.New("base address must name a host")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("base address must have a port from 1 to 65535")
		}
	}
	return u, nil
}

func validateKey(key string) error {
	if key == "" {
		return fmt.Errorf("a key is required for %s", Pro)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return errors.New("key must be visible ASCII, with no space or line break")
		}
	}
	return nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func (t Tier) terms() geo.Terms {
	terms := geo.Terms{Source: geo.SourceUpstream, BatchSize: batchSize, LacksReverse: true}
	switch t {
	case Free:
		terms.SinglesPerMinute, terms.BatchesPerMinute = 45, 15
	case Sim:
		terms.Source = geo.SourceSim
		terms.Gather = gather
	case Pro:
		terms.Gather = gather
	}
	return terms
}
