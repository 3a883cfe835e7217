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
	// Panicked is called with what the writer panicked with, before Ended.
	Panicked func(value any)

	write func(w io.Writer) error
	out   io.Writer
	size  int
}

// SetStream makes write write the body of the response. Each call of the Writer is sent at once.
// After an error of the Writer, write must return it.
func SetStream(ctx *fasthttp.RequestCtx, write func(w io.Writer) error) {
	ctx.Response.SetBodyStream(&Stream{write: write}, -1)
}

// StreamOf returns the Stream of the response, or nil.
func StreamOf(ctx *fasthttp.RequestCtx) *Stream {
	s, _ := ctx.Response.BodyStream().(*Stream)
	return s
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
	return int64(s.size), err
}

// Write sends p.
func (s *Stream) Write(p []byte) (int, error) {
	n, err := s.out.Write(p)
	s.size += n
	return n, err
}

// Read fails: a Stream can only be written.
func (s *Stream) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close ends the response.
func (s *Stream) Close() error {
	if s.Ended != nil {
		s.Ended(s.size)
		s.Ended = nil
	}
	return nil
}
