package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // profiles of raw
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// rawCommand is the first argument of a process that is raw. The other is the file of a recording.
const rawCommand = "raw"

// recording is what raw sends, by the kind of the request.
type recording map[string]*responses

// responses are those to requests of one kind.
type responses struct {
	Headers [][2]string       // names and values, in their order
	Bodies  map[string][]byte // by keyOf the request; "" = one for all requests
}

// kindOf returns the kind of a request: its path.
func kindOf(request []byte) string {
	_, target, _ := bytes.Cut(request, []byte(" "))
	return string(target[:bytes.IndexAny(target, " ?")])
}

// keyOf returns what tells a request from the others of a trial: its body, or else its query.
func keyOf(request []byte) string {
	if _, body, _ := bytes.Cut(request, headEnd); len(body) > 0 {
		return string(body)
	}
	_, query, _ := bytes.Cut(request, []byte("?q="))
	query, _, _ = bytes.Cut(query, []byte(" "))
	return string(query)
}

// record sends requests and returns the responses: to each of those that have their own, and to one
// of each other kind.
func (c *client) record(t *trial) (recording, error) {
	if err := c.limitTime(); err != nil {
		return nil, err
	}
	all := recording{}
	for i, request := range c.requests {
		kind, key := kindOf(request), ""
		if t.isEach(kind) {
			key = keyOf(request)
		}
		r := all[kind]
		if r != nil && r.Bodies[key] != nil {
			continue
		}
		c.next = i
		head, body, err := c.doNext()
		if err != nil {
			return nil, err
		}
		if r == nil {
			r = &responses{headersOf(head), map[string][]byte{}}
			all[kind] = r
		}
		r.Bodies[key] = bytes.Clone(body)
	}
	return all, nil
}

func headersOf(head []byte) (headers [][2]string) {
	for _, line := range strings.Split(strings.TrimSpace(string(head)), "\r\n")[1:] {
		name, value, _ := strings.Cut(line, ": ")
		headers = append(headers, [2]string{name, value})
	}
	return headers
}

func (r recording) write(file string) error {
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(r); err != nil {
		return fmt.Errorf("keep the responses: %w", err)
	}
	return os.WriteFile(file, text.Bytes(), 0o600)
}

// serveRaw sends the responses of a recording until SIGTERM. It prints its addresses first.
func serveRaw(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var r recording
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&r); err != nil {
		return fmt.Errorf("read the responses: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(admin, nil) }() // until the process ends
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := newRaw(r.handle())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	fmt.Printf("serving %v %v\n", ln.Addr(), admin.Addr())
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	return errors.Join(server.ShutdownWithContext(end), <-served)
}

// newRaw returns a fasthttp server with this handler and the settings of gatehouse's public server.
func newRaw(handler fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      handler,
		Concurrency:                  maxConnections + 1024,
		ReadBufferSize:               16 << 10,
		MaxRequestBodySize:           64 << 10,
		ReadTimeout:                  longTimeout,
		WriteTimeout:                 longTimeout,
		IdleTimeout:                  longTimeout,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
	}
}

// handle sends the responses of all kinds.
func (r recording) handle() fasthttp.RequestHandler {
	byKind := map[string]fasthttp.RequestHandler{}
	for kind, one := range r {
		byKind[kind] = one.handler()
	}
	return func(ctx *fasthttp.RequestCtx) { byKind[string(ctx.Path())](ctx) }
}

// handler sends the responses. Headers that follow the clock do so.
func (r *responses) handler() fasthttp.RequestHandler {
	type header struct{ name, value []byte }
	var fixed []header
	var contentType, age, reset []byte
	for _, h := range r.Headers {
		switch h[0] {
		case "Content-Type":
			contentType = []byte(h[1])
		case "Age":
			age = []byte(h[0])
		case "X-RateLimit-Reset":
			reset = []byte(h[0])
		case "Date", "Content-Length": // fasthttp sets them
		default:
			fixed = append(fixed, header{[]byte(h[0]), []byte(h[1])})
		}
	}
	began, same := time.Now(), r.Bodies[""]
	return func(ctx *fasthttp.RequestCtx) {
		var buf [20]byte
		for i := range fixed {
			ctx.Response.Header.SetCanonical(fixed[i].name, fixed[i].value)
		}
		if age != nil {
			ctx.Response.Header.SetCanonical(age,
				strconv.AppendInt(buf[:0], int64(ctx.Time().Sub(began)/time.Second), 10))
		}
		if reset != nil {
			ctx.Response.Header.SetCanonical(reset,
				strconv.AppendInt(buf[:0], ctx.Time().Add(time.Minute).Unix(), 10))
		}
		ctx.Response.Header.SetContentTypeBytes(contentType)
		switch {
		case same != nil:
			ctx.Response.SetBodyRaw(same)
		case ctx.IsPost():
			ctx.Response.SetBodyRaw(r.Bodies[string(ctx.PostBody())])
		default:
			ctx.Response.SetBodyRaw(r.Bodies[string(ctx.QueryArgs().Peek("q"))])
		}
	}
}
