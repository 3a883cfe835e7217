package main

import (
	"bufio"
	"errors"
	"net/netip"
	"os"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"
)

// loop is the bare loop: it reads the rows as the plainest program would, decodes the members that
// gatehouse prints, and prints nothing.
func (o *options) loop() error {
	city, err := maxminddb.Open(o.path(cityFile))
	if err != nil {
		return err
	}
	asn, err := maxminddb.Open(o.path(asnFile))
	if err != nil {
		return err
	}
	rows, err := os.Open(o.path(rowsFile))
	if err != nil {
		return err
	}
	defer rows.Close()
	lines := bufio.NewScanner(rows)
	lines.Scan() // the header
	for lines.Scan() {
		_, rest, _ := strings.Cut(lines.Text(), ",")
		text, _, _ := strings.Cut(rest, ",")
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		var r record
		err = errors.Join(city.Lookup(addr).Decode(&r), asn.Lookup(addr).Decode(&r))
		if err != nil {
			return err
		}
	}
	return lines.Err()
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
