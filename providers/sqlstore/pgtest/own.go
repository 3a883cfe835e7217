package pgtest

import (
	"fmt"
	"net"
	"strconv"
)

// Server is a PostgreSQL server whose user stops it and starts it again. It does not sync to disk:
// it loses data if the machine stops, but not when it crashes.
type Server struct {
	server    *server
	databases int
}

// NewServer starts a server of its own. Stop ends it.
func NewServer() (*Server, error) {
	s, err := start(false)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return &Server{server: s}, nil
}

// CreateDatabase creates an empty database and returns its URL.
func (s *Server) CreateDatabase() (url string, err error) {
	s.databases++
	name := "test" + strconv.Itoa(s.databases)
	return s.server.url(name), s.server.execute("CREATE DATABASE " + name)
}

// Address returns the HOST:PORT where the server listens, also after Resume.
func (s *Server) Address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.server.port))
}

// Crash ends the server at once, as an immediate shutdown does. Its clients lose their connections.
func (s *Server) Crash() error { return s.server.end() }

// Resume starts the server again after Crash, on the same port. It waits for the recovery.
func (s *Server) Resume() error {
	bin, err := programs()
	if err != nil {
		return err
	}
	credential, err := owner()
	if err != nil {
		return err
	}
	return s.server.serve(bin, s.server.data(), credential, false)
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error { return s.server.stop() }
