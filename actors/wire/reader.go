// Package wire reads the messages that nodes send each other: varints and bytes.
package wire

import (
	"encoding/binary"
	"time"
)

// Reader takes values off the beginning of Rest. Bad says that one was missing or malformed; all
// that follow are zero then. It has one owner.
type Reader struct {
	Rest []byte
	Bad  bool
}

func (r *Reader) fail() { r.Rest, r.Bad = nil, true }

// Uint returns an unsigned varint.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Int returns a signed varint.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// UpTo returns an unsigned varint from 0 to most. A greater one is malformed.
func (r *Reader) UpTo(most int) int {
	v := r.Uint()
	if v > uint64(most) {
		r.fail()
		return 0
	}
	return int(v)
}

// Count returns the number of elements that follow, each of which takes at least size bytes.
func (r *Reader) Count(size int) int {
	v := r.Uint()
	if v > uint64(len(r.Rest)/size) {
		r.fail()
		return 0
	}
	return int(v)
}

// Duration returns a duration that AppendDuration has written, an hour at most.
func (r *Reader) Duration() time.Duration {
	return time.Duration(min(r.Uint(), uint64(time.Hour/time.Microsecond))) * time.Microsecond
}

// AppendDuration appends d in microseconds; a negative one is 0.
func AppendDuration(dst []byte, d time.Duration) []byte {
	return binary.AppendUvarint(dst, uint64(max(0, d.Microseconds())))
}

// Byte returns one byte.
func (r *Reader) Byte() byte {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Bool returns a byte that is 0 or 1.
func (r *Reader) Bool() bool {
	v := r.Byte()
	if v > 1 {
		r.fail()
	}
	return v == 1
}

// Bytes returns the next n bytes, which are part of Rest.
func (r *Reader) Bytes(n int) []byte {
	if n > len(r.Rest) {
		r.fail()
		return nil
	}
	v := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return v
}

// Field returns the bytes that follow their length.
func (r *Reader) Field() []byte { return r.Bytes(r.Count(1)) }

// All returns all that is left; nil = nothing.
func (r *Reader) All() []byte {
	if len(r.Rest) == 0 {
		return nil
	}
	return r.Bytes(len(r.Rest))
}
