package httpedge

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"gatehouse/httpedge/endpoint"
)

// Bounds of an arrival, in bytes.
const (
	arrivalRoom  = 2 << 10 // of a new one
	arrivalStep  = 4 << 10 // most that is added at once, or a quarter of what there is
	maxChunkLine = 256     // size and extensions of a chunk
)

// maxArrival returns the most bytes of one request, with what chunks add.
func maxArrival(bodyLimit int) int { return maxHeaderBytes + 2*bodyLimit }

// arrival is a connection that hands on a request when all of it has arrived. fasthttp holds 16 KiB
// and the announced body while it waits for a request. An arrival holds what was sent, and at most
// arrivalStep or a quarter more. It needs Server.ReduceMemoryUsage.
//
// The bodies of streams take room until their response has ended.
//
// It only delays bytes: fasthttp parses the request itself, and has the last word on its length. A
// request that is refused in any case is handed on at once, and then an error, so that fasthttp
// does not wait for the rest.
type arrival struct {
	net.Conn
	buf      []byte       // what arrived; buf[from:to] is to be handed on
	from, to int          // equal while a request arrives
	err      error        // comes after buf[from:to]
	partial  atomic.Bool  // Close must not end a request that is arriving
	request  arriving     // that begins at buf[0]
	room     *streamRoom  // for bodies of streams; nil = there are none
	held     atomic.Int64 // bytes of room

	body *endpoint.Body // of the response to the last request; nil = none
}

func newArrival(conn net.Conn, room *streamRoom) net.Conn {
	a := &arrival{Conn: conn, room: room}
	if _, ok := conn.(*tls.Conn); ok {
		return &tlsArrival{a}
	}
	return a
}

// tlsArrival is an arrival over TLS. Its methods tell fasthttp so.
type tlsArrival struct{ *arrival }

// Handshake runs the TLS handshake.
func (a *tlsArrival) Handshake() error { return a.Conn.(*tls.Conn).Handshake() }

// ConnectionState returns what the handshake agreed on.
func (a *tlsArrival) ConnectionState() tls.ConnectionState {
	return a.Conn.(*tls.Conn).ConnectionState()
}

// arrivals is a listener of arrivals.
type arrivals struct {
	net.Listener
	room *streamRoom
}

// Accept waits for the next connection.
func (l arrivals) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newArrival(conn, l.room), nil
}

// NetConn returns the connection below.
func (a *arrival) NetConn() net.Conn { return a.Conn }

// Read waits for a whole request, and copies as much of it as fits into p.
func (a *arrival) Read(p []byte) (int, error) {
	if a.from == a.to {
		if a.err == nil {
			a.gather()
		}
		if a.from == a.to {
			return 0, a.err
		}
	}
	n := copy(p, a.buf[a.from:a.to])
	a.from += n
	if a.from == len(a.buf) && a.held.Load() > 0 { // the server holds the body from now on
		a.buf, a.from, a.to = nil, 0, 0
	}
	return n, nil
}

// Close closes the connection, unless a request is arriving: at a shutdown, fasthttp closes what it
// takes for idle.
func (a *arrival) Close() error {
	if a.partial.Load() {
		return nil
	}
	a.release()
	return a.Conn.Close()
}

// release gives back the room of the request that was handed on.
func (a *arrival) release() {
	if held := a.held.Swap(0); held > 0 {
		a.room.Give(int(held), networksOf(a.Conn)...)
	}
}

// HoldBody frees b when its response has been sent. Only handlers of the connection call it.
func (a *arrival) HoldBody(b *endpoint.Body) { a.body = b }

