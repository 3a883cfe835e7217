package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// crowdCommand is the first argument of a process that sends a crowd of streams. The others are the
// server's address, the number of streams, the kind of all of them ("" = as many of each), and once
// if each sends one stream and all begin at the same time.
const crowdCommand = "send-crowd"

// The kinds of streams.
var kinds = []struct {
	name string
	send func(c *crowd, conn net.Conn, request string) error
}{
	{"slow-reader", (*crowd).readSlowly},
	{"no-reader", (*crowd).readNothing},
	{"dead", (*crowd).vanish},
	{"slow-sender", (*crowd).sendSlowly},
}

const (
	crowdQueries  = 7000             // of a stream: 95 KiB in, 3.5 MB out
	crowdSources  = 50               // addresses that they come from, 127.0.1.1 and on
	slowRate      = 64 << 10         // bytes a second that a slow reader reads
	slowBuffer    = 64 << 10         // of its socket
	held          = 20 * time.Second // how long a connection is kept that the server ends before
	slowSendPause = time.Second
	spread        = 5 * time.Second // in which the first streams begin
)

// crowd sends streams until its process is killed.
type crowd struct {
	sent, ended, cut, refused atomic.Int64
}

// sendCrowd is a process that sends streams. It prints a line of counts each second.
func sendCrowd(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("got %d arguments, want address, streams, kind and once", len(args))
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c, once := &crowd{}, args[3] == "once"
	var workers sync.WaitGroup
	for i := range n {
		kind := kinds[i%len(kinds)]
		for _, k := range kinds {
			if k.name == args[2] {
				kind = k
			}
		}
		from := fmt.Sprintf("127.0.1.%d", 1+i%crowdSources)
		workers.Go(func() {
			if !once {
				time.Sleep(rand.N(spread))
			}
			for sent := false; !sent || !once; sent = true {
				request := streamOf(addressOf, rand.IntN(1<<24), crowdQueries, "")
				conn, err := dialFrom(from, args[0])
				if err != nil {
					time.Sleep(time.Second)
					continue
				}
				c.sent.Add(1)
				if err := kind.send(c, conn, request); err != nil {
					c.cut.Add(1)
				}
				conn.Close()
			}
		})
	}
	for range time.Tick(time.Second) {
		if _, err := fmt.Printf("sent %d, ended %d, cut %d, refused %d\n", c.sent.Load(),
			c.ended.Load(), c.cut.Load(), c.refused.Load()); err != nil {
			os.Exit(0) // nobody reads it any more
		}
	}
	return nil
}

// readSlowly reads the whole response at slowRate.
func (c *crowd) readSlowly(conn net.Conn, request string) error {
	if err := conn.(*net.TCPConn).SetReadBuffer(slowBuffer); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	r := bufio.NewReaderSize(conn, 4<<10)
	status, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.Contains(status, " 200 ") {
		c.refused.Add(1)
		return nil
	}
	tail := ""
	for buf := make([]byte, slowRate/8); ; time.Sleep(time.Second / 8) {
		n, err := io.ReadFull(r, buf)
		if tail += string(buf[:n]); len(tail) > 100 {
			tail = tail[len(tail)-100:]
		}
		if strings.Contains(tail, `{"done":true,`) {
			c.ended.Add(1)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readNothing leaves the response unread until the server has ended the connection.
func (c *crowd) readNothing(conn net.Conn, request string) error {
	if err := conn.(*net.TCPConn).SetReadBuffer(slowBuffer); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	time.Sleep(held)
	c.ended.Add(1)
	return nil
}

// vanish sends the request. From then on its connection drops all that the server sends, as if the
// machine was gone: it acknowledges nothing, and refuses nothing.
func (c *crowd) vanish(conn net.Conn, request string) error {
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	var filtered error
	if err := raw.Control(func(fd uintptr) {
		filtered = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: 1, Filter: &nothing[0]})
	}); err != nil || filtered != nil {
		fmt.Fprintln(os.Stderr, "filter:", err, filtered)
		os.Exit(1)
	}
	time.Sleep(held)
	c.ended.Add(1)
	return nil
}

// sendSlowly sends a part of the request each second until the server ends that.
func (c *crowd) sendSlowly(conn net.Conn, request string) error {
	step := len(request)/60 + 1
	for ; request != ""; request = request[min(step, len(request)):] {
		if _, err := io.WriteString(conn, request[:min(step, len(request))]); err != nil {
			break
		}
		time.Sleep(slowSendPause)
	}
	c.ended.Add(1)
	return nil
}
