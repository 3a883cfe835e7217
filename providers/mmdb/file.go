package mmdb

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/oschwald/maxminddb-golang/v2"
)

// file is one database in memory. It never changes; a newer one takes its place.
type file struct {
	path    string
	reader  *maxminddb.Reader
	located bool // whether its records have the shape of record, else that of traits
	damaged sync.Once
}

// readFile reads a database. The error names the path.
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

// shape tells from a database type of MaxMind or DB-IP ("GeoLite2-City", "DBIP-ISP (compat=Enterprise)") whether the
// records hold a place, perhaps with traits, or traits alone.
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
	return false, fmt.Errorf("database type %q holds neither places nor networks", databaseType)
}

// find returns what the file knows of addr and whether it knows it. The error may hold parts of the record, so it
// must not be shown.
func (f *file) find(addr netip.Addr) (r record, found bool, err error) {
	if addr.Is6() && f.reader.Metadata.IPVersion == 4 {
		return record{}, false, nil
	}
	looked := f.reader.Lookup(addr)
	if err := looked.Err(); err != nil {
		return record{}, false, fmt.Errorf("search %s: %w", f.path, err)
	}
	if !looked.Found() {
		return record{}, false, nil
	}
	if f.located {
		err = looked.Decode(&r)
	} else {
		err = looked.Decode(&r.Traits)
	}
	if err != nil {
		return record{}, false, fmt.Errorf("decode %s: %w", f.path, err)
	}
	return r, true, nil
}

// report says once that the file has a damaged record.
func (f *file) report(logger *slog.Logger) {
	f.damaged.Do(func() { logger.Error("database file is damaged", "file", f.path) })
}
