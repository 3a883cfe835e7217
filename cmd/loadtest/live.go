package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"gatehouse/loadtest"
)

// liveLine shows the progress of a run: on a terminal on one line that is overwritten, else a line
// every ten seconds.
type liveLine struct {
	w    io.Writer
	over bool
	name string

	mu    sync.Mutex
	shown bool      // there is text on the line
	next  time.Time // when to print the next line without a terminal
}

// progress shows how far the preparation is.
func (l *liveLine) progress(done, of int, what string) {
	l.tell(done == of, "%s: preparing, %d of %d %s", l.name, done, of, what)
}

// second shows the last second.
func (l *liveLine) second(s loadtest.Second) {
	l.tell(false, "%s: %s", l.name, s)
}

func (l *liveLine) tell(always bool, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	switch {
	case l.over:
		fmt.Fprintf(l.w, "\r\x1b[K%s", text)
		l.shown = true
	case always || time.Now().After(l.next):
		fmt.Fprintln(l.w, text)
		l.next = time.Now().Add(10 * time.Second)
	}
}

// end clears the line.
func (l *liveLine) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
	}
}

// isTerminal reports whether w is a character device other than the null device.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// findGatehouse returns the gatehouse program that belongs to this one.
func findGatehouse() (string, error) {
	var tried []string
	if own, err := os.Executable(); err == nil {
		tried = append(tried, filepath.Join(filepath.Dir(own), "gatehouse"))
	}
	for _, file := range append(tried, filepath.Join("bin", "gatehouse")) {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return filepath.Abs(file)
		}
	}
	if file, err := exec.LookPath("gatehouse"); err == nil {
		return file, nil
	}
	return "", usagef("there is no gatehouse program to start: build bin/gatehouse with make build, " +
		"or give --gatehouse, or a running server with --target")
}
