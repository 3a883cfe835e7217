package httpedge

import (
	"net"

	"golang.org/x/sys/unix"
)

// maxUnsent is about how much of a response the kernel holds that it has not sent yet, in bytes.
// By default it holds up to 4 MiB, and takes more when a third of that is sent: a slow reader would
// look like one who is gone.
const maxUnsent = 64 << 10

// limitUnsent sets maxUnsent for a TCP connection. A kernel that cannot do so keeps its default.
func limitUnsent(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
	})
}
