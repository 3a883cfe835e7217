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

// Tier is a tier of the upstream. The zero value is invalid.
type Tier string

// The tiers, with their names in IP_PROVIDER.
const (
	// Free: 45 single lookups and 15 batches a minute, plain HTTP, for non-commercial use only.
	Free Tier = "ip-api"
	// Pro: a key and no budget.
	Pro Tier = "ip-api-pro"
	// Sim: the upstream simulator, without a key; it has a budget only if its responses report one.
	Sim Tier = "sim"
)

// DefaultConnections is used when Config.Connections is 0.
const DefaultConnections = 8

// Config configures a Client. Its Key is never printed or marshalled.
type Config struct {
	Base        string // required: base URL, http or https, with or without a trailing slash
	Tier        Tier   // required
	Key         string `json:"-"` // required for Pro, never sent by another tier
	Connections int    // limit of open connections; 0 = DefaultConnections

	// Dial opens the connections; optional: nil = TCP. Tests without a network set it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`
}

// Format prints c without its Key, for every verb.
func (c Config) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "ipapi.Config(%s at %d connections)", c.Tier, c.Connections)
}

// validate returns the base URL without a trailing slash. Its errors are one line. They contain
// neither the key nor the base URL, which may contain a secret by mistake.
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
			return "",
				fmt.Errorf("base address must be https for %s, because the key must be encrypted",
					Pro)
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
		return nil, errors.New("base address must not contain a user or password")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		return nil, errors.New("base address must not contain a query or fragment")
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
			return errors.New("key must be visible ASCII, without spaces and line breaks")
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
