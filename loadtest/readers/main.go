// Command readers measures gatehouse lookup --mmdb beside plain programs that read the same files.
//
//	go build -o bin/readers ./loadtest/readers
//	bin/readers make -dir /tmp/readers          writes City.mmdb, ASN.mmdb and rows.csv
//	bin/readers run -dir /tmp/readers           runs gatehouse and its peers in turn
//	bin/readers loop|values -dir /tmp/readers   is one of the peers
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"github.com/oschwald/maxminddb-golang/v2"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "readers:", err)
		os.Exit(1)
	}
}

type options struct {
	dir, program           string
	rows, networks, places int
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("give make, run, loop or values")
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", ".", "folder of the files")
	flags.StringVar(&o.program, "program", "bin/gatehouse", "program to measure")
	flags.IntVar(&o.rows, "rows", 2_000_000, "rows to make")
	flags.IntVar(&o.networks, "networks", 500_000, "networks of the files to make")
	flags.IntVar(&o.places, "places", 100_000, "different records of the City file to make")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "make":
		return o.make()
	case "run":
		return o.compare()
	case "loop":
		return o.peer(decodeStruct)
	case "values":
		return o.peer(printValues)
	}
	return fmt.Errorf("unknown command %q", args[0])
}

func (o *options) path(name string) string { return filepath.Join(o.dir, name) }

// make writes the files: random networks of 256 addresses, and addresses in and between them.
func (o *options) make() error {
	random := rand.New(rand.NewPCG(1, 2))
	var starts []uint32
	for range o.networks {
		starts = append(starts, 1<<24+random.Uint32N(222<<24)&^0xff)
	}
	err := errors.Join(
		o.write("City.mmdb", "GeoLite2-City", starts, func(i int) mmdbtype.Map {
			return place(i % o.places)
		}),
		o.write("ASN.mmdb", "GeoLite2-ASN", starts, func(i int) mmdbtype.Map {
			n := i % (o.places / 4)
			return mmdbtype.Map{
				"autonomous_system_number":       mmdbtype.Uint32(64512 + n),
				"autonomous_system_organization": mmdbtype.String(fmt.Sprintf("Example Networks %d", n)),
			}
		}))
	if err != nil {
		return err
	}
	f, err := os.Create(o.path("rows.csv"))
	if err != nil {
		return err
	}
	rows := bufio.NewWriter(f)
	fmt.Fprintln(rows, "id,ip,path")
	for i := range o.rows {
		n := starts[random.IntN(len(starts))] + random.Uint32N(256)
		addr := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		fmt.Fprintf(rows, "%d,%s,\"/page/%d, x\"\n", i, addr, i%1000)
	}
	return errors.Join(rows.Flush(), f.Close())
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

// compare runs gatehouse and the peers and prints their figures.
func (o *options) compare() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	files := o.path("City.mmdb") + "," + o.path("ASN.mmdb")
	for _, command := range [][]string{
		{o.program, "lookup", "--mmdb", files, "--file", o.path("rows.csv"), "--column", "ip", "-q"},
		{self, "loop", "-dir", o.dir},
		{self, "values", "-dir", o.dir},
	} {
		if err := measure(command); err != nil {
			return err
		}
	}
	return nil
}

// measure runs a command and prints its time, processor time and largest anonymous memory.
func measure(command []string) error {
	c := exec.Command(command[0], command[1:]...)
	c.Stdout, c.Stderr = io.Discard, os.Stderr
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	c.Stdout = null
	began := time.Now()
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	anonymous := 0
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			anonymous = max(anonymous, anonymousMemory(c.Process.Pid))
			continue
		case err := <-ended:
			const someFailed = 3 // the addresses of private networks among the rows
			if err != nil && c.ProcessState.ExitCode() != someFailed {
				return fmt.Errorf("%s: %w", command[0], err)
			}
		}
		break
	}
	took := time.Since(began)
	usage := c.ProcessState.SysUsage().(*syscall.Rusage)
	spent := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	fmt.Printf("%-20s %6.2f s  %6.2f s CPU  %4d MiB anonymous\n",
		filepath.Base(command[0])+" "+command[1], took.Seconds(), spent.Seconds(), anonymous>>10)
	return nil
}

// anonymousMemory returns the anonymous memory of a process in KiB; 0 = not known.
func anonymousMemory(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	kib := 0
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}

// peer reads the rows as the plainest program would, and looks up the second column.
func (o *options) peer(
	look func(*bufio.Writer, *maxminddb.Reader, *maxminddb.Reader, netip.Addr) error) error {
	city, err := maxminddb.Open(o.path("City.mmdb"))
	if err != nil {
		return err
	}
	asn, err := maxminddb.Open(o.path("ASN.mmdb"))
	if err != nil {
		return err
	}
	rows, err := os.Open(o.path("rows.csv"))
	if err != nil {
		return err
	}
	defer rows.Close()
	lines, out := bufio.NewScanner(rows), bufio.NewWriter(os.Stdout)
	lines.Scan() // the header
	for lines.Scan() {
		_, rest, _ := strings.Cut(lines.Text(), ",")
		text, _, _ := strings.Cut(rest, ",")
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		if err := look(out, city, asn, addr); err != nil {
			return err
		}
	}
	return errors.Join(lines.Err(), out.Flush())
}

type names struct {
	ISOCode string `maxminddb:"iso_code"`
	Names   struct {
		English string `maxminddb:"en"`
	} `maxminddb:"names"`
}

type record struct {
	Country      names   `maxminddb:"country"`
	City         names   `maxminddb:"city"`
	Subdivisions []names `maxminddb:"subdivisions"`
	Location     struct {
		Latitude  float64 `maxminddb:"latitude"`
		Longitude float64 `maxminddb:"longitude"`
		TimeZone  string  `maxminddb:"time_zone"`
	} `maxminddb:"location"`
	Number       uint   `maxminddb:"autonomous_system_number"`
	Organization string `maxminddb:"autonomous_system_organization"`
}

// decodeStruct is the bare loop: it decodes the same members and prints nothing.
func decodeStruct(_ *bufio.Writer, city, asn *maxminddb.Reader, addr netip.Addr) error {
	var r record
	return errors.Join(city.Lookup(addr).Decode(&r), asn.Lookup(addr).Decode(&r))
}

// printValues decodes whole records into maps and prints them as JSON, as mmdbctl read does.
func printValues(out *bufio.Writer, city, asn *maxminddb.Reader, addr netip.Addr) error {
	both := map[string]any{"ip": addr}
	err := errors.Join(city.Lookup(addr).Decode(&both), asn.Lookup(addr).Decode(&both))
	if err != nil {
		return err
	}
	text, err := json.Marshal(both)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}
