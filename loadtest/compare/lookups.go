package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// hitTrial is a cached lookup.
var hitTrial = trial{
	name: "hit", requests: 200_000, proof: "X-Cache: hit", upstream: true, each: true,
	keys:    cachedKeys,
	prepare: func(p *plan) ([][]byte, error) { return lookups(p.keys), p.askUpstream() },
}

// bulkTrial is a bulk request for bulkSize cached addresses.
var bulkTrial = trial{
	name: "bulk", requests: 30_000, proof: "X-Geo-Source: sim", upstream: true, each: true,
	keys:    cachedKeys,
	prepare: func(p *plan) ([][]byte, error) { return bulks(p.keys), p.askUpstream() },
}

// coldTrial is a lookup of an address that the offline files have.
var coldTrial = trial{
	name: "cold", requests: 200_000, proof: "X-Cache: miss", each: true, keys: fileKeys,
	prepare: func(p *plan) ([][]byte, error) { return lookups(p.keys), p.askFiles() },
}

// bulkColdTrial is a bulk request for bulkSize addresses that the offline files have.
var bulkColdTrial = trial{
	name: "bulk-cold", requests: 30_000, proof: "X-Geo-Source: mmdb", each: true, keys: fileKeys,
	prepare: func(p *plan) ([][]byte, error) { return bulks(p.keys), p.askFiles() },
}

// askUpstream lets gatehouse look up addresses at the simulator.
func (p *plan) askUpstream() error {
	p.flags = append(p.flags, "--roles=geo", "--ip-provider=sim", "--ip-api-base="+p.upstream)
	return nil
}

// askFiles lets gatehouse look up addresses in offline files.
func (p *plan) askFiles() error {
	city, asn := filepath.Join(p.dir, "city.mmdb"), filepath.Join(p.dir, "asn.mmdb")
	p.flags = append(p.flags, "--roles=geo", "--ip-provider=mmdb", "--ip-mmdb="+city+","+asn)
	return writeFiles(city, asn, p.keys)
}

// The numbers of addresses that are looked up, in rotation.
const (
	cachedKeys = 4096
	fileKeys   = 1 << 16 // each eight have a record
)

// key returns address i. All have equally many characters.
func key(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{20, 100 + byte(i>>12&15), 100 + byte(i>>6&63), 100 + byte(i&63)})
}

// lookups returns a request for each of n keys.
func lookups(n int) [][]byte {
	requests := make([][]byte, n)
	for i := range requests {
		requests[i] = get("/api/lookup?q="+key(i).String(), "")
	}
	return requests
}

const bulkSize = 50

// bulks returns a request for each bulkSize of n keys. The last one has the rest.
func bulks(n int) [][]byte {
	var all []string
	for i := range n {
		all = append(all, key(i).String())
	}
	var requests [][]byte
	for chosen := range slices.Chunk(all, bulkSize) {
		requests = append(requests, post("/api/bulk", "application/json",
			`{"queries":["`+strings.Join(chosen, `","`)+`"]}`))
	}
	return requests
}

// writeFiles writes the offline files, which have the first n keys. Each network has a city of its
// own.
func writeFiles(cityFile, asnFile string, n int) error {
	text := func(s string) mmdbtype.Map {
		return mmdbtype.Map{"names": mmdbtype.Map{"en": mmdbtype.String(s)}}
	}
	city := func(i int) mmdbtype.Map {
		country := text("United States")
		country["iso_code"] = mmdbtype.String("US")
		return mmdbtype.Map{
			"continent": text("North America"), "country": country,
			"subdivisions": mmdbtype.Slice{text("Virginia")},
			"city":         text(fmt.Sprintf("City %05d", i)),
			"postal":       mmdbtype.Map{"code": mmdbtype.String("20149")},
			"location": mmdbtype.Map{
				"latitude": mmdbtype.Float64(39.0438), "longitude": mmdbtype.Float64(-77.4874),
				"time_zone": mmdbtype.String("America/New_York"), "accuracy_radius": mmdbtype.Uint16(20),
			},
		}
	}
	asn := func(i int) mmdbtype.Map {
		return mmdbtype.Map{
			"autonomous_system_number":       mmdbtype.Uint32(64500 + i/4096),
			"autonomous_system_organization": mmdbtype.String("Example Networks LLC"),
		}
	}
	return errors.Join(writeFile(cityFile, "GeoLite2-City", n, city),
		writeFile(asnFile, "GeoLite2-ASN", n, asn))
}

// writeFile writes a file with the record of each network of eight addresses.
func writeFile(path, kind string, n int, record func(i int) mmdbtype.Map) error {
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: kind})
	if err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	for i := range n {
		prefix := netip.PrefixFrom(key(i), 29).Masked()
		network := &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(29, 32)}
		if err := tree.Insert(network, record(i)); err != nil {
			return fmt.Errorf("make %s: %w", path, err)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = tree.WriteTo(f)
	return errors.Join(err, f.Close())
}
