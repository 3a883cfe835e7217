package httpedge

import (
	"fmt"
	"net"
)

// ServeConn answers the requests of one public connection that came from elsewhere than Serve's listener, such as one
// end of net.Pipe, until it ends, and closes it. MaxConnections and Shutdown know nothing of it.
func (s *Server) ServeConn(conn net.Conn) error {
	if err := s.public.ServeConn(conn); err != nil {
		return fmt.Errorf("serve connection: %w", err)
	}
	return nil
}
