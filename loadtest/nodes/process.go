package nodes

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
	// stopTimeout is longer than a node drains.
	stopTimeout = 45 * time.Second
)

// process is a running program.
type process struct {
	command *exec.Cmd
	output  output
	ended   chan struct{}
	err     error       // of the program, once ended is closed
	told    atomic.Bool // to end
}

// startProcess starts a program in its own process group, so that Ctrl-C does not reach it. The
// kernel kills it when this program ends.
//
// each is called with each line that the program writes; nil = none.
func startProcess(
	path string, env []string, each func(line string), args ...string,
) (*process, error) {
	p := &process{command: exec.Command(path, args...), ended: make(chan struct{}),
		output: output{more: make(chan struct{}), each: each}}
	p.command.Env = append(os.Environ(), env...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig is sent when this thread ends
		defer close(p.ended)
		err := p.command.Start()
		started <- err
		if err == nil {
			p.err = p.command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

// await returns the first match in the output.
func (p *process) await(ctx context.Context, want *regexp.Regexp) ([]string, error) {
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	for {
		text, more := p.output.read()
		if m := want.FindStringSubmatch(text); m != nil {
			return m, nil
		}
		select {
		case <-more:
		case <-p.ended:
			return nil, fmt.Errorf("it ended: %s", p.output.tail())
		case <-timeout.C:
			return nil, fmt.Errorf("it does not start in time: %s", p.output.tail())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tell notes that the process is told to end, unless it has ended by itself.
func (p *process) tell() {
	select {
	case <-p.ended:
	default:
		p.told.Store(true)
	}
}

// crashed returns an error if the process has ended by itself.
func (p *process) crashed() error {
	select {
	case <-p.ended:
		if !p.told.Load() {
			return fmt.Errorf("it ended by itself: %v: %s", p.err, p.output.tail())
		}
	default:
	}
	return nil
}

// signal sends a signal unless the process has ended.
func (p *process) signal(s syscall.Signal) error {
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal a process: %w", err)
	}
	return nil
}

// stop sends SIGTERM and waits for the end. It kills a process that does not end.
func (p *process) stop() error {
	p.tell()
	if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
		return err
	}
	overdue := time.NewTimer(stopTimeout)
	defer overdue.Stop()
	select {
	case <-p.ended:
	case <-overdue.C:
		return errors.Join(fmt.Errorf("a process does not end after SIGTERM: %s", p.output.tail()),
			p.kill())
	}
	if p.err != nil {
		return fmt.Errorf("a process ended: %w: %s", p.err, p.output.tail())
	}
	return nil
}

func (p *process) kill() error {
	p.tell()
	err := p.signal(syscall.SIGKILL)
	<-p.ended
	return err
}

// clockTick is the unit of CPU time in /proc (USER_HZ, proc(5)).
const clockTick = 10 * time.Millisecond

// cpu returns the CPU time that the process has used, user and system.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	// The second field, the name in parentheses, may hold spaces.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, the 14th and 15th field
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB`)

// memory returns the resident memory in bytes.
func (p *process) memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
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

// output keeps the last part of what a process writes.
type output struct {
	mu   sync.Mutex
	text []byte
	more chan struct{} // closed when text grows
	each func(line string)
	part []byte // of a line for each
}

const (
	keptOutput = 64 << 10
	shownLines = 12
)

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, text...)
	if extra := len(o.text) - keptOutput; extra > keptOutput {
		o.text = append(o.text[:0], o.text[extra:]...)
	}
	close(o.more)
	o.more = make(chan struct{})
	if o.each != nil {
		o.split(text)
	}
	return len(text), nil
}

// split calls each with the lines that are complete.
func (o *output) split(text []byte) {
	o.part = append(o.part, text...)
	for {
		line, rest, ok := bytes.Cut(o.part, []byte("\n"))
		if !ok {
			return
		}
		o.each(string(line))
		o.part = rest
	}
}

func (o *output) read() (text string, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text), o.more
}

// tail returns the last lines.
func (o *output) tail() string {
	text, _ := o.read()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-shownLines):], "\n")
}
