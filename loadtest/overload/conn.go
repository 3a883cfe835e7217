package overload

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/valyala/fasthttp"
)

// timeout is for a connection and for each request.
const timeout = 10 * time.Second

// conn is a client's connection, with one request at a time.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(address string) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &conn{c, bufio.NewReaderSize(c, 2048)}, nil
}

// get returns the response's status and whether it is a cache hit. After an error the connection is
// unusable.
func (c *conn) get(path string) (status int, hit bool, err error) {
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return 0, false, fmt.Errorf("set a deadline: %w", err)
	}
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return 0, false, fmt.Errorf("send a request: %w", err)
	}
	response := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(response)
	if err := response.Read(c.r); err != nil {
		return 0, false, fmt.Errorf("read the response: %w", err)
	}
	return response.StatusCode(), string(response.Header.Peek("X-Cache")) == "hit", nil
}

// close closes the connection.
func (c *conn) close() {
	if err := c.Close(); err != nil {
		return // the server closed it first
	}
}

// Times are latencies of requests.
type Times []time.Duration

// Quantile returns a quantile of the latencies, such as 0.99 for the 99th percentile; 0 without
// requests.
func (t Times) Quantile(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
