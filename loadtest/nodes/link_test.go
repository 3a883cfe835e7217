package nodes_test

import (
	"io"
	"net"
	"testing"
	"time"

	"gatehouse/loadtest/nodes"
)

// echo is a server that sends back what it gets, through a link.
func echo(t *testing.T, peer func(net.Addr) string) (*nodes.Link, net.Listener) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	l, err := nodes.NewLink(server.Addr().String(), peer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return l, server
}

func dial(t *testing.T, l *nodes.Link) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends a byte.
func say(t *testing.T, c net.Conn, b byte) {
	t.Helper()
	if _, err := c.Write([]byte{b}); err != nil {
		t.Fatal(err)
	}
}

// hear wants a byte to come back.
func hear(t *testing.T, c net.Conn, want byte) {
	t.Helper()
	var got [1]byte
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got[:]); err != nil || got[0] != want {
		t.Fatalf("got %q and error %v, want %q", got[0], err, want)
	}
}

// silent wants no byte to come back, and no end of the connection.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var got [1]byte
	if n, err := c.Read(got[:]); n > 0 || err == nil || !err.(net.Error).Timeout() {
		t.Fatalf("got %q and error %v, want nothing", got[:n], err)
	}
}

func TestLink(t *testing.T) {
	for name, directions := range map[string][]nodes.Direction{
		"to the target": {nodes.ToTarget}, "from the target": {nodes.FromTarget},
		"both": {nodes.ToTarget, nodes.FromTarget},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := echo(t, nil)
			c := dial(t, l)
			say(t, c, 'a')
			hear(t, c, 'a')
			for _, d := range directions {
				l.Cut("", d)
			}
			say(t, c, 'b')
			silent(t, c)
			during := dial(t, l)
			say(t, during, 'c')
			silent(t, during)
			l.Heal()
			hear(t, c, 'b')
			hear(t, during, 'c')
		})
	}
}

// TestLinkHidesEnds cuts a link, ends the server's side, and heals.
func TestLinkHidesEnds(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	l, err := nodes.NewLink(target.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := dial(t, l)
	other, err := target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	l.CutBoth("")
	other.Close()
	silent(t, c)
	l.Heal()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v after the link is healed, want the end", err)
	}
}

func TestLinkOfOnePeer(t *testing.T) {
	names := make(chan string, 2)
	names <- "a"
	l, _ := echo(t, func(net.Addr) string { return <-names })
	a := dial(t, l)
	say(t, a, '1')
	hear(t, a, '1')
	names <- "b"
	b := dial(t, l)
	say(t, b, '1')
	hear(t, b, '1')
	l.CutBoth("b")
	say(t, a, '2')
	hear(t, a, '2')
	say(t, b, '2')
	silent(t, b)
	l.Heal()
	hear(t, b, '2')
}

// TestCloseOfACutLink must not hang.
func TestCloseOfACutLink(t *testing.T) {
	l, _ := echo(t, nil)
	c := dial(t, l)
	say(t, c, 'a')
	hear(t, c, 'a')
	l.CutBoth("")
	say(t, c, 'b')
	say(t, dial(t, l), 'c')
}
