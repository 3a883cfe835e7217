package geo

import (
	"bytes"
	"strings"
)

// Fields is a set of members of a result. The zero value is the set of none.
type Fields uint64

// fieldNames are the members that can be named: those of the objects by their own names, and the
// objects, which stand for all of their members. Their order is that of the bits in Fields.
var fieldNames = [...]string{
	"ip", "ipVersion",
	"continent", "country", "countryCode", "regionName", "city", "zip", "lat", "lon", "timezone",
	"utcOffsetSeconds", "currency",
	"isp", "org", "as", "asname", "reverse",
	"mobile", "proxy", "hosting",
	"prefix", "accuracyRadiusKm", "asn", "source", "asOf",
	"regionCode", "continentCode", "connectionType", "asDomain", "geonameId", "confidence",
	"isEU", "isVPN", "isTor", "isProxy", "isHosting",
}

// fieldsOf holds the fields that each name stands for.
var fieldsOf = func() map[string]Fields {
	all := map[string]Fields{}
	for i, name := range fieldNames {
		all[name] = 1 << i
	}
	for _, object := range []struct{ name, first, last string }{
		{"location", "continent", "currency"}, {"network", "isp", "reverse"},
		{"flags", "mobile", "hosting"}, {"data", "prefix", "isHosting"},
	} {
		all[object.name] = all[object.last]<<1 - all[object.first]
	}
	return all
}()

// ParseFields parses names that are separated by commas; ok is false for an unknown name and for
// none. The members "ok" and "query" are part of every result and have no name.
func ParseFields(text string) (f Fields, ok bool) {
	for name := range strings.SplitSeq(text, ",") {
		named, ok := fieldsOf[name]
		if !ok {
			return 0, false
		}
		f |= named
	}
	return f, true
}

// HasData reports whether f has members of "data".
func (f Fields) HasData() bool { return f&fieldsOf["data"] != 0 }

// Select removes the members that f does not have from the JSON of a result, as Outcome.AppendJSON
// and Outcome.AppendDetails write it. An object without members is removed too. It uses the memory
// of result.
func (f Fields) Select(result []byte) []byte {
	s := selection{fields: f, from: result, to: result[:0]}
	s.object()
	return s.to
}

// selection copies the members of an object that has no space between its tokens. The copy is never
// longer than what was read, so both share memory.
type selection struct {
	fields Fields
	from   []byte
	read   int
	to     []byte
}

// object copies the object at read, and reports whether the copy has members.
func (s *selection) object() (has bool) {
	s.to = append(s.to, '{')
	s.read++
	for s.from[s.read] != '}' {
		before := len(s.to)
		if has {
			s.to = append(s.to, ',')
		}
		if s.member() {
			has = true
		} else {
			s.to = s.to[:before]
		}
		if s.from[s.read] == ',' {
			s.read++
		}
	}
	s.read++
	s.to = append(s.to, '}')
	return has
}

// member copies the member at read, up to the comma or brace after it, and reports whether it is
// selected.
func (s *selection) member() bool {
	begin := s.read
	s.text()
	name := s.from[begin+1 : s.read-1]
	s.read++ // the colon
	value := s.read
	wanted := s.fields&fieldsOf[string(name)] != 0 ||
		string(name) == "ok" || string(name) == "query"
	if s.from[value] == '{' {
		s.to = append(s.to, s.from[begin:value]...)
		return s.object()
	}
	if s.from[value] == '"' {
		s.text()
	} else {
		for c := s.from[s.read]; c != ',' && c != '}'; c = s.from[s.read] {
			s.read++
		}
	}
	if wanted {
		s.to = append(s.to, s.from[begin:s.read]...)
	}
	return wanted
}

// text skips the string at read.
func (s *selection) text() {
	for escaped := true; escaped; {
		s.read += 1 + bytes.IndexByte(s.from[s.read+1:], '"')
		escaped = false
		for i := s.read - 1; s.from[i] == '\\'; i-- {
			escaped = !escaped
		}
	}
	s.read++
}
