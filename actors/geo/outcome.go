package geo

import (
	"encoding/json"
	"net/netip"
	"time"
)

// Outcome is the outcome of a lookup.
type Outcome struct {
	Entry  *Entry // the answer that is cached; nil if there is none, or a Local provider has it
	Err    *Error // why there is no result: the answer itself, or a failure that is not cached
	Cached bool   // the answer was in the cache at the time of the request

	// The answer of a Local provider: a record and what it lacks.
	record *Record
	addr   netip.Addr
	bits   int // of the prefix
}

// HasAnswer reports whether a provider has answered: with a result, or with Err.
func (o *Outcome) HasAnswer() bool { return o.Entry != nil || o.record != nil }

// Source returns where the answer comes from.
func (o *Outcome) Source() Source {
	if o.record != nil {
		return o.record.source
	}
	return o.Entry.Source()
}

// TTL returns how long the answer may be kept, from the time of Age 0.
func (o *Outcome) TTL() time.Duration {
	if o.record != nil {
		return o.record.ttl
	}
	return o.Entry.TTL()
}

// Age returns the whole seconds since the answer was fetched, for the header Age (RFC 9111 section
// 5.1).
func (o *Outcome) Age(now time.Time) int {
	if o.record != nil {
		return 0
	}
	return o.Entry.Age(now)
}

// Ready returns the JSON of the result if it is kept for the query as written in text, else nil. It
// must not be changed.
func (o *Outcome) Ready(text string) []byte {
	if o.Entry != nil && o.Entry.IsFor(text) {
		return o.Entry.Body
	}
	return nil
}

// AppendJSON appends the JSON of the result, with text as the value of "query".
func (o *Outcome) AppendJSON(dst []byte, text string) []byte {
	if o.record != nil {
		return o.record.append(dst, text, o.addr)
	}
	return o.Entry.AppendFor(dst, text)
}

// AppendDetails is AppendJSON with the member "data" after "flags".
func (o *Outcome) AppendDetails(dst []byte, text string) []byte {
	dst = o.AppendJSON(dst, text)
	dst = append(dst[:len(dst)-1], `,"data":`...)
	switch {
	case o.record != nil:
		dst = o.record.appendData(dst, o.addr, o.bits)
	case o.Entry.data != nil:
		dst = append(dst, *o.Entry.data...)
	default:
		dst = append(dst, unknownData[o.Entry.source]...)
	}
	return append(dst, '}')
}

// unknownData holds the member "data" of results of which only the source is known.
var unknownData = func() (all [len(sources)]string) {
	for i, source := range sources {
		all[i] = string((&Data{}).appendJSON(nil, source))
	}
	return all
}()

// Place returns the city and country of the answer, as far as they are known; "" = neither is. o must
// have an answer.
func (o *Outcome) Place() string {
	var r struct{ Location Location }
	if err := json.Unmarshal(o.AppendJSON(nil, ""), &r); err != nil {
		return ""
	}
	return r.Location.Place()
}
