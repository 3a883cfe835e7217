package gatehouse_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to start, what make builds before included, and to end.
const patience = time.Minute

// server is a command that serves until it is interrupted.
type server struct {
	t       *testing.T
	command *exec.Cmd
	ready   chan struct{} // closed with the line that says so
	ended   chan struct{}
	printed strings.Builder // to be read after the end
}

// startServer starts a command of plain words, which variables may precede, in the clean copy, and waits for a line
// that holds ready. The test interrupts it at the latest.
func startServer(t *testing.T, command string, env []string, ready string) *server {
	t.Helper()
	words := strings.Fields(command)
	for strings.Contains(words[0], "=") {
		env, words = append(env[:len(env):len(env)], words[0]), words[1:]
	}
	s := &server{t: t, ready: make(chan struct{}), ended: make(chan struct{})}
	s.command = exec.Command(words[0], words[1:]...)
	s.command.Dir, s.command.Env = cleanCopy, env
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.command.Stdout, s.command.Stderr = write, write
	err = errors.Join(s.command.Start(), write.Close())
	if err != nil {
		t.Fatal(errors.Join(err, read.Close()))
	}
	go s.watch(read, ready)
	t.Cleanup(s.interrupt)
	select {
	case <-s.ready:
	case <-s.ended:
		t.Fatalf("%s: got an end, want a server:\n%s", command, &s.printed)
	case <-time.After(patience):
		t.Fatalf("%s: got nothing served in %v", command, patience)
	}
	return s
}

// watch reads what the server prints to its end.
func (s *server) watch(output io.ReadCloser, ready string) {
	defer close(s.ended)
	lines, awaited := bufio.NewScanner(output), true
	for lines.Scan() {
		s.printed.WriteString(lines.Text() + "\n")
		if awaited && strings.Contains(lines.Text(), ready) {
			close(s.ready)
			awaited = false
		}
	}
	if err := errors.Join(lines.Err(), output.Close()); err != nil {
		s.printed.WriteString(err.Error())
	}
}

// interrupt ends the server as Ctrl-C does and checks that it ends in order: with exit code 0, and when make runs it
// without a complaint of make, which itself dies of the signal.
func (s *server) interrupt() {
	s.t.Helper()
	if s.command.ProcessState != nil {
		return // it was before
	}
	group := -s.command.Process.Pid
	if err := syscall.Kill(group, syscall.SIGINT); err != nil {
		s.t.Errorf("%v: interrupt: %v", s.command.Args, err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Errorf("%v: still ran %v after SIGINT", s.command.Args, patience)
		if err := syscall.Kill(group, syscall.SIGKILL); err != nil {
			s.t.Error(err)
		}
		<-s.ended
	}
	err := s.command.Wait()
	if s.command.Args[0] == "make" {
		if strings.Contains(s.printed.String(), "***") {
			s.t.Errorf("%v: got a failure after SIGINT, want none:\n%s", s.command.Args, &s.printed)
		}
		return
	}
	if err != nil {
		s.t.Errorf("%v: got %v after SIGINT, want exit code 0:\n%s", s.command.Args, err, &s.printed)
	}
}
