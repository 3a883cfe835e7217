package mmdb

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"

	"gatehouse/actors/geo"
)

// values are the values of a record that its layout wants. They are reused: see layout.pool.
type values struct {
	layout *layout
	known  [slots]value // as far as there has them
	there  slotSet      // maybe empty
	full   slotSet      // not empty
	mapped []value      // what the mapping takes
	shape  *shape       // of the file
	memo   *memo        // of the file; nil = none

	notes      []kept // what was kept while takesNotes
	takesNotes bool
	origins    *[members]*node // where the members come from; nil = nobody wants to know
}

// slotSet is a set of slots.
type slotSet [2]uint64

func (s *slotSet) add(x slot) { s[x>>6] |= 1 << (x & 63) }

func (s *slotSet) has(x slot) bool { return s[x>>6]>>(x&63)&1 != 0 }

// meets reports whether two sets have a slot in common.
func (s *slotSet) meets(other *slotSet) bool { return s[0]&other[0]|s[1]&other[1] != 0 }

// slotsFrom returns the slots from a to b, and some more.
func slotsFrom(a, b slot, more ...slot) (s slotSet) {
	for ; a <= b; a++ {
		s.add(a)
	}
	for _, x := range more {
		s.add(x)
	}
	return s
}

// reset empties the values. It leaves those that there and full say nothing of.
func (v *values) reset() {
	v.there, v.full, v.origins = slotSet{}, slotSet{}, nil
	clear(v.mapped)
}

// value is a value of a record that is neither an object nor an array. Its node is an index: a pointer
// would cost a write barrier for each value that is kept.
type value struct {
	at     uint16 // index in layout.nodes; 0 = the record lacks it
	rank   uint8  // of the node
	kind   kind
	text   string
	number float64 // of a flag 1 or 0
}

type kind uint8

const (
	isText kind = iota
	isNumber
	isFlag
)

// UnmarshalMaxMindDBCursor reads a record without reflection. A value of an unexpected kind counts
// as missing.
func (v *values) UnmarshalMaxMindDBCursor(c mmdbdata.Cursor) (mmdbdata.Cursor, error) {
	return v.read(c, v.layout.root)
}

// read reads what is wanted at a node. Its depth is that of the node.
func (v *values) read(c mmdbdata.Cursor, n *node) (next mmdbdata.Cursor, err error) {
	if n.isShared && v.memo != nil {
		return v.recall(c, n)
	}
	if n.slot == noSlot && n.mapped == nil && n.elements == nil {
		next, err = v.readMap(c, n) // most often
		if err == nil || !isOtherKind(err) {
			return next, err
		}
	}
	if n.isText && n.keys == nil && n.mapped == nil {
		text, next, err := c.ReadString() // most often
		if err == nil {
			v.keep(n.slot, &value{at: n.id, rank: n.rank, text: text})
			return next, nil
		}
		if !isOtherKind(err) {
			return next, err
		}
	}
	kind, err := c.Kind()
	if err != nil {
		return c, err
	}
	switch {
	case kind == mmdbdata.KindMap && n.keys != nil:
		return v.readMap(c, n)
	case kind == mmdbdata.KindSlice && n.elements != nil:
		return v.readSlice(c, n)
	case n.slot == noSlot && n.mapped == nil:
		return c.Skip()
	}
	got := value{at: n.id, rank: n.rank}
	switch kind {
	case mmdbdata.KindString:
		got.text, next, err = c.ReadString()
	case mmdbdata.KindBool:
		var b bool
		if b, next, err = c.ReadBool(); b {
			got.number = 1
		}
		got.kind = isFlag
	case mmdbdata.KindFloat64, mmdbdata.KindFloat32:
		got.number, next, err = c.ReadFloat()
		got.kind = isNumber
	case mmdbdata.KindUint16, mmdbdata.KindUint32, mmdbdata.KindUint64, mmdbdata.KindInt32:
		var u uint64
		var signed bool
		u, signed, next, err = c.ReadInteger()
		got.number, got.kind = float64(u), isNumber
		if signed {
			got.number = float64(int64(u))
		}
	default:
		return c.Skip()
	}
	if err != nil {
		return next, err
	}
	v.keep(n.slot, &got)
	for _, i := range n.mapped {
		v.mapped[i] = got
	}
	return next, nil
}

