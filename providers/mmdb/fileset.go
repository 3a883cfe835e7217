package mmdb

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"net/netip"
	"sync/atomic"
	"time"

	"gatehouse/actors/geo"
)

// fileSet are files that are in use together, and answers rendered from them. A reload makes a new
// one, so that no answer of the old files is left.
type fileSet struct {
	files    []*file
	seed     maphash.Seed
	rendered []atomic.Pointer[rendering] // by the hash of their keys: a new one replaces another
}

// rendering is the answer to all addresses of which the files have the same records.
type rendering struct {
	key    string // the records' offsets
	record *geo.Record
	until  time.Time // when the time zone's offset changes
}

// newFileSet returns a set that keeps up to n answers, and no more than there can be.
func newFileSet(files []*file, n int) *fileSet {
	networks := 1
	for _, f := range files {
		networks += int(f.reader.Metadata.NodeCount)
	}
	n = min(n, networks)
	return &fileSet{
		files: files, seed: maphash.MakeSeed(), rendered: make([]atomic.Pointer[rendering], n),
	}
}

// find returns the answer with a key that is valid at now, or nil. Else it returns where to keep
// one. A key has two slots: with one, two keys that are looked up in turn would replace each other.
func (s *fileSet) find(key []byte, now time.Time) (*geo.Record, *atomic.Pointer[rendering]) {
	hash, n := maphash.Bytes(s.seed, key), uint64(len(s.rendered))
	first, _ := bits.Mul64(hash, n)
	slot := &s.rendered[first]
	held := slot.Load()
	if held.has(key, now) {
		return held.record, nil
	}
	other := &s.rendered[hash%n]
	if r := other.Load(); r.has(key, now) {
		return r.record, nil
	} else if r == nil && held != nil {
		slot = other
	}
	return nil, slot
}

// has reports whether r, which may be nil, is the answer with a key at now.
func (r *rendering) has(key []byte, now time.Time) bool {
	return r != nil && r.key == string(key) && now.Before(r.until)
}

// search appends where the files have their records of addr, one place a file, to dst. It returns
// them with the length of the prefix for which all of the files have these.
func (s *fileSet) search(addr netip.Addr, dst []place) (places []place, narrowest int) {
	for _, f := range s.files {
		p := f.find(addr)
		dst, narrowest = append(dst, p), max(narrowest, p.bits)
	}
	return dst, narrowest
}

// fewFiles is the number of files that are searched without an allocation.
const fewFiles = 4

// Find implements geo.Local. Addresses of which the files have the same records share an answer,
// which is rendered once.
func (p *Provider) Find(addr netip.Addr, now time.Time) geo.Outcome {
	var found [fewFiles]place
	var offsets [8 * fewFiles]byte
	s := p.files.Load()
	places, narrowest := s.search(addr, found[:0])
	key := offsets[:0]
	for i := range places {
		key = binary.NativeEndian.AppendUint64(key, places[i].offset)
	}
	record, slot := s.find(key, now)
	if record != nil {
		return record.For(addr, narrowest)
	}
	all, err := p.merge(places)
	if err == errDamaged {
		return geo.Outcome{Err: err}
	}
	record = p.render(&all, err, now)
	slot.Store(&rendering{string(key), record, p.zones.nextChange(all.place.timezone, now)})
	return record.For(addr, narrowest)
}

// render returns the answer of a record, or of the error that there is none.
func (p *Provider) render(all *record, err *geo.Error, now time.Time) *geo.Record {
	if err != nil {
		return geo.NewRecord(geo.Answer{Err: err}, geo.SourceMMDB, geo.NotFoundTTL)
	}
	return geo.NewRecord(geo.Answer{Result: all.result(&p.zones, now)}, geo.SourceMMDB, p.ttl)
}

// read looks up an address, and returns an answer of its own.
func (p *Provider) read(addr netip.Addr, now time.Time) geo.Answer {
	places, narrowest := p.files.Load().search(addr, nil)
	prefix, _ := addr.Prefix(narrowest)
	return p.result(places, addr, prefix, now)
}

// result returns the answer of records for an address and the prefix that has them.
func (p *Provider) result(places []place, addr netip.Addr, prefix netip.Prefix,
	now time.Time) geo.Answer {
	all, err := p.merge(places)
	if err != nil {
		return geo.Answer{Err: err}
	}
	r := all.result(&p.zones, now)
	r.IP, r.Data.Prefix = addr, prefix
	return geo.Answer{Result: r}
}

// merge merges the records of all files. It ignores a damaged record, but if no other file has one,
// the error is errDamaged.
func (p *Provider) merge(places []place) (all record, err *geo.Error) {
	err = errNoLocation
	found := false
	for i := range places {
		at := &places[i]
		if at.offset == noRecord || at.offset == notCovered {
			if at.offset == noRecord && at.file.shape.saysNo {
				all.network.merge(&at.file.shape.absent)
			}
			continue
		}
		var r record
		if at.read(&r) != nil {
			at.file.report(p.logger)
			if !found {
				err = errDamaged
			}
			continue
		}
		found, err = true, nil
		all.merge(&r)
		all.date(at.file.reader.Metadata.BuildTime())
	}
	return all, err
}
