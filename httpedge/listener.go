package httpedge

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// Listen opens a listener on HOST:PORT (port 0 = any free one) or on unix:/path, which may end with
// ?mode=0660&group=NAME. An IPv4 address as the host takes IPv4 connections only, an IPv6 address
// IPv6 ones, no host both.
func Listen(address string) (net.Listener, error) {
	unix, isSocket, err := parseSocket(address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if isSocket {
		return unix.listen()
	}
	ln, err := net.Listen(networkOf(address), address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return ln, nil
}

// networkOf returns the network of HOST:PORT. Without it, 0.0.0.0 would take IPv6 connections too.
func networkOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "tcp"
	}
	switch ip, err := netip.ParseAddr(host); {
	case err != nil:
		return "tcp"
	case ip.Is4():
		return "tcp4"
	}
	return "tcp6"
}

// socket is a Unix socket to listen on. Its text form is unix:/path,
// unix:/path?mode=0660&group=NAME with both or one of the options.
type socket struct {
	path  string
	mode  fs.FileMode // permission bits
	group string      // name or number of the file's group; "" = the process's
}

// socketMode is the mode of a socket whose text names none.
const socketMode = 0o660

// parseSocket parses the text form of a socket. isSocket is false for a text that does not begin
// with unix:, and the error nil then.
func parseSocket(text string) (s socket, isSocket bool, err error) {
	rest, isSocket := strings.CutPrefix(text, "unix:")
	if !isSocket {
		return s, false, nil
	}
	path, options, _ := strings.Cut(rest, "?")
	s = socket{path: path, mode: socketMode}
	values, err := url.ParseQuery(options)
	if err != nil {
		return s, true, errSocketOptions
	}
	for name, all := range values {
		switch {
		case name == "mode" && len(all) == 1:
			mode, err := strconv.ParseUint(all[0], 8, 9)
			if err != nil {
				return s, true, errors.New("mode must be octal, from 0000 to 0777")
			}
			s.mode = fs.FileMode(mode)
		case name == "group" && len(all) == 1 && all[0] != "":
			s.group = all[0]
		default:
			return s, true, errSocketOptions
		}
	}
	return s, true, nil
}

var errSocketOptions = errors.New("the options of a socket are mode and group, each once, as in " +
	"unix:/run/gatehouse.sock?mode=0660&group=www-data")

// listen opens the socket. A stale file is replaced.
func (s socket) listen() (net.Listener, error) {
	if err := removeStale(s.path); err != nil {
		return nil, err
	}
	ln, err := net.Listen("unix", s.path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := s.setOwner(); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), ln.Close())
	}
	return ln, nil
}

func (s socket) setOwner() error {
	if s.group != "" {
		id, err := groupID(s.group)
		if err != nil {
			return err
		}
		if err := os.Chown(s.path, -1, id); err != nil {
			return fmt.Errorf("give the socket to its group: %w", err)
		}
	}
	return os.Chmod(s.path, s.mode)
}

// groupID returns the number of a group that is given by name or number.
func groupID(group string) (int, error) {
	if id, err := strconv.ParseUint(group, 10, 31); err == nil {
		return int(id), nil
	}
	found, err := user.LookupGroup(group)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(found.Gid)
}

// removeStale removes the socket file at path unless a process accepts connections there.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listen: %s exists and is not a socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("listen: %s is in use", path), conn.Close())
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

// isLocal reports whether only this machine reaches a listener on addr.
func isLocal(addr net.Addr) bool {
	switch a := addr.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	}
	return false
}