// keep keeps a value in a slot, unless there is a better one.
func (v *values) keep(s slot, got *value) {
	if v.takesNotes {
		v.notes = append(v.notes, kept{s, *got})
	}
	empty := got.isEmpty()
	if s != noSlot && (!v.there.has(s) ||
		!empty && (!v.full.has(s) || got.rank < v.known[s].rank)) {
		v.known[s] = *got
		v.there.add(s)
		if !empty {
			v.full.add(s)
		}
	}
}

// isOtherKind reports whether err says that a value is of another kind than expected.
func isOtherKind(err error) bool {
	var other mmdbdata.UnexpectedKindError
	return errors.As(err, &other)
}

func (v *values) readMap(c mmdbdata.Cursor, n *node) (mmdbdata.Cursor, error) {
	m, err := c.MapReader()
	if err != nil {
		return c, err
	}
	at := m.First()
	for range m.Len() {
		key, value, err := at.ReadMapKey()
		if err != nil {
			return at, err
		}
		if wanted := n.wants(key); wanted != nil {
			at, err = v.read(value, wanted)
		} else {
			at, err = value.Skip()
		}
		if err != nil {
			return at, err
		}
	}
	return m.End(at)
}

func (v *values) readSlice(c mmdbdata.Cursor, n *node) (mmdbdata.Cursor, error) {
	s, err := c.Slice()
	if err != nil {
		return c, err
	}
	var next mmdbdata.Cursor
	for {
		i, element, more := s.Next(next)
		switch {
		case !more:
			return s.End()
		case i < uint(len(n.elements)) && n.elements[i] != nil:
			next, err = v.read(element, n.elements[i])
		default:
			next, err = element.Skip()
		}
		if err != nil {
			return next, err
		}
	}
}

// isEmpty reports whether a value is unknown: it is missing, or an empty text or "-".
func (x *value) isEmpty() bool {
	return x.at == 0 || x.kind == isText && (x.text == "" || x.text == "-")
}

// string returns the value as a text; "" = unknown.
func (x *value) string() string {
	switch {
	case x.isEmpty() || x.kind == isFlag:
		return ""
	case x.kind == isNumber:
		return strconv.FormatFloat(x.number, 'f', -1, 64)
	}
	return x.text
}

// float returns the value as a number, which a text may be too.
func (x *value) float() (f float64, ok bool) {
	if x.isEmpty() || x.kind == isFlag {
		return 0, false
	}
	f = x.number
	if x.kind == isText {
		var err error
		if f, err = strconv.ParseFloat(strings.TrimSpace(x.text), 64); err != nil {
			return 0, false
		}
	}
	return f, !math.IsNaN(f) && !math.IsInf(f, 0)
}

// uint returns the value as a whole number up to limit; 0 = unknown.
func (x *value) uint(limit float64) uint32 {
	if f, ok := x.float(); ok && f >= 0 && f <= limit {
		return uint32(f)
	}
	return 0
}

// system returns the value as the number of an autonomous system: 15169, "15169", "AS15169" or
// "AS15169 Google LLC"; 0 = unknown.
func (x *value) system() uint32 {
	if x.kind != isText {
		return x.uint(math.MaxUint32)
	}
	text, _, _ := strings.Cut(strings.TrimSpace(x.text), " ")
	if len(text) > 2 && strings.EqualFold(text[:2], "AS") {
		text = text[2:]
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// truth returns the value as a flag. An empty text has the meaning of empty.
func (x *value) truth(empty geo.Truth) geo.Truth {
	if x.at == 0 {
		return geo.Unknown
	}
	text := x.text
	switch {
	case x.kind != isText && x.number != 0:
		return geo.Yes
	case x.kind != isText:
		return geo.No
	case text == "":
		return empty
	case text == "1" || strings.EqualFold(text, "true") || strings.EqualFold(text, "yes"):
		return geo.Yes
	case text == "0" || strings.EqualFold(text, "false") || strings.EqualFold(text, "no"):
		return geo.No
	}
	return geo.Unknown
}
