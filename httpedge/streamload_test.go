package httpedge_test

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

const streamHead = "POST /api/stream HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"

// countedStream is a stream of n different addresses, from the first one on.
func countedStream(first, n int) string {
	var body strings.Builder
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&body, "8.%d.%d.%d\n", i>>16&0x3f, i>>8&0xff, i&0xff)
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", streamHead, body.Len(), body.String())
}

// unread sends a stream over a connection without buffers and reads the first byte of its response.
func unread(t *testing.T, st *stacktest.Stack, request string) *stacktest.Conn {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	go func() { _ = st.Server.ServeConn(server) }() // it fails when the test closes the connection
	conn := &stacktest.Conn{Conn: client, T: t, R: bufio.NewReaderSize(client, 16)}
	conn.Say(request)
	if _, err := conn.R.Peek(1); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestSlowReaders has 1,000 streams whose clients read nothing: they hold little memory, and others
// are served.
func TestSlowReaders(t *testing.T) {
	const streams, queries = 1000, 500
	st := stacktest.NewLookups(t)
	request := countedStream(0, queries)
	unread(t, st, request).Close()
	before, conns := heap(), make([]*stacktest.Conn, streams)
	for i := range conns {
		conns[i] = unread(t, st, request)
	}
	if held := int64(heap()) - int64(before); held > streams*(160<<10) {
		t.Errorf("got %d KiB held for each stream, want 160 at most", held/streams>>10)
	}
	for i := range 100 {
		if a := st.Get(t, fmt.Sprintf("/api/lookup?q=9.0.0.%d", i)); a.Status != 200 {
			t.Errorf("got %d for another caller, want 200", a.Status)
		}
	}
	conns[streams-1].Hear().StreamLines(t, queries, 0)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A client that takes nothing loses its connection after the write timeout.
func TestStreamToNobody(t *testing.T) {
	provider := stacktest.NewProvider()
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider),
		func(c *stack.Config) { c.WriteTimeout = 50 * time.Millisecond })
	conn := st.Dial(t)
	stacktest.Must(t, conn.Conn.(*net.TCPConn).SetReadBuffer(64<<10))
	conn.Say(countedStream(0, 30_000))
	awaitBusy(t, st, 0)
	if provider.Asked("8.0.117.47") != 0 {
		t.Error("got the last query asked for nobody, want an end before it")
	}
	sentOf := regexp.MustCompile(`"route":"/api/stream".*"bytes":(\d+)`)
	var line []string
	for end := time.Now().Add(stacktest.Patience); line == nil && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		line = sentOf.FindStringSubmatch(st.Log.String())
	}
	if line == nil {
		t.Fatalf("got no line of the stream in the log:\n%s", st.Log)
	}
	// The kernel of the client holds some of it, too.
	if sent, err := strconv.Atoi(line[1]); err != nil || sent > 1<<20 && runtime.GOOS == "linux" {
		t.Errorf("got %d bytes handed to the kernel for nobody, want a MiB at most", sent)
	}
}

// A client that leaves ends the work for its stream.
func TestStreamOfAClientThatLeaves(t *testing.T) {
	provider := stacktest.NewProvider()
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider))
	conn := st.Dial(t)
	conn.Say(countedStream(0, 30_000))
	if _, err := conn.R.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	stacktest.Must(t, conn.Conn.(*net.TCPConn).SetLinger(0))
	conn.Conn.Close()
	awaitBusy(t, st, 0)
	if n := provider.Asked("8.0.117.47"); n != 0 {
		t.Error("got the last query asked for nobody, want an end before it")
	}
}

// TestStreamsHoldABoundedMemory leaves little room for bodies: a stream that does not fit is
// refused, and its bytes are given back, as those of one that is served are.
func TestStreamsHoldABoundedMemory(t *testing.T) {
	st := stacktest.NewLookups(t)
	const room = 1<<20 + 512<<10 // for one body and what an arrival holds beyond it
	if !st.Server.TakeStreamRoom(room) {
		t.Fatal("got no room, want all")
	}
	taken := st.Server.StreamRoom()
	body := strings.Repeat(strings.Repeat(" ", 4095)+"\n", 256)
	text := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", streamHead, len(body), body)
	held := unread(t, st, text)
	if n := st.Server.StreamRoom() - taken; n < 1<<20 || n > room {
		t.Errorf("got %d bytes held by a stream of a MiB, want a MiB and a quarter at most", n)
	}
	for range 3 {
		a := st.PostStream(t, "text/plain", body)
		a.Fails(t, 503, "overloaded", "")
		a.Has(t, "Retry-After", "1")
	}
	st.PostStream(t, "text/plain", "8.8.8.8\n").StreamLines(t, 1, 0) // it needs no room
	if a := st.PostBulk(t, stacktest.BulkBody(t, "8.8.8.8")); a.Status != 200 {
		t.Errorf("got %d for a bulk request, want 200", a.Status)
	}
	held.Hear().StreamLines(t, 256, 256)
	held.Say(lookup) // the room is free when the connection goes on
	held.Hear()
	st.Client.CloseIdleConnections()
	awaitBusy(t, st, 0)
	if n := st.Server.StreamRoom() - taken; n > 64<<10 {
		t.Errorf("got %d bytes held after the streams, want none", n)
	}
	st.PostStream(t, "text/plain", body).StreamLines(t, 256, 256)
}
