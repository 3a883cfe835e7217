package endpoint

import (
	"errors"
	"io"

	"github.com/valyala/fasthttp"
)

// Stream is a response body that is written while it becomes known. fasthttp writes it in chunks
// after the handler has returned, on the connection's goroutine. The request stays valid meanwhile.
type Stream struct {
	// Ended is called once, when size bytes of the body are written or the connection has failed.
	Ended func(size int)
	// Closed is called once, after Ended, also if nothing could be written. Optional.
	Closed func()
	// Panicked is called with what the writer panicked with, before Ended.
	Panicked func(value any)

	write      func(*Stream) error
	compressor *compressor // nil = the body is not compressed
	out        io.Writer
	size       int
}

// SetStream makes write write the body of the response. After an error of a method, write must
// return it. If compressed is true, the body is compressed as the request likes.
func SetStream(ctx *fasthttp.RequestCtx, compressed bool, write func(*Stream) error) {
	s := &Stream{write: write}
	if coding := AcceptedCoding(&ctx.Request.Header); compressed && coding != "" {
		if s.compressor = newCompressor(coding, sent{s}); s.compressor != nil {
			setCoding(&ctx.Response.Header, coding)
		}
	}
	ctx.Response.SetBodyStream(s, -1)
}

// StreamOf returns the Stream of the response, or nil.
func StreamOf(ctx *fasthttp.RequestCtx) *Stream {
	s, _ := ctx.Response.BodyStream().(*Stream)
	return s
}

// Write writes p. It may be sent later.
func (s *Stream) Write(p []byte) (int, error) {
	if s.compressor != nil {
		return s.compressor.Write(p)
	}
	return sent{s}.Write(p)
}

// Flush sends what was written.
func (s *Stream) Flush() error {
	if s.compressor != nil {
		return s.compressor.Flush()
	}
	return nil
}

// sent is what a Stream sends.
type sent struct{ *Stream }

// Write sends p at once.
func (s sent) Write(p []byte) (int, error) {
	n, err := s.out.Write(p)
	s.size += n
	return n, err
}

var errStreamPanic = errors.New("the writer of a response panicked")

// SupportsBodyWriteTo makes fasthttp call WriteTo.
func (s *Stream) SupportsBodyWriteTo() bool { return true }

// WriteTo writes the body.
func (s *Stream) WriteTo(w io.Writer) (n int64, err error) {
	defer func() {
		if value := recover(); value != nil {
			s.Panicked(value)
			n, err = int64(s.size), errStreamPanic
		}
	}()
	s.out = w
	err = s.write(s)
	if err == nil && s.compressor != nil {
		err = s.compressor.finish()
	}
	return int64(s.size), err
}

// Read fails: a Stream can only be written.
func (s *Stream) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close ends the response.
func (s *Stream) Close() error {
	if s.compressor != nil {
		s.compressor.free()
		s.compressor = nil
	}
	if s.Ended != nil {
		s.Ended(s.size)
		s.Ended = nil
	}
	if s.Closed != nil {
		s.Closed()
		s.Closed = nil
	}
	return nil
}
