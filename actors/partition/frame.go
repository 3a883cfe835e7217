package partition

import (
	"encoding/binary"
	"errors"
	"math"

	"gatehouse/actors/wire"
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
	case Ask, AskNode:
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
	r := reader{wire.Reader{Rest: b}}
	version := r.Uint()
	if r.Bad {
		return Frame{}, ErrFrame
	}
	if version < 1 || version > Version {
		return Frame{}, ErrVersion
	}
	f := Frame{Version: int(version)}
	f.From, f.To = r.text(), r.text()
	f.Number, f.Reply = r.Int(), r.Int()
	n := 0
	for count := r; !count.Bad && len(count.Rest) > 0 && n < MaxMessages; n++ {
		_, _ = count.Byte(), count.Field()
	}
	if n > 0 {
		f.Messages = make([]Message, 0, n)
	}
	for !r.Bad && len(r.Rest) > 0 {
		kind := Kind(r.Byte())
		body := reader{wire.Reader{Rest: r.Field()}}
		m := body.message(kind)
		r.Bad = r.Bad || body.Bad || len(f.Messages) == MaxMessages
		f.Messages = append(f.Messages, m)
	}
	if r.Bad {
		return Frame{}, ErrFrame
	}
	return f, nil
}

// reader reads a frame.
type reader struct{ wire.Reader }

func (r *reader) message(kind Kind) Message {
	m := Message{Kind: kind, Number: r.Int()}
	switch kind {
	case Hello, Welcome, Changed, Seen, Unsupported:
	case Move:
		m.Rows = r.rows()
		for n := r.Count(1); n > 0; n-- {
			m.Claimed = append(m.Claimed, r.Int())
		}
		m.Piece = r.index()
		m.More = r.Bool()
		m.Counts = r.All()
		if len(m.Claimed) != len(m.Rows) {
			r.Bad = true
		}
	case Moved:
		m.Refused = r.Bool()
	case Taken:
		m.Rows = r.rows()
	case Ask, AskNode:
		m.Service = r.Byte()
		m.Partition = r.index()
		m.Epoch = r.Int()
		m.Body = r.All()
	case Answer:
		m.Status = Status(r.Byte())
		m.Epoch = r.Int()
		m.Body = r.All()
	case Cast:
		m.Service = r.Byte()
		m.Body = r.All()
	default:
		m.Body = r.All()
	}
	if len(r.Rest) > 0 {
		r.Bad = true
	}
	return m
}

// index returns a number from 0 to 2³¹-1.
func (r *reader) index() int { return r.UpTo(math.MaxInt32) }

func (r *reader) text() string { return string(r.Field()) }

func (r *reader) rows() []Row {
	var rows []Row
	for n := r.Count(3); n > 0 && !r.Bad; n-- {
		rows = append(rows, Row{Name: r.text(), Holder: r.text(), Epoch: r.Int()})
	}
	return rows
}
