package nodes

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

// logLine is a line that a node has written.
type logLine struct {
	node   int // its index
	text   string
	at     time.Time // when it was read
	level  string    // "" = it is no line of the log
	msg    string
	reason string
}

// logLines keeps some lines of all nodes.
type logLines struct {
	keep func(*logLine) bool

	mu  sync.Mutex
	all []logLine
}

// note takes a line of a node.
func (l *logLines) note(node int, text string) {
	line := parseLine(node, text)
	if !l.keep(&line) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *logLines) lines() []logLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func parseLine(node int, text string) logLine {
	line := logLine{node: node, text: text, at: time.Now()}
	var read struct {
		Level  string `json:"level"`
		Msg    string `json:"msg"`
		Reason string `json:"reason"`
	}
	if json.Unmarshal([]byte(text), &read) == nil {
		line.level, line.msg, line.reason = read.Level, read.Msg, read.Reason
	}
	return line
}

// isBad reports whether a node should not write the line while nothing is wrong: it is an error, or
// the text of a crash.
func (l *logLine) isBad() bool { return l.level == "ERROR" || l.level == "" && l.text != "" }

// databaseLines begin the lines at level error that a database causes that is away or slow, and in
// the line of a start without it.
var databaseLines = []string{
	"access tokens are refused until changes by other processes can be read",
	"a write or read of the identity service failed",
	"the database cannot be read",
	"the database cannot be written",
	"admin request failed",
	"gatehouse: GATEHOUSE_DATABASE_URL: open store: ",
}

// isAboutDatabase reports whether a database that is away or slow may cause the line.
func (l *logLine) isAboutDatabase() bool {
	text := l.msg
	if l.level == "" {
		text = l.text
	}
	return slices.ContainsFunc(databaseLines,
		func(begin string) bool { return strings.HasPrefix(text, begin) })
}
