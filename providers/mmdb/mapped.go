package mmdb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"gatehouse/actors/geo"
)

// MaxMapped is how many files Map takes. Each is smaller than 4 GiB.
const MaxMapped = 4

// Mapped are database files for a program that looks up many addresses and then ends. They are
// mapped into memory, so they must not be rewritten in place meanwhile. Its methods may be called
// by many goroutines.
type Mapped struct{ p Provider }

// Places says which records of the files an address has. Two addresses with equal Places have the
// same result but for the address. It can be a map key.
type Places [MaxMapped]uint32

// damagedPlace is the place of an address whose search has failed. Others are 0 if there is no
// record, or else the record's offset and 1.
const damagedPlace = math.MaxUint32

// Map opens files, of the types that Open takes. Its error names the file that cannot be used.
func Map(paths ...string) (*Mapped, error) {
	if len(paths) == 0 || len(paths) > MaxMapped {
		return nil, fmt.Errorf("got %d database files, want 1 to %d", len(paths), MaxMapped)
	}
	m := &Mapped{p: Provider{
		resolver:  net.DefaultResolver.LookupNetIP,
		resolving: make(chan struct{}, maxResolving),
	}}
	var files []*file
	for _, path := range paths {
		reader, err := maxminddb.Open(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.close(files))
		}
		files = append(files, &file{path: path, reader: reader})
		if files[len(files)-1].located, err = shape(reader.Metadata.DatabaseType); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.close(files))
		}
	}
	m.p.files.Store(&files)
	return m, nil
}

// Close unmaps the files. It must not be called during a lookup.
func (m *Mapped) Close() error { return m.close(*m.p.files.Load()) }

func (m *Mapped) close(files []*file) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.reader.Close())
	}
	return errors.Join(errs...)
}

// Find returns where the files have addr. It costs a fraction of Answer.
func (m *Mapped) Find(addr netip.Addr) Places {
	var at Places
	for i, f := range *m.p.files.Load() {
		if addr.Is6() && f.reader.Metadata.IPVersion == 4 {
			continue
		}
		if r := f.reader.Lookup(addr); r.Found() {
			at[i] = uint32(r.Offset()) + 1
		} else if r.Err() != nil {
			at[i] = damagedPlace
		}
	}
	return at
}

// Resolve returns the address that a domain has, or why it has none.
func (m *Mapped) Resolve(ctx context.Context, domain string) (netip.Addr, *geo.Error) {
	return m.p.resolve(ctx, domain)
}

// Answer returns the answer at now for addr, which Find found at.
func (m *Mapped) Answer(addr netip.Addr, at Places, now time.Time) geo.Answer {
	all, err := record{}, errNotFound
	for i, f := range *m.p.files.Load() {
		if at[i] == 0 {
			continue
		}
		r, ok := f.decode(at[i])
		switch {
		case ok:
			all.merge(&r)
			err = nil
		case err == errNotFound:
			err = errUnreachable
		}
	}
	if err != nil {
		return geo.Answer{Err: err}
	}
	return geo.Answer{Result: all.result(addr, &m.p.zones, now)}
}

// decode returns the record at a place; false = it is damaged.
func (f *file) decode(at uint32) (r record, ok bool) {
	if at == damagedPlace {
		return record{}, false
	}
	found := f.reader.LookupOffset(uintptr(at - 1))
	if f.located {
		return r, found.Decode(&r) == nil
	}
	return r, found.Decode(&r.Traits) == nil
}
