package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"github.com/valyala/fasthttp"

	"gatehouse/cmd/stack"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/ptr"
)

// coldTrial is a lookup of an address that the offline files have.
var coldTrial = trial{
	name: "cold", requests: 200_000, proof: "X-Cache: miss",
	prepare: func(p plan) (func(string) [][]byte, error) {
		return func(host string) [][]byte { return lookups(host, coldKeys) }, writeFiles(p.dir)
	},
	raw:       newRawCold,
	configure: configureFiles,
}

// bulkColdTrial is a bulk request for bulkSize addresses that the offline files have.
var bulkColdTrial = trial{
	name: "bulk-cold", requests: 30_000, proof: "X-Geo-Source: mmdb",
	prepare: func(p plan) (func(string) [][]byte, error) {
		return func(host string) [][]byte { return bulks(host, coldKeys) }, writeFiles(p.dir)
	},
	raw:       newRawBulkCold,
	configure: configureFiles,
}

// coldKeys is how many addresses are looked up in the files, in rotation. Each eight have a record.
const coldKeys = 1 << 16

// The offline files in a folder.
func cityFile(dir string) string { return filepath.Join(dir, "city.mmdb") }
func asnFile(dir string) string  { return filepath.Join(dir, "asn.mmdb") }

// writeFiles writes the offline files, which have the answers of locate, each with a city of its
// own.
func writeFiles(dir string) error {
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
	return errors.Join(writeFile(cityFile(dir), "GeoLite2-City", city),
		writeFile(asnFile(dir), "GeoLite2-ASN", asn))
}

// writeFile writes a file with the record of each network of eight addresses.
func writeFile(path, kind string, record func(i int) mmdbtype.Map) error {
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: kind})
	if err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	for i := range coldKeys {
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

// configureFiles switches the identity service off and looks up addresses in the files.
func configureFiles(dir string, c *stack.Config) error {
	c.Identity, c.Lookups.Reverse, c.Lookups.Upstream = nil, ptr.Config{}, ipapi.Config{}
	c.Lookups.Files.Files = []string{cityFile(dir), asnFile(dir)}
	return nil
}

// newColdBodies returns the response body for each key.
func newColdBodies(dir string) (map[string][]byte, error) {
	files, err := mmdb.Open(mmdb.Config{
		Files: []string{cityFile(dir), asnFile(dir)}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	defer files.Close()
	bodies, now := make(map[string][]byte, coldKeys), time.Now()
	for i := range coldKeys {
		text := key(i).String()
		o := files.Find(key(i), now)
		if o.Err != nil {
			return nil, o.Err
		}
		bodies[text] = o.AppendJSON(nil, text)
	}
	return bodies, nil
}

// newRawCold returns a handler that has the response to each lookup ready in a map.
func newRawCold(dir string) (fasthttp.RequestHandler, error) {
	bodies, err := newColdBodies(dir)
	if err != nil {
		return nil, err
	}
	headers := append(newHeaders("Cache-Control", "private, max-age=600", "Age", "0", "X-Cache",
		"miss"), geoHeaders("mmdb")...)
	contentType := []byte("application/json")
	return func(ctx *fasthttp.RequestCtx) {
		setHeaders(ctx, headers)
		ctx.Response.Header.SetContentTypeBytes(contentType)
		ctx.Response.SetBodyRaw(bodies[string(ctx.QueryArgs().Peek("q"))])
	}, nil
}

// newRawBulkCold returns a handler that has the response to each bulk request ready in a map.
func newRawBulkCold(dir string) (fasthttp.RequestHandler, error) {
	bodies, err := newColdBodies(dir)
	if err != nil {
		return nil, err
	}
	return newRawBulks(bodies, "mmdb")
}
