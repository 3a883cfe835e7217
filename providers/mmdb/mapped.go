package mmdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"gatehouse/actors/geo"
)

// maxMapped is how many files Map takes.
const maxMapped = 4

// Mapped are database files for a program that looks up many addresses and then ends. They are
// mapped into memory, so they must not be rewritten in place meanwhile. Its methods may be called
// by many goroutines.
type Mapped struct {
	p     Provider
	began []os.FileInfo // of each file, before it was mapped
}

// ErrRewritten says that a file was rewritten in place after it was mapped, so that what was found
// since may be wrong.
var ErrRewritten = errors.New("was rewritten during the lookup: replace such a file by renaming")

// Offsets are where the files have their records of an address. Two addresses with equal Offsets
// have the same result but for the address and the prefix.
type Offsets [maxMapped]uint64

// Map opens files as Options{}.Map does.
func Map(paths ...string) (*Mapped, error) { return Options{}.Map(paths...) }

// Options say how the records of files are read. The zero value is ready to use.
type Options struct {
	Mapping  *Mapping // of members that are not recognized; optional
	Language string   // of names, as far as the files have it; optional: "en"
}

// Map opens files. Its error names the file that cannot be used.
func (o Options) Map(paths ...string) (*Mapped, error) {
	if len(paths) == 0 || len(paths) > maxMapped {
		return nil, fmt.Errorf("got %d database files, want 1 to %d", len(paths), maxMapped)
	}
	m := &Mapped{p: Provider{
		resolver:  net.DefaultResolver.LookupNetIP,
		resolving: make(chan struct{}, maxResolving),
		logger:    slog.New(slog.DiscardHandler), // the answers have the errors
	}}
	var files []*file
	l := compile(o.Mapping, o.Language)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, errors.Join(err, m.close(files))
		}
		m.began = append(m.began, info)
		reader, err := maxminddb.Open(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.close(files))
		}
		f, err := newFile(path, reader, l)
		if err != nil {
			return nil, errors.Join(err, reader.Close(), m.close(files))
		}
		files = append(files, f)
	}
	m.p.files.Store(&fileSet{files: files})
	return m, nil
}

// Check returns ErrRewritten if a file was rewritten in place.
func (m *Mapped) Check() error {
	for i, f := range m.p.files.Load().files {
		was := m.began[i]
		is, err := os.Stat(f.path)
		if err == nil && os.SameFile(was, is) &&
			(is.Size() != was.Size() || !is.ModTime().Equal(was.ModTime())) {
			return fmt.Errorf("%s %w", f.path, ErrRewritten)
		}
	}
	return nil // a file that was replaced by renaming, or removed, is still mapped
}

// Close unmaps the files. It must not be called during a lookup.
func (m *Mapped) Close() error { return m.close(m.p.files.Load().files) }

func (m *Mapped) close(files []*file) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.reader.Close())
	}
	return errors.Join(errs...)
}

// Find returns where the files have their records of addr, and the prefix for which all of them
// have these records. It costs a fraction of Answer.
func (m *Mapped) Find(addr netip.Addr) (at Offsets, prefix netip.Prefix) {
	var found [maxMapped]place
	places, bits := m.p.files.Load().search(addr, found[:0])
	for i := range places {
		at[i] = places[i].offset
	}
	prefix, _ = addr.Prefix(bits)
	return at, prefix
}

// Resolve returns the address that a domain has, or why it has none.
func (m *Mapped) Resolve(ctx context.Context, domain string) (netip.Addr, *geo.Error) {
	return m.p.resolve(ctx, domain)
}

// Answer returns the answer at now for addr, which Find found.
func (m *Mapped) Answer(addr netip.Addr, at Offsets, prefix netip.Prefix, now time.Time) geo.Answer {
	var found [maxMapped]place
	places := found[:0]
	for i, f := range m.p.files.Load().files {
		places = append(places, place{file: f, offset: at[i]})
	}
	return m.p.result(places, addr, prefix, now)
}

// Describe returns the type, the build time and the size of each file.
func (m *Mapped) Describe() string {
	var all []string
	for i, f := range m.p.files.Load().files {
		all = append(all, fmt.Sprintf("%s of %s with %d bytes", f.reader.Metadata.DatabaseType,
			f.reader.Metadata.BuildTime().UTC().Format(time.RFC3339), m.began[i].Size()))
	}
	return strings.Join(all, ", ")
}
