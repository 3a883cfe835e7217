// Package lab starts the programs that load tests and tests of whole servers measure, each in its
// own process.
package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// startTimeout only keeps a start from hanging.
	startTimeout = 2 * time.Minute
	// stopTimeout is longer than a server drains.
	stopTimeout = 45 * time.Second
	// pollInterval is how often a starting program is looked at.
	pollInterval = 5 * time.Millisecond
)

// Process is a running program. Its methods are safe for concurrent use.
type Process struct {
	command *exec.Cmd
	output  output
	ended   chan struct{}
	err     error       // of the program, once ended is closed
	told    atomic.Bool // to end
}

// Start starts a program in its own process group, so that Ctrl-C does not reach it: its figures
// are needed until the end. On Linux, the kernel kills it when this program ends.
//
// Memory keeps the last part of what it writes, unless the command's Stderr is a regular file. each
// is called with each line that is kept; nil = none.
func Start(command *exec.Cmd, each func(line string)) (*Process, error) {
	p := &Process{command: command, ended: make(chan struct{}), output: output{each: each}}
	command.Stdout = &p.output
	if command.Stderr == nil {
		command.Stderr = &p.output
	}
	command.SysProcAttr = ownGroup()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel kills the process when this thread ends
		defer close(p.ended)
		err := command.Start()
		started <- err
		if err == nil {
			p.err = command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	return p, nil
}

// Await waits until a line of the output matches, and returns the match.
func (p *Process) Await(ctx context.Context, want *regexp.Regexp) (match []string, err error) {
	err = p.poll(ctx, func() bool {
		match = want.FindStringSubmatch(p.Output())
		return match != nil
	})
	return match, err
}

// poll waits until done returns true. It fails if the process ends before.
func (p *Process) poll(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("it does not start in time"))
	defer cancel()
	for !done() {
		select {
		case <-p.ended:
			if done() {
				return nil
			}
			return fmt.Errorf("it ended: %v: %s", p.err, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), p.tail())
		case <-time.After(pollInterval):
		}
	}
	return nil
}

// PID returns the process's number.
func (p *Process) PID() int { return p.command.Process.Pid }

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Crashed returns an error if the process has ended by itself, without Stop or Kill.
func (p *Process) Crashed() error {
	select {
	case <-p.ended:
		if !p.told.Load() {
			return fmt.Errorf("it ended by itself: %v: %s", p.err, p.tail())
		}
	default:
	}
	return nil
}

// Signal sends a signal unless the process has ended.
func (p *Process) Signal(s os.Signal) error {
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal a process: %w", err)
	}
	return nil
}

// tell notes that the process is told to end, unless it has ended by itself.
func (p *Process) tell() {
	select {
	case <-p.ended:
	default:
		p.told.Store(true)
	}
}

// Stop sends SIGTERM and waits for the end, which must be a good one. It kills a process that does
// not end.
func (p *Process) Stop() error {
	p.tell()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("a process does not end after SIGTERM: %s", p.tail()), p.Kill())
	}
	if p.err != nil {
		return fmt.Errorf("a process ended: %w: %s", p.err, p.tail())
	}
	return nil
}

// Kill ends the process at once.
func (p *Process) Kill() error {
	p.tell()
	err := p.Signal(syscall.SIGKILL)
	<-p.ended
	return err
}

// CPU returns the CPU time that the process has used, user and system.
func (p *Process) CPU() (time.Duration, error) {
	used, err := cpuTime(p.PID())
	select {
	case <-p.ended:
		return p.command.ProcessState.UserTime() + p.command.ProcessState.SystemTime(), nil
	default:
		return used, err
	}
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB`)

// Memory returns the resident memory in bytes. It needs Linux.
func (p *Process) Memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("read the memory: %w", err)
	}
	m := resident.FindSubmatch(text)
	if m == nil {
		return 0, errors.New("read the memory: the process has ended")
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	return n << 10, err
}

// Output returns what the process wrote: the last part, or all of its file.
func (p *Process) Output() string {
	text := p.output.read()
	if log, ok := p.command.Stderr.(*os.File); ok {
		logged, _ := os.ReadFile(log.Name()) // it may be gone
		text += string(logged)
	}
	return text
}

const shownLines = 12

// tail returns the last lines.
func (p *Process) tail() string {
	lines := strings.Split(strings.TrimSpace(p.Output()), "\n")
	return strings.Join(lines[max(0, len(lines)-shownLines):], "\n")
}

// output keeps the last part of what a process writes.
type output struct {
	mu   sync.Mutex
	kept []byte
	each func(line string)
	part []byte // of a line for each
}

const keptOutput = 64 << 10

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, text...)
	if extra := len(o.kept) - keptOutput; extra > keptOutput {
		o.kept = append(o.kept[:0], o.kept[extra:]...)
	}
	if o.each == nil {
		return len(text), nil
	}
	o.part = append(o.part, text...)
	for {
		line, rest, ok := bytes.Cut(o.part, []byte("\n"))
		if !ok {
			return len(text), nil
		}
		o.each(string(line))
		o.part = rest
	}
}

func (o *output) read() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.kept)
}
