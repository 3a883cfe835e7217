package mmdb

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/oschwald/maxminddb-golang/v2"
)

// file is a database in memory. It is immutable: a changed file on disk is read into a new one.
type file struct {
	path    string
	reader  *maxminddb.Reader
	located bool // its records decode into record, not into traits
	damaged sync.Once
}

// readFile reads a database. Its error contains the path.
func readFile(path string) (*file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	located, err := shape(reader.Metadata.DatabaseType)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &file{path: path, reader: reader, located: located}, nil
}

// shape reports whether the records of a database type are a record, with a location, or only
// traits. It knows the types of MaxMind and DB-IP, such as "GeoLite2-City" or "DBIP-ISP
// (compat=Enterprise)".
func shape(databaseType string) (located bool, err error) {
	for _, word := range []string{"City", "Country", "Enterprise"} {
		if strings.Contains(databaseType, word) {
			return true, nil
		}
	}
	for _, word := range []string{"ASN", "ISP", "Connection-Type", "Anonymous"} {
		if strings.Contains(databaseType, word) {
			return false, nil
		}
	}
	return false, fmt.Errorf("database type %q contains neither locations nor networks",
		databaseType)
}

// place is where a file has its record of an address.
type place struct {
	file   *file
	offset uint64 // of the record in the file; or noRecord, or damaged
	bits   int    // of the address's prefix for which the file has this record, or none
}

// Offsets of places without a record: there is none, or the search has failed.
const (
	noRecord = math.MaxUint64
	damaged  = noRecord - 1
)

// find returns where the file has its record of addr.
func (f *file) find(addr netip.Addr) place {
	if addr.Is6() && f.reader.Metadata.IPVersion == 4 {
		return place{file: f, offset: noRecord}
	}
	p, result := place{file: f, offset: noRecord}, f.reader.Lookup(addr)
	switch {
	case result.Err() != nil:
		p.offset = damaged
	case result.Found():
		p.offset = uint64(result.Offset())
	}
	if prefix := result.Prefix(); prefix.Addr().Is4() == addr.Is4() {
		p.bits = prefix.Bits()
	}
	return p
}

// errSearch says that the search for a record has failed.
var errSearch = errors.New("damaged search tree")

// read reads the record into r, which it empties first. The error may contain parts of the record,
// so it must not be logged. After an error, r holds nothing of use.
func (p *place) read(r *record) (err error) {
	if p.offset == damaged {
		return fmt.Errorf("search %s: %w", p.file.path, errSearch)
	}
	*r = record{}
	result := p.file.reader.LookupOffset(uintptr(p.offset))
	if p.file.located {
		err = result.Decode(r)
	} else {
		err = result.Decode(&r.Traits)
	}
	if err != nil {
		return fmt.Errorf("decode %s: %w", p.file.path, err)
	}
	return nil
}

// report logs, once for each file, that it has a damaged record.
func (f *file) report(logger *slog.Logger) {
	f.damaged.Do(func() { logger.Error("database file is damaged", "file", f.path) })
}
