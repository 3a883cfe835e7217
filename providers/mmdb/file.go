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

// find returns the file's record of addr. found is false if it has none. The error may contain
// parts of the record, so it must not be logged.
func (f *file) find(addr netip.Addr) (r record, found bool, err error) {
	if addr.Is6() && f.reader.Metadata.IPVersion == 4 {
		return record{}, false, nil
	}
	result := f.reader.Lookup(addr)
	if err := result.Err(); err != nil {
		return record{}, false, fmt.Errorf("search %s: %w", f.path, err)
	}
	if !result.Found() {
		return record{}, false, nil
	}
	if f.located {
		err = result.Decode(&r)
	} else {
		err = result.Decode(&r.Traits)
	}
	if err != nil {
		return record{}, false, fmt.Errorf("decode %s: %w", f.path, err)
	}
	return r, true, nil
}

// report logs, once for each file, that it has a damaged record.
func (f *file) report(logger *slog.Logger) {
	f.damaged.Do(func() { logger.Error("database file is damaged", "file", f.path) })
}
