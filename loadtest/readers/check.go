package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/oschwald/maxminddb-golang/v2"
)

// reference is a program that reads addresses, and prints what Python's maxminddb finds as lines of
// JSON.
//
//go:embed reference.py
var reference string

// found is what a program finds of an address.
type found struct {
	CountryCode *string  `json:"countryCode"`
	City        *string  `json:"city"`
	Lat         *float64 `json:"lat"`
	Lon         *float64 `json:"lon"`
	ASN         *uint32  `json:"asn"`
	Prefix      *string  `json:"prefix"`
	Error       string   `json:"error"`
}

// check compares what gatehouse finds in a file with what Python's maxminddb finds. It fails if they
// differ.
func (o *options) check() error {
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import maxminddb").Run() == nil {
			python = name
			break
		}
	}
	if python == "" {
		return errors.New("no Python with maxminddb: run scripts/reader-tools")
	}
	file := o.mmdb
	if file == "" {
		file = filepath.Join(o.node, "node_modules", "@ip-location-db", "iptoasn-country-mmdb", "iptoasn-country.mmdb")
	}
	addresses, err := o.sample(file)
	if err != nil {
		return err
	}
	want, err := o.found(addresses, python, "-c", reference, file)
	if err != nil {
		return err
	}
	got, err := o.found(addresses, o.program, "lookup", "--mmdb", file, "--file", "-", "--quiet", "--failures-ok",
		"--format", "ndjson", "--fields", "countryCode,city,lat,lon,asn,prefix")
	if err != nil {
		return err
	}
	if len(got) != o.rows || len(want) != o.rows {
		return fmt.Errorf("got %d and %d answers for %d addresses", len(got), len(want), o.rows)
	}
	var different, special, unknown int
	for i := range got {
		switch {
		case got[i].Error == "invalid_query":
			special++
			continue
		case got[i].Error == "no_location":
			unknown++
			got[i].Prefix, want[i].Prefix = nil, nil // an error has none
		}
		got[i].Error = ""
		is, _ := json.Marshal(got[i])
		other, _ := json.Marshal(want[i])
		if !bytes.Equal(is, other) {
			if different++; different <= 10 {
				fmt.Printf("%s: gatehouse has %s, Python's maxminddb %s\n", addresses[i], is, other)
			}
		}
	}
	fmt.Printf("%s: %d addresses, %d different; %d without a record, %d private or reserved\n", file, o.rows,
		different, unknown, special)
	if different > 0 || special > o.rows/2 {
		return errors.New("the files are not read alike")
	}
	return nil
}

// sample returns addresses: of networks of the file their first, their last and a random one, and
// random ones of each family.
func (o *options) sample(file string) (all []netip.Addr, err error) {
	reader, err := maxminddb.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	count := 0
	for r := range reader.Networks() {
		if err := r.Err(); err != nil {
			return nil, err
		}
		count++
	}
	every := max(1, count*4/o.rows)
	number := 0
	for r := range reader.Networks() {
		if number++; number%every == 0 {
			all = append(all, within(r.Prefix(), 0), within(r.Prefix(), 0xff), within(r.Prefix(), -1))
		}
	}
	for len(all) < o.rows {
		if len(all)%2 == 0 || reader.Metadata.IPVersion == 4 {
			all = append(all, within(netip.MustParsePrefix("0.0.0.0/0"), -1))
		} else {
			all = append(all, within(netip.MustParsePrefix("2000::/4"), -1))
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:o.rows]
	return all, nil
}

// within returns an address of a network, whose other bits are those of fill; random ones if that is
// negative.
func within(p netip.Prefix, fill int) netip.Addr {
	bytes := p.Addr().AsSlice()
	for i := range bytes {
		other := byte(fill)
		if fill < 0 {
			other = byte(rand.Uint32())
		}
		mask := byte(0xff) // of the bits that are not the network's
		if bits := p.Bits() - 8*i; bits >= 8 {
			mask = 0
		} else if bits > 0 {
			mask >>= bits
		}
		bytes[i] = bytes[i]&^mask | other&mask
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

// found returns what a program finds of addresses, which it reads from stdin.
func (o *options) found(addresses []netip.Addr, name string, args ...string) (all []found, err error) {
	var input bytes.Buffer
	for _, a := range addresses {
		fmt.Fprintln(&input, a)
	}
	command := exec.Command(name, args...)
	command.Stdin, command.Stderr = &input, os.Stderr
	text, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var one found
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s prints %s: %w", name, lines.Text(), err)
		}
		all = append(all, one)
	}
	return all, nil
}
