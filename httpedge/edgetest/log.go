package edgetest

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"

	"gatehouse/httpedge"
)

// Log holds everything that was logged. It is safe for concurrent use.
type Log struct {
	t       testing.TB
	buffers []*httpedge.LogBuffer // of the nodes; nil while none runs

	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends log output of the service.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns everything so far.
func (l *Log) String() string {
	for _, buffer := range l.buffers {
		if err := buffer.Flush(); err != nil {
			l.t.Errorf("flush log: %v", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Records returns the lines so far whose message is msg.
func (l *Log) Records(msg string) []map[string]any {
	l.t.Helper()
	var found []map[string]any
	for line := range bytes.Lines([]byte(l.String())) {
		var record map[string]any
		if err := json.Unmarshal(line, &record); err != nil {
			l.t.Fatalf("got log line %q, want JSON", line)
		}
		if record["msg"] == msg {
			found = append(found, record)
		}
	}
	return found
}
