package mmdb

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"sync"

	"github.com/oschwald/maxminddb-golang/v2"
)

// file is a database in memory. It is immutable: a changed file on disk is read into a new one.
type file struct {
	path    string
	reader  *maxminddb.Reader
	layout  *layout
	shape   *shape
	memo    *memo // to read records with layout; nil = none
	damaged sync.Once
	data    []byte        // what was read; nil if it is mapped
	hash    func() string // of data
}

// newFile returns the file of a reader. Its error contains the path.
func newFile(path string, reader *maxminddb.Reader, l *layout) (*file, error) {
	f := &file{path: path, reader: reader, layout: l}
	if err := f.sample(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.shape.isNested() && l.mapping == nil {
		f.memo = &memo{}
	}
	return f, nil
}

// readFile reads a database. Its error contains the path.
func readFile(path string, l *layout) (*file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := newFile(path, reader, l)
	if err != nil {
		return nil, err
	}
	f.data = data
	f.hash = sync.OnceValue(func() string {
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:16])
	})
	return f, nil
}

// place is where a file has its record of an address.
type place struct {
	file   *file
	offset uint64  // of the record in the file; or noRecord, damaged or notCovered
	bits   int     // of the address's prefix for which the file has this record, or none
	layout *layout // to read it with; nil = that of the file
}

// Offsets of places without a record: there is none, the search has failed, or the file has no
// addresses of this family.
const (
	noRecord   = math.MaxUint64
	damaged    = noRecord - 1
	notCovered = noRecord - 2
)

// find returns where the file has its record of addr.
func (f *file) find(addr netip.Addr) place {
	if addr.Is6() && f.reader.Metadata.IPVersion == 4 {
		return place{file: f, offset: notCovered}
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

// read reads the record into r, which is empty. The error may contain parts of the record, so it must not be logged.
func (p *place) read(r *record) error {
	if p.offset == damaged {
		return fmt.Errorf("search %s: %w", p.file.path, errSearch)
	}
	return p.file.decodeBy(cmp.Or(p.layout, p.file.layout),
		p.file.reader.LookupOffset(uintptr(p.offset)), func(v *values) { v.record(r) })
}

// decode gives the values of a record to use, which must not keep them.
func (f *file) decode(at maxminddb.Result, use func(*values)) error {
	return f.decodeBy(f.layout, at, use)
}

// decodeBy is decode with another layout.
func (f *file) decodeBy(l *layout, at maxminddb.Result, use func(*values)) error {
	v := l.pool.Get().(*values)
	v.shape, v.memo = f.shape, nil
	if l == f.layout {
		v.memo = f.memo
	}
	v.reset()
	err := at.Decode(v)
	if err == nil {
		use(v)
	}
	l.pool.Put(v)
	if err != nil {
		return fmt.Errorf("decode %s: %w", f.path, err)
	}
	return nil
}

// report logs, once for each file, that it has a damaged record.
func (f *file) report(logger *slog.Logger) {
	f.damaged.Do(func() { logger.Error("database file is damaged", "file", f.path) })
}