// gather reads until a request is complete or can be refused, or until an error. The response to
// the request before has been sent.
func (a *arrival) gather() {
	a.release()
	if a.body != nil {
		a.body.Free()
		a.body = nil
	}
	left := copy(a.buf, a.buf[a.to:]) // of a client that did not wait for the response
	if left <= arrivalRoom && cap(a.buf) > arrivalRoom+arrivalStep {
		a.buf = append(make([]byte, 0, arrivalRoom), a.buf[:left]...)
	}
	a.buf, a.from, a.to = a.buf[:left], 0, 0
	if left == 0 {
		if !a.fill() {
			return
		}
		if isWhole(a.buf) { // as most requests are
			a.to = len(a.buf)
			return
		}
	}
	a.request = arriving{streams: a.room != nil}
	if a.isReady() {
		return
	}
	a.partial.Store(true)
	for a.fill() && !a.isReady() {
	}
	a.partial.Store(false)
}

// isWhole reports whether buf is one request without a body and with strict lines. It is false for
// a request that expects something.
func isWhole(buf []byte) bool {
	if !bytes.HasSuffix(buf, []byte("\r\n\r\n")) || buf[0] == '\r' {
		return false
	}
	for rest := buf; ; {
		end := bytes.IndexByte(rest, '\n') // there is one, since the last line is empty
		if end == 0 || rest[end-1] != '\r' {
			return false
		}
		rest = rest[end+1:]
		ok := false
		switch rest[0] {
		case '\r':
			return len(rest) == len("\r\n")
		case ' ', '\t':
			return false
		case 'c', 'C':
			_, ok = headerValue(rest, "content-length")
		case 't', 'T':
			_, ok = headerValue(rest, "transfer-encoding")
		case 'e', 'E':
			_, ok = headerValue(rest, "expect")
		}
		if ok {
			return false
		}
	}
}

// fill reads once. After an error, what arrived before is handed on.
func (a *arrival) fill() bool {
	if len(a.buf) == cap(a.buf) && !a.grow() {
		a.to, a.err = len(a.buf), errStreamsFull
		return false
	}
	n, err := a.Conn.Read(a.buf[len(a.buf):cap(a.buf)])
	a.buf = a.buf[:len(a.buf)+n]
	if err != nil {
		a.to, a.err = len(a.buf), err
	}
	return err == nil
}

// grow makes room for more bytes, or returns false if streams hold too many.
func (a *arrival) grow() bool {
	more := min(max(arrivalRoom, len(a.buf)), max(arrivalStep, len(a.buf)/4))
	if a.request.limit > maxBodyBytes {
		if !a.room.Take(more, networksOf(a.Conn)...) {
			return false
		}
		a.held.Add(int64(more))
	}
	grown := make([]byte, len(a.buf), len(a.buf)+more)
	copy(grown, a.buf)
	a.buf = grown
	return true
}

// isReady reports whether the request can be handed on.
func (a *arrival) isReady() bool {
	r := &a.request
	end, state := r.read(a.buf)
	if r.expects.end > 0 && state != refused { // the headers have just ended
		a.proceed(state == unfinished)
	}
	switch {
	case state == finished:
		a.to = end
	case state == refused, r.part < inBody && len(a.buf) >= maxHeaderBytes,
		len(a.buf) >= maxArrival(max(r.limit, maxBodyBytes)):
		a.to, a.err = len(a.buf), io.ErrUnexpectedEOF
	default:
		return false
	}
	return true
}

// proceed hides Expect: 100-continue (RFC 9110 section 10.1.1) from fasthttp, which would hold its
// buffers while the body arrives. It responds when the client waits for that.
func (a *arrival) proceed(waits bool) {
	value := &a.request.expects
	for i := value.begin; i < value.end; i++ {
		a.buf[i] = ' '
	}
	*value = span{}
	if waits {
		// A failure shows at the next read.
		_, _ = io.WriteString(a.Conn, "HTTP/1.1 100 Continue\r\n\r\n")
	}
}

// arriving is what is known about a request that has not arrived yet. The zero value is nothing.
type arriving struct {
	streams bool // it may be a stream
	limit   int  // of the body, from the request line on
	part    part
	next    int  // index of the line to read next; in a body, of its end
	length  int  // of the body as far as it is known
	counted bool // there was a Content-Length
	chunked bool
	expects span // value of Expect: 100-continue
}

type span struct{ begin, end int }

// part is what of a request arrives.
type part int

