package httpedge_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/httpedge"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func mustListen(t *testing.T, address string) net.Listener {
	t.Helper()
	ln, err := httpedge.Listen(address)
	stacktest.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln
}

// broken is a listener that fails for good.
type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, errors.New("broken for good") }

func TestListen(t *testing.T) {
	tcp := mustListen(t, "127.0.0.1:0")
	if port := tcp.Addr().(*net.TCPAddr).Port; port == 0 {
		t.Error("got port 0, want a real one")
	}
	if _, err := httpedge.Listen(tcp.Addr().String()); err == nil {
		t.Error("got a second listener on a port, want an error")
	}
	if _, err := httpedge.Listen("nonsense"); err == nil {
		t.Error("got a listener on nonsense, want an error")
	}
}

func TestListenOnASocketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.sock")
	first := mustListen(t, "unix:"+path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("got %v and %v, want a socket of mode 0660", info, err)
	}
	if _, err := httpedge.Listen("unix:" + path); err == nil {
		t.Error("got a second listener on a socket in use, want an error")
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	stacktest.Must(t, first.Close())
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("got %v, want a stale socket file", err)
	}
	mustListen(t, "unix:"+path)

	file := filepath.Join(t.TempDir(), "file")
	stacktest.Must(t, os.WriteFile(file, []byte("precious"), 0o600))
	if _, err := httpedge.Listen("unix:" + file); err == nil {
		t.Error("got a listener in the place of a file, want an error")
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != "precious" {
		t.Errorf("got %q and %v, want the file untouched", kept, err)
	}
}

// TestListenFamily connects to a listener by both families.
func TestListenFamily(t *testing.T) {
	rows := map[string][2]bool{ // by IPv4, by IPv6
		"0.0.0.0:0": {true, false}, "127.0.0.1:0": {true, false},
	}
	if ln, err := net.Listen("tcp6", "[::1]:0"); err == nil { // the machine has IPv6
		ln.Close()
		rows[":0"], rows["[::1]:0"] = [2]bool{true, true}, [2]bool{false, true}
	}
	for address, want := range rows {
		_, port, err := net.SplitHostPort(mustListen(t, address).Addr().String())
		stacktest.Must(t, err)
		for i, host := range []string{"127.0.0.1", "::1"} {
			conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
			if err == nil {
				conn.Close()
			}
			if got := err == nil; got != want[i] {
				t.Errorf("%s by %s: got connected %t, want %t", address, host, got, want[i])
			}
		}
	}
}

func TestListenOnASocketOfAGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.sock")
	group := strconv.Itoa(os.Getgid())
	mustListen(t, "unix:"+path+"?mode=0600&group="+group)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v and %v, want a socket of mode 0600", info, err)
	}
	for _, options := range []string{"mode=999", "mode=", "mode=01000", "group=", "group=nobody at all",
		"owner=x", "mode=0600&mode=0660", "%zz"} {
		name := filepath.Join(t.TempDir(), "other.sock")
		if _, err := httpedge.Listen("unix:" + name + "?" + options); err == nil {
			t.Errorf("%s: got a listener, want an error", options)
		}
	}
}

// scarce is a listener that runs out of file descriptors now and then.
type scarce struct {
	net.Listener
	failures int
}

func (s *scarce) Accept() (net.Conn, error) {
	if s.failures > 0 {
		s.failures--
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return s.Listener.Accept()
}

func TestServerSurvivesFileDescriptorExhaustion(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	stacktest.Must(t, err)
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.Public = &scarce{ln, 3} })
	if a := st.Get(t, "/api/lookup?q=8.8.8.8"); a.Status != 200 {
		t.Errorf("got %d, want 200", a.Status)
	}
}
