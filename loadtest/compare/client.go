package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// timeout is for all requests of one measurement.
const timeout = 2 * time.Minute

// client is one keep-alive connection with one request at a time.
type client struct {
	conn     net.Conn
	requests [][]byte
	proofs   map[string][]byte // header line that every correct response has, see trial.proofs
	next     int
	times    map[string][]time.Duration // response times of the last run, by kind
	buffer   []byte
}

func newClient(address string, requests [][]byte, proofs map[string]string, first int) (
	*client, error) {
	conn, err := net.DialTimeout("tcp", address, time.Minute)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &client{conn: conn, requests: requests, proofs: map[string][]byte{}, next: first,
		buffer: make([]byte, 64<<10)}
	for kind, proof := range proofs {
		c.proofs[kind] = []byte("\r\n" + proof + "\r\n")
	}
	return c, nil
}

// limitTime sets the deadline of the next requests.
func (c *client) limitTime() error {
	if err := c.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	return nil
}

// run sends n requests.
func (c *client) run(n int) error {
	if err := c.limitTime(); err != nil {
		return err
	}
	c.times = map[string][]time.Duration{}
	for range n {
		kind, start := kindOf(c.requests[c.next%len(c.requests)]), time.Now()
		if _, _, err := c.doNext(); err != nil {
			return err
		}
		c.times[kind] = append(c.times[kind], time.Since(start))
	}
	return nil
}

// doNext sends the next request in turn. A response without the proof is an error.
func (c *client) doNext() (head, body []byte, err error) {
	request := c.requests[c.next%len(c.requests)]
	head, body, err = c.do(request)
	if err != nil {
		return nil, nil, err
	}
	proof, ok := c.proofs[kindOf(request)]
	if !ok {
		proof = c.proofs[""]
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) || !bytes.Contains(head, proof) {
		status, _, _ := bytes.Cut(head, []byte("\r\n"))
		return nil, nil, fmt.Errorf("got %s, want 200 with %s", status, bytes.TrimSpace(proof))
	}
	c.next++
	return head, body, nil
}

// fillCache has gatehouse look up the first n keys.
func (c *client) fillCache(n int) error {
	if err := c.limitTime(); err != nil {
		return err
	}
	for _, request := range bulks(n) {
		if _, _, err := c.do(request); err != nil {
			return err
		}
	}
	return nil
}

var (
	headEnd      = []byte("\r\n\r\n")
	lengthHeader = []byte("\r\nContent-Length: ")
)

// do sends one request and reads the response, which is valid until the next call. The head
// includes the line break of its last line.
func (c *client) do(request []byte) (head, body []byte, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, nil, fmt.Errorf("send a request: %w", err)
	}
	for n := 0; ; {
		m, err := c.conn.Read(c.buffer[n:])
		if err != nil {
			return nil, nil, fmt.Errorf("read a response: %w", err)
		}
		n += m
		end := bytes.Index(c.buffer[:n], headEnd)
		if end < 0 {
			continue
		}
		head = c.buffer[:end+2]
		length, err := contentLength(head)
		if err != nil {
			return nil, nil, err
		}
		if from := end + len(headEnd); n >= from+length {
			return head, c.buffer[from : from+length], nil
		}
	}
}

func contentLength(head []byte) (int, error) {
	_, rest, ok := bytes.Cut(head, lengthHeader)
	value, _, _ := bytes.Cut(rest, []byte("\r\n"))
	if !ok {
		return 0, errors.New("a response has no Content-Length")
	}
	length, err := strconv.Atoi(string(value))
	if err != nil {
		return 0, fmt.Errorf("read the Content-Length of a response: %w", err)
	}
	return length, nil
}

// compareResponses returns an error unless two servers send the same headers and body for the next
// request of each kind. It ignores values that differ between responses of one server: tokens,
// date, age, request id, and the remaining and reset values of a rate limit.
func compareResponses(a, b *client) error {
	first := map[string]int{} // request of each kind
	for i, request := range slices.Backward(a.requests) {
		first[kindOf(request)] = i
	}
	if len(first) == 1 {
		return compareNext(a, b) // some requests can be sent once only
	}
	for kind, i := range first {
		a.next, b.next = i, i
		if err := compareNext(a, b); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func compareNext(a, b *client) error {
	headA, bodyA, err := a.parseNext()
	if err != nil {
		return err
	}
	headB, bodyB, err := b.parseNext()
	if err != nil {
		return err
	}
	if !maps.EqualFunc(headA, headB, slices.Equal[[]string]) {
		return fmt.Errorf("the servers send different headers: %v and %v", headA, headB)
	}
	if bodyA != bodyB {
		return fmt.Errorf("the servers send different bodies: %s and %s", bodyA, bodyB)
	}
	return nil
}

var issuedToken = regexp.MustCompile("(gtat|gtrt|eyJ)[-_.0-9A-Za-z]+")

func (c *client) parseNext() (http.Header, string, error) {
	if err := c.limitTime(); err != nil {
		return nil, "", err
	}
	head, body, err := c.doNext()
	if err != nil {
		return nil, "", err
	}
	header := http.Header{}
	for line := range strings.Lines(string(head)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name = textproto.CanonicalMIMEHeaderKey(name); name {
		case "Date", "Age", "X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset":
			value = ""
		}
		header.Add(name, value)
	}
	return header, issuedToken.ReplaceAllString(string(body), "$1"), nil
}
