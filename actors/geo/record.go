package geo

import (
	"net/netip"
	"time"
)

// Local is a Provider that answers addresses from memory, without waiting.
type Local interface {
	Provider
	// Find looks up an address as Single does, at now.
	Find(addr netip.Addr, now time.Time) Outcome
	// Names returns the names of an address's country, region and city in a language such as pt-BR;
	// "" = the source has none. The other members are not set.
	Names(addr netip.Addr, language string) Location
}

// Record is an answer of a Local provider that holds for many addresses: rendered once, without the
// query, the address and the prefix. It never changes.
type Record struct {
	tail   string // JSON of a result after the value of "ipVersion"
	data   string // JSON of the member "data" after the value of "prefix"
	err    *Error
	source Source
	ttl    time.Duration
}

// NewRecord renders an answer of source that may be kept for ttl. It ignores the address and the
// prefix of a.
func NewRecord(a Answer, source Source, ttl time.Duration) *Record {
	r := &Record{err: a.Err, source: source, ttl: ttl}
	if a.Err == nil {
		var buf [1 << 10]byte // of most answers: growing one costs as much as the rest
		r.tail = string(a.Result.appendTail(buf[:0]))
		r.data = string(a.Result.Data.appendTail(buf[:0], source))
	}
	return r
}

// For returns the outcome for addr, of which the first bits are those of the prefix that the answer
// holds for.
func (r *Record) For(addr netip.Addr, bits int) Outcome {
	return Outcome{Err: r.err, record: r, addr: addr, bits: bits}
}

// append appends the JSON of the result for addr, with text as the value of "query".
func (r *Record) append(dst []byte, text string, addr netip.Addr) []byte {
	dst = AppendQuoted(append(dst, bodyHead...), text)
	return append(appendIP(dst, addr), r.tail...)
}

// appendData appends the member "data" of the result.
func (r *Record) appendData(dst []byte, addr netip.Addr, bits int) []byte {
	prefix, _ := addr.Prefix(bits)
	dst = append(dst, dataHead...)
	return append(appendPrefix(dst, prefix), r.data...)
}
