package lookups

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/httpedge/endpoint"
)

// Limits of a stream. The server limits its body.
const (
	maxStream      = 30_000  // queries
	maxStreamLine  = 4 << 10 // bytes of a line
	streamChunk    = 32 << 10
	streamOverhead = 8 << 10 // room for the line that fills a chunk
	fewQueries     = 2       // whose response is not worth compressing: a line has about 500 bytes
)

var contentTypeNDJSON = []byte("application/x-ndjson")

// Errors about the whole stream. They are shared and never changed.
var (
	errStreamEmpty = endpoint.ProblemOf(
		&geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonEmpty}).
		Saying("The body is empty. Send 1 to 30,000 lines, each an address or a domain.")
	errStreamTooMany = endpoint.ProblemOf(
		&geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonTooMany}).
		Saying("A stream holds at most 30,000 queries. Split it into several requests.")
	errStreamType = &endpoint.Problem{Status: fasthttp.StatusUnsupportedMediaType,
		Code:    "unsupported_media_type",
		Message: "Send lines as Content-Type: text/plain, or JSON lines as application/x-ndjson, without a Content-Encoding."}
	errStreamVersion = endpoint.ErrBadRequest.Saying("A stream needs HTTP/1.1.")
)

// stream serves POST /api/stream.
func (s *service) stream(ctx *fasthttp.RequestCtx, keyed netip.Addr) {
	chosen, err := selectionOf(ctx.QueryArgs())
	if err != nil {
		endpoint.WriteLookup(ctx, "", err)
		return
	}
	queries, err := readStream(&ctx.Request)
	if err != nil {
		endpoint.WriteLookup(ctx, "", err)
		return
	}
	from, many := s.origin(ctx, keyed), len(queries.ends) > fewQueries
	endpoint.SetStream(ctx, many, func(to *endpoint.Stream) error {
		found := s.lookups.Stream(from, queries.next)
		defer found.Close()
		out := streamWriter{to: to, chosen: chosen, buf: streamBuffers.Get().(*[]byte)}
		defer streamBuffers.Put(out.buf)
		return out.write(found)
	})
	ctx.Response.Header.SetContentTypeBytes(contentTypeNDJSON)
	endpoint.SetNoStore(&ctx.Response.Header)
}

var streamBuffers = sync.Pool{New: func() any {
	buf := make([]byte, 0, streamChunk+streamOverhead)
	return &buf
}}

// streamWriter writes the lines of a response.
type streamWriter struct {
	to     *endpoint.Stream
	chosen selection
	buf    *[]byte // lines that are not sent yet
	err    error
}

// write sends a line for each query, and the last line. It sends what it has before it waits.
func (w *streamWriter) write(found *lookup.Stream) error {
	count, failed := 0, 0
	lines := (*w.buf)[:0]
	send := func() bool {
		if w.err == nil {
			_, w.err = w.to.Write(lines)
			lines = lines[:0]
		}
		return w.err == nil
	}
	flush := func() bool {
		if len(lines) > 0 && !send() {
			return false
		}
		w.err = w.to.Flush() // also without lines: those of a full chunk may wait in the compressor
		return w.err == nil
	}
	for {
		text, outcome, ok := found.Next(flush)
		if !ok {
			break
		}
		count++
		if outcome.Err != nil {
			failed++
			lines = endpoint.AppendItem(lines, text, outcome.Err)
		} else {
			lines = w.chosen.append(lines, text, &outcome)
		}
		lines = append(lines, '\n')
		if len(lines) >= streamChunk && !send() {
			break
		}
	}
	lines = strconv.AppendInt(append(lines, `{"done":true,"count":`...), int64(count), 10)
	lines = strconv.AppendInt(append(lines, `,"failed":`...), int64(failed), 10)
	lines = append(lines, "}\n"...)
	send()
	return w.err
}

// streamQueries are the queries of a stream, one after another.
type streamQueries struct {
	text string   // shares memory with the request
	ends []uint32 // of each query in text
	done int      // queries that next has returned
}

