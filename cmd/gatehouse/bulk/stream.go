package bulk

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"gatehouse/actors/geo"
)

// answerTime is how long a server may take that is in order.
const answerTime = 5 * time.Second

const maxLine = 8 << 10 // bytes of a line of a response; many lines are in memory

// reply is what became of a request.
type reply struct {
	rest        []*question   // to repeat
	unreachable []*question   // neither answered nor to be repeated for certain
	wait        time.Duration // the server's word for when; 0 = none
	busy        bool          // the server has no capacity for more
	some        bool          // it has found some
	err         error         // the questions without an answer are in rest
}

// post sends a batch as a stream (POST /api/stream), and takes the answers as they come.
func (s *Server) post(ctx context.Context, batch []*question) reply {
	var body []byte
	for _, q := range batch {
		body = append(append(body, q.query.String()...), '\n')
	}
	path := s.config.URL + "/api/stream"
	if s.config.Plan.sourced {
		path += "?details=1"
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Patience+answerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return reply{err: refusedError{errors.New("the address of the server is wrong")}}
	}
	request.Header.Set("Content-Type", "text/plain")
	if s.config.Key != "" {
		request.Header.Set("X-Api-Key", s.config.Key)
	}
	response, err := s.config.Client.Do(request)
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return reply{err: refusedError{fmt.Errorf(
			"the server's certificate is not trusted (SSL_CERT_FILE names a file with those to trust): %w",
			untrusted)}}
	case err != nil:
		return reply{rest: batch, err: err}
	}
	defer response.Body.Close()
	switch status := response.StatusCode; {
	case status == http.StatusOK:
		return s.read(batch, response.Body)
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		return reply{rest: batch, wait: retryAfter(response.Header.Get("Retry-After")),
			err: fmt.Errorf("status %d", status)}
	default:
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxLine)) // as much as there is
		return reply{err: refusal(status, fastjson.GetString(text, "message"))}
	}
}

// retryAfter returns the time that a header names; 0 = none.
func retryAfter(value string) time.Duration {
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

var errGarbled = errors.New("the response does not fit the request")

// read reads the response to a batch: a line for each question, and a last one. It believes the
// lines up to the first that does not fit, and repeats the questions of the others.
func (s *Server) read(batch []*question, response io.Reader) (r reply) {
	parser := s.parsers.Get()
	defer s.parsers.Put(parser)
	lines := bufio.NewScanner(response)
	lines.Buffer(nil, maxLine)
	for i := range batch {
		if r.err = s.readLine(lines, parser, batch[i], &r); r.err != nil {
			r.rest = append(r.rest, batch[i:]...)
			return r
		}
	}
	// Reads to the end, so that the connection serves the next request.
	if !lines.Scan() || !fastjson.GetBool(lines.Bytes(), "done") || lines.Scan() {
		r.err = cmp.Or(lines.Err(), errGarbled)
	}
	return r
}

// readLine reads the line that is about q.
func (s *Server) readLine(lines *bufio.Scanner, parser *fastjson.Parser, q *question,
	r *reply) error {
	if !lines.Scan() {
		return cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
	}
	if !utf8.Valid(lines.Bytes()) || fastjson.ValidateBytes(lines.Bytes()) != nil {
		return errGarbled // the parser accepts some malformed JSON
	}
	item, err := parser.ParseBytes(lines.Bytes())
	if err != nil || !fits(q.query, item) {
		return errGarbled
	}
	code := geo.Code(item.GetStringBytes("error"))
	switch code {
	case geo.CodeRateLimited, geo.CodeOverloaded, geo.CodeProviderUnreachable:
		if code == geo.CodeProviderUnreachable && !item.Exists("retry_after") {
			break // a damaged record
		}
		after := time.Duration(max(0, min(item.GetInt("retry_after"), 3600))) * time.Second
		if r.wait == 0 || after > 0 && after < r.wait {
			r.wait = after
		}
		if code == geo.CodeProviderUnreachable {
			q.answer = Answer{Record: s.config.Plan.record(item)}
			r.unreachable = append(r.unreachable, q)
			return nil
		}
		r.busy = true
		r.rest = append(r.rest, q)
		return nil
	}
	q.answer = Answer{Record: s.config.Plan.record(item)}
	if !q.answer.Record.failed {
		r.some = true
		q.answer.IP, _ = netip.ParseAddr(string(item.GetStringBytes("ip")))
	}
	close(q.done)
	return nil
}

// fits reports whether item answers a query.
func fits(q geo.Query, item *fastjson.Value) bool {
	if string(item.GetStringBytes("query")) != q.String() {
		return false
	}
	if !item.GetBool("ok") {
		return len(item.GetStringBytes("error")) > 0
	}
	ip, err := netip.ParseAddr(string(item.GetStringBytes("ip")))
	return err == nil && (q.IsDomain() || ip == q.Addr())
}
