package loadtest

import (
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

// Hit is one go of a scenario. It belongs to one goroutine and must not be kept.
type Hit struct {
	Number uint64     // of the hit in its run, from 0
	Rand   *rand.Rand // its own

	run      *run
	due      time.Time // when its first step should have begun; zero from then on
	request  fasthttp.Request
	response fasthttp.Response
	answer   Response // to the step before
}

var hits = sync.Pool{New: func() any { return &Hit{Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))} }}

// Request is what a step sends.
type Request struct {
	Method string // "" = GET, or POST with a Form or JSON
	Path   string // with its query
	Form   url.Values
	JSON   []byte      // the body, unless there is a Form
	Header [][2]string // names and values, beside those of the body
	// Want says what is wrong with an answer, in a few words that are the same for all like it and hold nothing of its
	// contents; "" = nothing. nil = every status below 400 is right.
	Want func(*Response) string
}

// Response is an answer. It is valid until the hit's next step.
type Response struct {
	Status int
	Body   []byte
	header *fasthttp.ResponseHeader
}

// Header returns the first value of a header, "" when there is none.
func (r *Response) Header(name string) string { return string(r.header.Peek(name)) }

// Cookies calls set with each cookie that the answer sets, with "" for one that it deletes.
func (r *Response) Cookies(set func(name, value string)) {
	for _, line := range r.header.Cookies() {
		var c fasthttp.Cookie
		if c.ParseBytes(line) == nil {
			set(string(c.Key()), string(c.Value()))
		}
	}
}

// Status returns a Want for one status.
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

// errStep says that a step did not get the answer that it should have, which has been counted.
var errStep = errors.New("the step went wrong")

// Do sends one request and counts how long the answer took and whether it was right. An error says that it was not: the hit
// cannot go on as if it were.
func (h *Hit) Do(step string, q Request) (*Response, error) {
	h.fill(&q)
	h.response.Reset()
	began := h.due
	if began.IsZero() {
		began = time.Now()
	}
	h.due = time.Time{}
	err := h.run.client.DoTimeout(&h.request, &h.response, h.run.config.Timeout)
	took := time.Since(began)
	if err != nil {
		h.run.recorder.add(h.Number, step, took, 0, noAnswer(err))
		return nil, errStep
	}
	answer := &h.answer
	*answer = Response{Status: h.response.StatusCode(), Body: h.response.Body(), header: &h.response.Header}
	want := q.Want
	if want == nil {
		want = anyGood
	}
	wrong := want(answer)
	h.run.recorder.add(h.Number, step, took, answer.Status, wrong)
	if wrong != "" {
		return answer, errStep
	}
	return answer, nil
}

// wrong counts a step that could not be taken.
func (h *Hit) wrong(step, reason string) { h.run.recorder.add(h.Number, step, 0, 0, reason) }

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
	}
	if q.Method != "" {
		r.Header.SetMethod(q.Method)
	}
	for _, header := range q.Header {
		r.Header.Set(header[0], header[1])
	}
}

// noAnswer says why there is none, in words that hold no address.
func noAnswer(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, fasthttp.ErrTimeout), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, fasthttp.ErrNoFreeConns):
		return "no connection free in the generator"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, fasthttp.ErrConnectionClosed), errors.Is(err, syscall.EPIPE):
		return "connection closed"
	}
	return fmt.Sprintf("no answer (%T)", err)
}
