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

// answerTime bounds the wait for one answer.
const answerTime = 10 * time.Second

// conn is a connection of a client that asks one thing at a time.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(address string) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, answerTime)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &conn{c, bufio.NewReaderSize(c, 2048)}, nil
}

// get returns the answer's status and whether it came from the cache. After an error the connection is of no use.
func (c *conn) get(path string) (status int, hit bool, err error) {
	if err := c.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return 0, false, fmt.Errorf("ask: %w", err)
	}
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return 0, false, fmt.Errorf("ask: %w", err)
	}
	response := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(response)
	if err := response.Read(c.r); err != nil {
		return 0, false, fmt.Errorf("read the answer: %w", err)
	}
	return response.StatusCode(), string(response.Header.Peek("X-Cache")) == "hit", nil
}

// close ends the connection; nothing can be lost with it.
func (c *conn) close() {
	if err := c.Close(); err != nil {
		return // the server was faster
	}
}

// Times are durations of requests.
type Times []time.Duration

// Quantile returns the time within which a part of the requests was answered: 0.99 for the 99th percentile. It is 0
// without requests.
func (t Times) Quantile(part float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}
