package stacktest

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"
)

// Log holds everything that was logged. It is safe for concurrent use.
type Log struct {
	t       testing.TB
	buffers []interface{ Flush() error } // of the nodes; nil while none runs

	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends log output of the service.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// forget drops everything so far.
func (l *Log) forget() {
	l.flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// flush has the nodes write what they have logged.
func (l *Log) flush() {
	for _, buffer := range l.buffers {
		if err := buffer.Flush(); err != nil {
			l.t.Errorf("flush log: %v", err)
		}
	}
}

// String returns everything so far.
func (l *Log) String() string {
	l.flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Records returns the lines so far whose message is msg, in the order of their times.
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
	slices.SortStableFunc(found, func(a, b map[string]any) int { return timeOf(a).Compare(timeOf(b)) })
	return found
}

// timeOf returns the time of a record.
func timeOf(record map[string]any) time.Time {
	text, _ := record["time"].(string)
	at, _ := time.Parse(time.RFC3339Nano, text) // a record without one comes first
	return at
}
