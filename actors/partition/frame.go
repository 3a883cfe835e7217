package partition

import (
	"encoding/binary"
	"errors"
)

// MaxMessages is the most messages that a frame may have.
const MaxMessages = 1 << 14

// Why ParseFrame refuses bytes.
var (
	ErrVersion = errors.New("frame has an unknown version")
	ErrFrame   = errors.New("frame is malformed")
)

// AppendFrame appends the encoding of f to dst: varints, and bytes after their length. Each message
// is its kind, its length and its fields. Of an unknown kind Number and Body are sent.
func AppendFrame(dst []byte, f *Frame) []byte {
	dst = binary.AppendUvarint(dst, uint64(f.Version))
	dst = appendString(dst, f.From)
	dst = appendString(dst, f.To)
	dst = binary.AppendVarint(dst, f.Number)
	dst = binary.AppendVarint(dst, f.Reply)
	var body []byte
	for i := range f.Messages {
		m := &f.Messages[i]
		body = appendMessage(body[:0], m)
		dst = append(dst, byte(m.Kind))
		dst = binary.AppendUvarint(dst, uint64(len(body)))
		dst = append(dst, body...)
	}
	return dst
}

func appendMessage(dst []byte, m *Message) []byte {
	dst = binary.AppendVarint(dst, m.Number)
	switch m.Kind {
	case Hello, Welcome, Changed, Seen, Unsupported:
	case Move:
		dst = appendRows(dst, m.Rows)
		dst = binary.AppendUvarint(dst, uint64(len(m.Claimed)))
		for _, c := range m.Claimed {
			dst = binary.AppendVarint(dst, c)
		}
		dst = binary.AppendUvarint(dst, uint64(m.Piece))
		dst = appendBool(dst, m.More)
		dst = append(dst, m.Counts...)
	case Moved:
		dst = appendBool(dst, m.Refused)
	case Taken:
		dst = appendRows(dst, m.Rows)
	case Ask:
		dst = append(dst, m.Service)
		dst = binary.AppendUvarint(dst, uint64(m.Partition))
		dst = binary.AppendVarint(dst, m.Epoch)
		dst = append(dst, m.Body...)
	case Answer:
		dst = append(dst, byte(m.Status))
		dst = binary.AppendVarint(dst, m.Epoch)
		dst = append(dst, m.Body...)
	case Cast:
		dst = append(dst, m.Service)
		dst = append(dst, m.Body...)
	default:
		dst = append(dst, m.Body...)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendRows(dst []byte, rows []Row) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(rows)))
	for _, r := range rows {
		dst = appendString(dst, r.Name)
		dst = appendString(dst, r.Holder)
		dst = binary.AppendVarint(dst, r.Epoch)
	}
	return dst
}

// ParseFrame returns the frame that AppendFrame has encoded, or ErrVersion or ErrFrame. It
// allocates in proportion to len(b). Counts and Body of its messages are parts of b.
func ParseFrame(b []byte) (Frame, error) {
	r := reader{b: b}
	version := r.uint()
	if r.bad {
		return Frame{}, ErrFrame
	}
	if version < 1 || version > Version {
		return Frame{}, ErrVersion
	}
	f := Frame{Version: int(version)}
	f.From, f.To = r.string(), r.string()
	f.Number, f.Reply = r.int(), r.int()
	n := 0
	for count := r; !count.bad && len(count.b) > 0 && n < MaxMessages; n++ {
		_, _ = count.byte(), count.bytes()
	}
	if n > 0 {
		f.Messages = make([]Message, 0, n)
	}
	for !r.bad && len(r.b) > 0 {
		kind := Kind(r.byte())
		body := reader{b: r.bytes()}
		m := body.message(kind)
		r.bad = r.bad || body.bad || len(f.Messages) == MaxMessages
		f.Messages = append(f.Messages, m)
	}
	if r.bad {
		return Frame{}, ErrFrame
	}
	return f, nil
}

// reader takes values off the beginning of b. bad says that one was malformed; all that follow are
// zero then.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) message(kind Kind) Message {
	m := Message{Kind: kind, Number: r.int()}
	switch kind {
	case Hello, Welcome, Changed, Seen, Unsupported:
	case Move:
		m.Rows = r.rows()
		for n := r.count(1); n > 0; n-- {
			m.Claimed = append(m.Claimed, r.int())
		}
		m.Piece = r.index()
		m.More = r.bool()
		m.Counts = r.rest()
		if len(m.Claimed) != len(m.Rows) {
			r.bad = true
		}
	case Moved:
		m.Refused = r.bool()
	case Taken:
		m.Rows = r.rows()
	case Ask:
		m.Service = r.byte()
		m.Partition = r.index()
		m.Epoch = r.int()
		m.Body = r.rest()
	case Answer:
		m.Status = Status(r.byte())
		m.Epoch = r.int()
		m.Body = r.rest()
	case Cast:
		m.Service = r.byte()
		m.Body = r.rest()
	default:
		m.Body = r.rest()
	}
	if len(r.b) > 0 {
		r.bad = true
	}
	return m
}

func (r *reader) fail() {
	r.b, r.bad = nil, true
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// index returns a number from 0 to 2³¹-1.
func (r *reader) index() int {
	v := r.uint()
	if v > 1<<31-1 {
		r.fail()
		return 0
	}
	return int(v)
}

// count returns the number of elements that follow, each of which takes at least size bytes.
func (r *reader) count(size int) int {
	v := r.uint()
	if v > uint64(len(r.b)/size) {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) bool() bool {
	v := r.byte()
	if v > 1 {
		r.fail()
	}
	return v == 1
}

func (r *reader) bytes() []byte {
	n := r.count(1)
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) string() string { return string(r.bytes()) }

// rest returns all that is left; nil = nothing.
func (r *reader) rest() []byte {
	if len(r.b) == 0 {
		return nil
	}
	v := r.b
	r.b = nil
	return v[:len(v):len(v)]
}

func (r *reader) rows() []Row {
	var rows []Row
	for n := r.count(3); n > 0 && !r.bad; n-- {
		rows = append(rows, Row{Name: r.string(), Holder: r.string(), Epoch: r.int()})
	}
	return rows
}