// next returns the next query; ok is false after the last one.
func (q *streamQueries) next() (text string, ok bool) {
	if q.done == len(q.ends) {
		return "", false
	}
	from := uint32(0)
	if q.done > 0 {
		from = q.ends[q.done-1]
	}
	text = q.text[from:q.ends[q.done]]
	q.done++
	return text, true
}

// readStream returns the queries of a request, or the error of the whole request. They take the
// place of the request's body.
func readStream(r *fasthttp.Request) (*streamQueries, error) {
	if !r.Header.IsHTTP11() {
		return nil, errStreamVersion
	}
	var query func(line []byte) (text []byte, skip bool, err error)
	switch kind, _, _ := bytes.Cut(r.Header.ContentType(), []byte(";")); {
	case len(r.Header.ContentEncoding()) > 0:
		return nil, errStreamType
	case isType(kind, "text/plain"), len(kind) == 0,
		isType(kind, "application/x-www-form-urlencoded"): // curl and urllib say so if not told
		query = lineQuery
	case isType(kind, "application/x-ndjson"), isType(kind, "application/ndjson"),
		isType(kind, "application/jsonl"):
		query = new(jsonLines).query
	default:
		return nil, errStreamType
	}
	return splitStream(r.Body(), query)
}

func isType(kind []byte, name string) bool {
	return strings.EqualFold(endpoint.View(bytes.TrimSpace(kind)), name)
}

var byteOrderMark = []byte("\uFEFF")

// splitStream returns the query of each line of body. The queries move to the front of body: none
// is longer than its line.
func splitStream(
	body []byte, query func(line []byte) (text []byte, skip bool, err error),
) (*streamQueries, error) {
	rest := bytes.TrimPrefix(body, byteOrderMark)
	q, size := &streamQueries{}, 0
	lines := bytes.Count(rest, []byte{'\n'}) + 1
	if lines > maxStream+1 { // the last one may be empty
		return nil, errStreamTooMany
	}
	q.ends = make([]uint32, 0, lines)
	for number := 1; len(rest) > 0; number++ {
		line := rest
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			line, rest = rest[:end], rest[end+1:]
		} else {
			rest = nil
		}
		if len(line) > maxStreamLine {
			return nil, errStreamLine("Line %d is longer than 4 KiB.", number)
		}
		text, skip, err := query(bytes.TrimSuffix(line, []byte{'\r'}))
		switch {
		case err != nil:
			return nil, errStreamLine(
				`Line %d is not a JSON string or an object with one member "query", a string.`, number)
		case skip:
			continue
		case len(q.ends) == maxStream:
			return nil, errStreamTooMany
		}
		size += copy(body[size:], text)
		q.ends = append(q.ends, uint32(size))
	}
	if len(q.ends) == 0 {
		return nil, errStreamEmpty
	}
	q.text = endpoint.View(body[:size])
	return q, nil
}

func errStreamLine(format string, number int) error {
	return endpoint.ProblemOf(
		&geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonMalformed}).
		Saying(fmt.Sprintf(format, number))
}

// lineQuery returns a line of text, which is a query as it is.
func lineQuery(line []byte) (text []byte, skip bool, err error) { return line, false, nil }

// jsonLines reads lines of JSON: each a string, or an object with the member "query".
type jsonLines struct{ parser fastjson.Parser }

// query returns the query of a line, which is valid until the next call. It skips blank lines.
func (j *jsonLines) query(line []byte) (text []byte, skip bool, err error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, true, nil
	}
	if !json.Valid(line) { // fastjson accepts some malformed JSON
		return nil, false, errBulkMalformed
	}
	v, err := j.parser.ParseBytes(line)
	if err != nil {
		return nil, false, err
	}
	if v.Type() == fastjson.TypeObject {
		if v, err = memberOf(v, "query"); err != nil {
			return nil, false, err
		}
	}
	text, err = v.StringBytes()
	return text, false, err
}
