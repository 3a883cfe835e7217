//go:build !linux

package httpedge

import "net"

// limitUnsent leaves the default of the system.
func limitUnsent(net.Conn) {}
