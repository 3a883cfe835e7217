package httpedge

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
)

// fasthttpLog logs what fasthttp reports. The arguments hold addresses and parts of requests, so
// only the fixed text before the first one is logged, with the class of the error.
type fasthttpLog struct{ log *slog.Logger }

// Printf logs at level Warn what concerns the server, and at Debug what concerns one connection.
func (l fasthttpLog) Printf(format string, args ...any) {
	text, _, _ := strings.Cut(format, "%")
	text = strings.TrimRight(text, " \"':")
	level := slog.LevelWarn
	if strings.HasPrefix(text, "error when serving connection") {
		level = slog.LevelDebug
	}
	cause := ""
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			cause = errorClass(err)
		}
	}
	l.log.Log(context.Background(), level, "fasthttp: "+text, "cause", cause)
}

// errorClass names the kind of a network error without its text, which holds addresses.
func errorClass(err error) string {
	var network net.Error
	switch {
	case errors.Is(err, net.ErrClosed):
		return "closed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed by the peer"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.As(err, &network):
		return "network"
	}
	return "other"
}