const (
	inRequestLine part = iota
	inHeaders
	inBody
	inChunks
	inTrailers
)

// state is what is known about the end of a request.
type state int

const (
	unfinished state = iota // more must come
	finished
	refused // by fasthttp or by the handler, whatever comes
)

// read reads what arrived since the last call. end is where the request ends, when it is finished.
func (r *arriving) read(buf []byte) (end int, s state) {
	for r.next < len(buf) || r.part == inBody {
		if r.part == inBody {
			if len(buf) < r.next {
				return 0, unfinished
			}
			return r.next, finished
		}
		length := bytes.IndexByte(buf[r.next:], '\n') + 1
		if length == 0 {
			if r.part == inChunks && len(buf)-r.next > maxChunkLine {
				return 0, refused
			}
			return 0, unfinished
		}
		begin := r.next
		r.next += length
		if s := r.readLine(buf[begin:r.next], begin); s != unfinished {
			return r.next, s
		}
	}
	return 0, unfinished
}

// readLine reads the line that begins at begin and ends before next.
func (r *arriving) readLine(line []byte, begin int) state {
	if len(line) < 2 || line[len(line)-2] != '\r' || line[0] == ' ' || line[0] == '\t' {
		return refused
	}
	isEmpty := len(line) == 2
	switch r.part {
	case inRequestLine:
		if !isEmpty { // RFC 9112 section 2.2 lets empty lines come first
			r.part, r.limit = inHeaders, maxBodyBytes
			if r.streams {
				r.limit = bodyLimit(targetOf(line))
			}
		}
	case inHeaders:
		if isEmpty {
			return r.endHeaders()
		}
		return r.readHeader(line, begin)
	case inChunks:
		return r.readChunk(line)
	case inTrailers:
		if isEmpty {
			return finished
		}
	}
	return unfinished
}

// targetOf returns the second field of a request line; nil = there is none.
func targetOf(line []byte) []byte {
	n := 0
	for field := range bytes.FieldsSeq(line) {
		if n++; n == 2 {
			return field
		}
	}
	return nil
}

func (r *arriving) readHeader(line []byte, begin int) state {
	switch line[0] | 0x20 {
	case 'c':
		if value, ok := headerValue(line, "content-length"); ok {
			n, err := strconv.ParseUint(endpoint.View(value), 10, 31)
			if err != nil || r.counted {
				return refused
			}
			r.length, r.counted = int(n), true
		}
	case 't':
		if value, ok := headerValue(line, "transfer-encoding"); ok {
			if !bytes.EqualFold(value, []byte("chunked")) || r.chunked {
				return refused
			}
			r.chunked = true
		}
	case 'e':
		if value, ok := headerValue(line, "expect"); ok && string(value) == "100-continue" {
			r.expects.begin = begin + bytes.LastIndex(line, value)
			r.expects.end = r.expects.begin + len(value)
		}
	}
	return unfinished
}

func (r *arriving) endHeaders() state {
	if r.length > r.limit || r.counted && r.chunked {
		return refused
	}
	if r.chunked {
		r.part = inChunks
		return unfinished
	}
	r.part = inBody
	r.next += r.length
	return unfinished
}

// readChunk reads the line before a chunk: its size and extensions (RFC 9112 section 7.1).
func (r *arriving) readChunk(line []byte) state {
	digits := 0
	for digits < len(line) && isHex(line[digits]) {
		digits++
	}
	size, err := strconv.ParseUint(endpoint.View(line[:digits]), 16, 31)
	r.length += int(size)
	if err != nil || r.length > r.limit {
		return refused
	}
	if size == 0 {
		r.part = inTrailers
		return unfinished
	}
	r.next += int(size) + len("\r\n")
	return unfinished
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// headerValue returns the value of a header line if it has that name, which must be in lower case.
func headerValue(line []byte, name string) (value []byte, ok bool) {
	if len(line) > len(name) && line[len(name)] == ':' &&
		strings.EqualFold(endpoint.View(line[:len(name)]), name) {
		return bytes.TrimSpace(line[len(name)+1:]), true
	}
	return nil, false
}
