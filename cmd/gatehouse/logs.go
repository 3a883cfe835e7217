package main

import (
	"log/slog"

	"gatehouse/httpedge"
)

// logs is the log of the process, on stderr, and the buffer before it.
type logs struct {
	*slog.Logger
	buffer *httpedge.LogBuffer
}

// openLog starts the log that c asks for. Close ends it.
func (p *program) openLog(c config) *logs {
	buffer := httpedge.NewLogBuffer(p.stderr)
	return &logs{slog.New(httpedge.NewLogHandler(buffer, c.LogLevel, c.LogFormat == "json")), buffer}
}

// Close writes out what is left.
func (l *logs) Close() error { return l.buffer.Close() }

// warnUnknown says which variables look like settings and are none. Kubernetes sets some for a service by that name, so
// that they are no reason to stop.
func (p *program) warnUnknown(logger *slog.Logger) {
	for _, name := range p.environment.unknown() {
		logger.Warn("unknown variable in the environment", "name", name)
	}
}
