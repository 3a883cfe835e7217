package geo

import (
	"bytes"
	"errors"
	"slices"
	"time"
)

// Copy is what another process needs to cache an Entry. It has an age in place of a time, since
// clocks differ.
type Copy struct {
	Age    time.Duration // since the answer was fetched
	TTL    time.Duration // from then on, in whole seconds
	Source Source
	Reason Reason // of the upstream's error about the query; "" with a result
	JSON   string // the result, as Result.AppendJSON writes it; "" with an error
	// Data is the JSON of the result's member "data". It is "" if only the source is known.
	Data string `json:",omitempty"`
}

// Copy returns the entry as it is at now.
func (e *Entry) Copy(now time.Time) Copy {
	c := Copy{
		Age: max(0, time.Duration(now.UnixNano()-e.fetched)), TTL: e.TTL(), Source: e.Source(),
	}
	if e.Err != nil {
		c.Reason = e.Err.Reason
	} else {
		c.JSON = string(e.Body[e.tail:])
		if e.data != nil {
			c.Data = *e.data
		}
	}
	return c
}

// errCopy is the error of a Copy that no Entry makes.
var errCopy = errors.New("not a copy of a cached answer")

// EntryOf returns the entry for q that c was made of before now.
func EntryOf(q Query, c Copy, now time.Time) (*Entry, error) {
	source := slices.Index(sources[:], c.Source)
	valid := source >= 0 && c.Age >= 0 && c.TTL >= 0 && c.TTL <= MaxTTL &&
		(c.Reason == "") != (c.JSON == "")
	if !valid {
		return nil, errCopy
	}
	e := &Entry{
		fetched: now.Add(-c.Age).UnixNano(), ttl: uint16(c.TTL / time.Second), source: uint8(source),
	}
	if c.Reason != "" {
		e.Err = &Error{Code: CodeInvalidQuery, Reason: c.Reason}
		return e, nil
	}
	body := AppendQuoted([]byte(bodyHead), q.String())
	e.tail = uint16(len(body))
	e.Body = bytes.Clone(append(body, c.JSON...))
	if c.Data != "" {
		e.data = &c.Data
	}
	return e, nil
}
