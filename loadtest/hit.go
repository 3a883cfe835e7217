package loadtest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// Hit is one execution of a scenario. It belongs to one goroutine and must not be kept.
type Hit struct {
	Number uint64     // number of the hit in the whole load, from 0
	Rand   *rand.Rand // used by this hit only

	run      *run
	turn     uint64    // number of the hit in its run, from 0
	due      time.Time // when its first step should have begun; zero after the first step
	request  fasthttp.Request
	response fasthttp.Response
	last     Response // of the last step
}

var hits = sync.Pool{New: func() any {
	return &Hit{Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
}}

// Request is the request of a step.
type Request struct {
	Method string // "" = GET, or POST with a body
	Path   string // with its query
	Form   url.Values
	JSON   []byte      // body, unless there is a Form
	Text   []byte      // body, unless there is a Form or JSON
	Header [][2]string // names and values, in addition to those of the body
	// Want returns what is wrong with a response, or "" if it is right. Errors are counted by this
	// text, so it must be short and must not contain data of the response. nil = a status below 400
	// is right.
	Want func(*Response) string
}

// Response is a response. It is valid until the hit's next step.
type Response struct {
	Status int
	Body   []byte
	header *fasthttp.ResponseHeader
}

// Header returns the first value of a header, or "" if it is missing.
func (r *Response) Header(name string) string { return string(r.header.Peek(name)) }

// Cookies calls set for each cookie that the response sets, with the value "" for a deleted one.
func (r *Response) Cookies(set func(name, value string)) {
	for _, line := range r.header.Cookies() {
		var c fasthttp.Cookie
		if c.ParseBytes(line) == nil {
			set(string(c.Key()), string(c.Value()))
		}
	}
}

// Status returns a Request.Want for one status.
func Status(want int) func(*Response) string {
	return func(r *Response) string {
		if r.Status == want {
			return ""
		}
		return wrongStatus(r)
	}
}

func wrongStatus(r *Response) string { return "status " + strconv.Itoa(r.Status) }

func anyGood(r *Response) string {
	if r.Status < 400 {
		return ""
	}
	return wrongStatus(r)
}

// errStep is returned for a step that failed and has been counted.
var errStep = errors.New("the step failed")

// Do sends one request, and counts its latency and whether the response was right. It returns an
// error if it was not; then the hit has to end.
func (h *Hit) Do(step string, q Request) (*Response, error) {
	began := h.due
	if began.IsZero() {
		began = time.Now()
	}
	h.due = time.Time{}
	response, ended, wrong := h.exchange(&q)
	h.run.recorder.add(h.turn, step, ended.Sub(began), response.Status, wrong)
	if wrong != "" {
		return response, errStep
	}
	return response, nil
}

// exchange sends one request. It returns the response, with the status 0 if there is none, when it
// ended, and what is wrong with it.
func (h *Hit) exchange(q *Request) (response *Response, ended time.Time, wrong string) {
	h.fill(q)
	h.response.Reset()
	response = &h.last
	*response = Response{header: &h.response.Header}
	err := h.run.client.DoTimeout(&h.request, &h.response, h.run.config.Timeout)
	ended = time.Now()
	if err != nil {
		return response, ended, noResponse(err)
	}
	response.Status, response.Body = h.response.StatusCode(), h.response.Body()
	want := q.Want
	if want == nil {
		want = anyGood
	}
	return response, ended, want(response)
}

// fail counts a step that could not be executed.
func (h *Hit) fail(step, reason string) { h.run.recorder.add(h.turn, step, 0, 0, reason) }

func (h *Hit) fill(q *Request) {
	r := &h.request
	r.Reset()
	r.SetURI(h.run.base)
	r.URI().Update(q.Path)
	switch {
	case q.Form != nil:
		r.Header.SetMethod(fasthttp.MethodPost)
		r.Header.SetContentType("application/x-www-form-urlencoded")
		r.SetBodyString(q.Form.Encode())
	case q.JSON != nil:
		r.Header.SetMethod(fasthttp.MethodPost)
		r.Header.SetContentType("application/json")
		r.SetBodyRaw(q.JSON)
	case q.Text != nil:
		r.Header.SetMethod(fasthttp.MethodPost)
		r.Header.SetContentType("text/plain")
		r.SetBodyRaw(q.Text)
	}
	if q.Method != "" {
		r.Header.SetMethod(q.Method)
	}
	for _, header := range h.run.header {
		r.Header.Set(header[0], header[1])
	}
	for _, header := range q.Header {
		r.Header.Set(header[0], header[1])
	}
}

// noResponse returns why there is no response, without an address.
func noResponse(err error) string {
	var timeout net.Error
	var noTLS tls.RecordHeaderError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, fasthttp.ErrTimeout), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, fasthttp.ErrNoFreeConns):
		return "no free connection in the generator"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, fasthttp.ErrConnectionClosed):
		return "connection closed"
	case errors.As(err, &noTLS):
		return "the target speaks no TLS"
	case errors.As(err, &untrusted):
		return "certificate not trusted (on Linux, SSL_CERT_FILE names those that are)"
	}
	return fmt.Sprintf("no response (%T)", err)
}
