package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

// patience is how long the requests of one measurement may take.
const patience = 2 * time.Minute

// client is one keep-alive connection with one request at a time.
type client struct {
	conn     net.Conn
	requests [][]byte
	next     int
	buffer   []byte
}

func newClient(address string, requests [][]byte, first int) (*client, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &client{conn: conn, requests: requests, next: first, buffer: make([]byte, 16<<10)}, nil
}

// requestsFor returns a request for each key.
func requestsFor(host string) [][]byte {
	requests := make([][]byte, keys)
	for i := range requests {
		requests[i] = fmt.Appendf(nil, "GET /api/lookup?q=%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: compare\r\nAccept: */*\r\n\r\n", key(i), host)
	}
	return requests
}

var hitHeader = []byte("\r\nX-Cache: hit\r\n")

// run sends n requests. An answer that is no cache hit is an error.
func (c *client) run(n int) error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	for range n {
		head, _, err := c.ask(c.requests[c.next%keys])
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) || !bytes.Contains(head, hitHeader) {
			return errors.New("got something else than a cache hit")
		}
		c.next++
	}
	return nil
}

var (
	headEnd      = []byte("\r\n\r\n")
	lengthHeader = []byte("\r\nContent-Length: ")
)

// ask sends one request and reads its answer, which is valid until the next one. The head ends with its last line break.
func (c *client) ask(request []byte) (head, body []byte, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, nil, fmt.Errorf("send a request: %w", err)
	}
	for n := 0; ; {
		m, err := c.conn.Read(c.buffer[n:])
		if err != nil {
			return nil, nil, fmt.Errorf("read an answer: %w", err)
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
		return 0, errors.New("an answer has no length")
	}
	length, err := strconv.Atoi(string(value))
	if err != nil {
		return 0, fmt.Errorf("read the length of an answer: %w", err)
	}
	return length, nil
}

// sameAnswers returns an error unless two servers answer the first key with the same bytes and headers. Date, Age and
// the request id may have other values.
func sameAnswers(a, b *client) error {
	headA, bodyA, err := a.askFirst()
	if err != nil {
		return err
	}
	headB, bodyB, err := b.askFirst()
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

func (c *client) askFirst() (http.Header, string, error) {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, "", fmt.Errorf("set a deadline: %w", err)
	}
	head, body, err := c.ask(c.requests[0])
	if err != nil {
		return nil, "", err
	}
	header := http.Header{}
	for line := range strings.Lines(string(head)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name = textproto.CanonicalMIMEHeaderKey(name); name {
		case "Date", "Age", "X-Request-Id":
			value = ""
		}
		header.Add(name, value)
	}
	return header, string(body), nil
}
