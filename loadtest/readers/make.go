package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// make writes the files: random networks of 256 addresses, and addresses in them.
func (o *options) make() error {
	if min(o.rows, o.networks, o.places) < 1 {
		return errors.New("-rows, -networks and -places must be 1 or more")
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	var starts []uint32
	for range o.networks {
		starts = append(starts, 1<<24+random.Uint32N(222<<24)&^0xff)
	}
	systems := max(1, o.places/4)
	return errors.Join(
		o.write(cityFile, "GeoLite2-City", starts, func(i int) mmdbtype.Map {
			return place(i % o.places)
		}),
		o.write(asnFile, "GeoLite2-ASN", starts, func(i int) mmdbtype.Map {
			n := i % systems
			return mmdbtype.Map{
				"autonomous_system_number":       mmdbtype.Uint32(64512 + n),
				"autonomous_system_organization": mmdbtype.String(fmt.Sprintf("Example Networks %d", n)),
			}
		}),
		o.writeRows(starts, random))
}

// writeRows writes the rows of CSV, and their addresses alone.
func (o *options) writeRows(starts []uint32, random *rand.Rand) error {
	rowsOut, err := os.Create(o.path(rowsFile))
	if err != nil {
		return err
	}
	defer rowsOut.Close()
	addressesOut, err := os.Create(o.path(addressFile))
	if err != nil {
		return err
	}
	defer addressesOut.Close()
	rows, addresses := bufio.NewWriter(rowsOut), bufio.NewWriter(addressesOut)
	fmt.Fprintln(rows, "id,ip,path")
	for i := range o.rows {
		n := starts[random.IntN(len(starts))] + random.Uint32N(256)
		addr := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		fmt.Fprintf(rows, "%d,%s,\"/page/%d, x\"\n", i, addr, i%1000)
		fmt.Fprintln(addresses, addr)
	}
	return errors.Join(rows.Flush(), addresses.Flush())
}

func place(i int) mmdbtype.Map {
	names := func(s string) mmdbtype.Map {
		return mmdbtype.Map{"names": mmdbtype.Map{"en": mmdbtype.String(s), "de": mmdbtype.String(s),
			"fr": mmdbtype.String(s)}}
	}
	country := names("Germany")
	country["iso_code"] = mmdbtype.String("DE")
	return mmdbtype.Map{
		"continent": names("Europe"), "country": country, "registered_country": country,
		"city":         names(fmt.Sprintf("Town %d", i)),
		"subdivisions": mmdbtype.Slice{names(fmt.Sprintf("Region %d", i%400))},
		"postal":       mmdbtype.Map{"code": mmdbtype.String(fmt.Sprint(10000 + i))},
		"location": mmdbtype.Map{"latitude": mmdbtype.Float64(float64(i) / 1000),
			"longitude": mmdbtype.Float64(float64(i) / 2000), "time_zone": mmdbtype.String("Europe/Berlin"),
			"accuracy_radius": mmdbtype.Uint16(20)},
	}
}

func (o *options) write(name, databaseType string, starts []uint32,
	record func(int) mmdbtype.Map) error {
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: databaseType,
		IncludeReservedNetworks: true, RecordSize: 28})
	if err != nil {
		return err
	}
	for i, n := range starts {
		network := &net.IPNet{IP: net.IPv4(byte(n>>24), byte(n>>16), byte(n>>8), 0).To4(),
			Mask: net.CIDRMask(24, 32)}
		if err := tree.Insert(network, record(i)); err != nil {
			return err
		}
	}
	f, err := os.Create(o.path(name))
	if err != nil {
		return err
	}
	_, err = tree.WriteTo(f)
	return errors.Join(err, f.Close())
}
