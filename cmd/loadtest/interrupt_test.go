package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watched is what a program writes, and tells when it has written some text.
type watched struct {
	text bytes.Buffer
	want string
	seen chan struct{}
}

func (o *watched) Write(text []byte) (int, error) {
	before := strings.Contains(o.text.String(), o.want)
	o.text.Write(text)
	if !before && strings.Contains(o.text.String(), o.want) {
		close(o.seen)
	}
	return len(text), nil
}

// underWay starts a run with a server of its own, in a group of processes as a terminal makes it,
// and waits until load goes.
func underWay(t *testing.T, args ...string) (command *exec.Cmd, stdout *bytes.Buffer,
	stderr *watched) {
	t.Helper()
	gatehouse, loadtest := filepath.Join(built, "gatehouse"), filepath.Join(built, "loadtest")
	stdout, stderr = &bytes.Buffer{}, &watched{want: " left", seen: make(chan struct{})}
	command = exec.Command(loadtest, append([]string{"run", "lookup-hot", "--gatehouse", gatehouse,
		"--keys", "50", "--rate", "20", "--duration", "1m"}, args...)...)
	command.Stdout, command.Stderr, command.SysProcAttr = stdout, stderr,
		&syscall.SysProcAttr{Setpgid: true}
	command.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-stderr.seen:
	case <-time.After(5 * time.Minute):
		command.Process.Kill()
		t.Fatalf("got %v, %s, want a run", command.Wait(), stderr.text.String())
	}
	return command, stdout, stderr
}

// TestCtrlCKeepsTheFigures ends a run as a terminal does: every process of the group gets the
// signal.
func TestCtrlCKeepsTheFigures(t *testing.T) {
	dir := t.TempDir()
	page, machine := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.json")
	command, stdout, stderr := underWay(t, "--html", page, "--json", machine)
	if err := syscall.Kill(-command.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := command.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted ||
		!strings.Contains(stdout.String(), "statuses of lookup: 200 × ") ||
		!strings.Contains(stdout.String(), "INTERRUPTED after ") {
		t.Errorf("got %v, %s%s, want exit %d with the figures so far", err, stdout,
			stderr.text.String(), exitInterrupted)
	}
	for name, want := range map[string]string{page: "interrupted",
		machine: `"verdict": "interrupted"`} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("got %v, %.200s, want %q in %s", err, text, want, name)
		}
	}
}

// TestKilledRunsLeaveNoServers kills the program where it cannot end what it started.
func TestKilledRunsLeaveNoServers(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // elsewhere nothing ends them
	}
	command, _, _ := underWay(t)
	children := childrenOf(t, command.Process.Pid)
	if len(children) != 2 {
		t.Errorf("got children %v, want the server and the simulator", children)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil {
		t.Error("got a good end, want one by the signal")
	}
	for _, pid := range children {
		for deadline := time.Now().Add(5 * time.Minute); runs(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("process %s runs still, want it to end with the one that started it", pid)
			}
		}
	}
}

// childrenOf returns the processes that a process started.
func childrenOf(t *testing.T, parent int) []string {
	t.Helper()
	var children []string
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		if fields := statOf(name); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			children = append(children, filepath.Base(filepath.Dir(name)))
		}
	}
	return children
}

// statOf returns what follows the name of a process: its state, its parent and more; nil when there
// is no such process.
func statOf(name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// runs reports whether a process is there and no zombie.
func runs(pid string) bool {
	fields := statOf("/proc/" + pid + "/stat")
	return len(fields) > 0 && fields[0] != "Z"
}

// TestInterruptedSetUp ends the program before any load: there is nothing to report.
func TestInterruptedSetUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"run", "lookup-hot", "--target", fixed(t, 0)},
		{"run", "lookup-hot", "--gatehouse", filepath.Join(built, "gatehouse")},
		{"round", "--gatehouse", filepath.Join(built, "gatehouse")}} {
		var out, errs bytes.Buffer
		code := run(ctx, args, &out, &errs)
		if code != exitInterrupted || out.Len() > 0 ||
			!strings.Contains(errs.String(), "interrupted before the load began") {
			t.Errorf("%v: got %d %s%s, want %d and no report", args, code, &out, &errs,
				exitInterrupted)
		}
	}
}
