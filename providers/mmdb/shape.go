package mmdb

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"

	"gatehouse/actors/geo"
)

// shape is what sample records of a file have in common.
type shape struct {
	seen         [slots]bool // some record has it
	aboutFlags   bool        // the file is about flags: an absent one is false
	listsProxies bool        // each listed address is a proxy
	saysNo       bool        // absent has a flag
	absent       network     // the flags that an address has without a record, or without their keys
}

const (
	samples  = 256    // records that tell what a file has
	maxTried = 20_000 // records that are read until one has something
)

// sampled returns records of a file, each once: of addresses all over it, and of its first
// networks.
func sampled(reader *maxminddb.Reader) iter.Seq[maxminddb.Result] {
	return func(yield func(maxminddb.Result) bool) {
		seen := map[uintptr]bool{}
		goOn := func(r maxminddb.Result) bool {
			if r.Err() != nil || !r.Found() || seen[r.Offset()] {
				return true
			}
			seen[r.Offset()] = true
			return yield(r)
		}
		for i := range samples {
			a, b, c := byte(i), byte(i*37), byte(i*101)
			if !goOn(reader.Lookup(netip.AddrFrom4([4]byte{a, b, c, 1}))) {
				return
			}
			v6 := netip.AddrFrom16([16]byte{0x20 + a/64, a * 4, b, c})
			if reader.Metadata.IPVersion == 6 && !goOn(reader.Lookup(v6)) {
				return
			}
		}
		tried := 0
		for r := range reader.Networks() {
			if tried++; tried > maxTried || !goOn(r) {
				return
			}
		}
	}
}

// sample finds the shape of the file. Its error says why the file is of no use.
func (f *file) sample() error {
	f.shape = &shape{}
	var useful, tried int
	var broken error
	var example maxminddb.Result
	for r := range sampled(f.reader) {
		if err := f.decode(r, f.shape.add); err != nil {
			broken = err
			continue
		}
		if tried++; tried == 1 {
			example = r
		}
		f.shape.conclude(f.reader.Metadata.DatabaseType)
		_ = f.decode(r, func(v *values) {
			var got record
			if v.record(&got); got != (record{}) {
				useful++
			}
		})
		if useful >= samples {
			break
		}
	}
	switch kind := f.reader.Metadata.DatabaseType; {
	case useful > 0:
		return nil
	case tried == 0 && broken != nil:
		return broken
	case tried == 0:
		return fmt.Errorf("database type %q: the file has no records", kind)
	default:
		var content any
		if err := example.Decode(&content); err != nil {
			return err
		}
		return fmt.Errorf("database type %q has neither locations nor networks that are recognized, "+
			"as in the record of %s: %s; if it has some, say where by --mmdb-map (IP_MMDB_MAP): %s",
			kind, example.Prefix(), shorten(jsonOf(content)), suggestion(content))
	}
}

// isNested reports whether records have objects about places.
func (s *shape) isNested() bool {
	return slices.Contains(s.seen[nestedContinentCode:flatContinent], true)
}

// add adds what a record has.
func (s *shape) add(v *values) {
	for i := range s.seen {
		s.seen[i] = s.seen[i] || v.there.has(slot(i))
	}
}

// conclude says what follows from the slots that were seen. The database type counts only for empty
// records.
func (s *shape) conclude(databaseType string) {
	flags := slices.Contains(s.seen[isAnonymous:mobileFlag+1], true)
	other := slices.Contains(s.seen[noSlot+1:isAnonymous], true) ||
		slices.Contains(s.seen[proxyType:anonymizer], true)
	anything := slices.Contains(s.seen[noSlot+1:], true)
	// GeoIP2 has is_anonymous with any other flag, and leaves out those that are false.
	sparse := s.seen[isAnonymous] || !anything && strings.Contains(databaseType, "Anonymous")
	s.aboutFlags = !other && (flags || sparse)
	s.listsProxies = !other && !flags && s.seen[anonymizer]
	s.absent, s.saysNo = network{}, s.aboutFlags || s.listsProxies
	if s.listsProxies {
		s.absent.proxy = geo.No
	}
	if !s.aboutFlags {
		return
	}
	for _, flag := range []struct {
		truth *geo.Truth
		by    []slot
	}{
		{&s.absent.proxy, []slot{anonymousProxy, anonymousVPN, publicProxy, residentialProxy,
			torExitNode, proxyFlag, vpnFlag, torFlag, relayFlag}},
		{&s.absent.hosting, []slot{hostingProvider, hostingFlag}},
		{&s.absent.vpn, []slot{anonymousVPN, vpnFlag}},
		{&s.absent.tor, []slot{torExitNode, torFlag}},
	} {
		if sparse || slices.ContainsFunc(flag.by, func(by slot) bool { return s.seen[by] }) {
			*flag.truth = geo.No
		}
	}
}
