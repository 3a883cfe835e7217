package loadtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// startPatience is how long a process may take to serve.
const startPatience = 30 * time.Second

// Local is a gatehouse and a simulator of its upstream, each in a process of its own on this machine.
type Local struct {
	Target
	Began     time.Time // when the server's process was started
	dir       string
	processes []*process
}

// StartLocal starts both from a gatehouse program, on SQLite in a new folder, with more settings for the server if
// any are given. database is a URL, "" = SQLite in that folder.
func StartLocal(ctx context.Context, program, database string, settings ...string) (_ *Local, err error) {
	l := &Local{Target: Target{Own: true}}
	if l.dir, err = os.MkdirTemp("", "gatehouse-load"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Stop())
		}
	}()
	if database == "" {
		database = "sqlite:" + filepath.Join(l.dir, "gatehouse.db")
	}
	env := append(os.Environ(), "GATEHOUSE_DATABASE_URL="+database)
	init := exec.CommandContext(ctx, program, "init", "--json", "--new-operator")
	init.Env, init.SysProcAttr = env, apart()
	var said bytes.Buffer
	init.Stderr = &said
	text, err := init.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%s init: %w: %s", program, err, bytes.TrimSpace(said.Bytes()))
	}
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(text, &made); err != nil {
		return nil, fmt.Errorf("read the operator: %w", err)
	}
	l.ClientID, l.ClientSecret = made.ID, made.Secret
	if err := l.startSimulator(ctx, program); err != nil {
		return nil, err
	}
	return l, l.startServer(ctx, program, append(env, settings...))
}

var simulatorAddress = regexp.MustCompile(`interface at (http://\S+)`)

func (l *Local) startSimulator(ctx context.Context, program string) error {
	p, err := startProcess(exec.Command(program, "sim", "--listen", "127.0.0.1:0", "--latency", "20ms"))
	if err != nil {
		return err
	}
	l.processes = append(l.processes, p)
	line, err := p.await(ctx, simulatorAddress)
	if err != nil {
		return fmt.Errorf("start the simulator: %w", err)
	}
	l.Simulator = line[1]
	return nil
}

var serving = regexp.MustCompile(`"msg":"serving","listen":"([^"]+)","admin_listen":"([^"]+)"(?:,"version":"([^"]*)")?`)

func (l *Local) startServer(ctx context.Context, program string, env []string) error {
	server := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-format", "json",
		"--trusted-proxies", "127.0.0.0/8", "--ip-provider", "sim", "--ip-api-base", l.Simulator, "--breaker-cooldown", localCooldown.String())
	server.Env = env
	l.Began = time.Now()
	p, err := startProcess(server)
	if err != nil {
		return err
	}
	l.processes = append(l.processes, p)
	line, err := p.await(ctx, serving)
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	l.Base, l.Admin, l.Version, l.Own = "http://"+line[1], "http://"+line[2], line[3], true
	return nil
}

// Stop ends both processes, waits for them, and removes the folder.
func (l *Local) Stop() error {
	var errs []error
	for i := len(l.processes) - 1; i >= 0; i-- {
		errs = append(errs, l.processes[i].stop())
	}
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

// process is a running program whose output is read to its end; of what it logs the last lines are kept.
type process struct {
	command *exec.Cmd
	lines   chan string // what it wrote until it served
	read    sync.WaitGroup
	ended   chan struct{}
	err     error

	mu   sync.Mutex
	tail []string
}

func startProcess(command *exec.Cmd) (*process, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	command.Stdout, command.Stderr, command.SysProcAttr = writer, writer, apart()
	p := &process{command: command, lines: make(chan string, 64), ended: make(chan struct{})}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", command.Path, err), reader.Close(), writer.Close())
	}
	p.read.Go(func() { p.follow(reader) })
	go func() {
		defer close(p.ended)
		p.err = errors.Join(command.Wait(), writer.Close())
	}()
	return p, nil
}

func (p *process) follow(output io.ReadCloser) {
	defer output.Close()
	defer close(p.lines)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		select {
		case p.lines <- lines.Text():
		default: // nobody waits for a line any more
		}
		p.mu.Lock()
		p.tail = append(p.tail[max(0, len(p.tail)-9):], lines.Text())
		p.mu.Unlock()
	}
}

// await returns the first line that matches.
func (p *process) await(ctx context.Context, want *regexp.Regexp) ([]string, error) {
	timeout := time.NewTimer(startPatience)
	defer timeout.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return nil, fmt.Errorf("it ended: %q", p.tail)
			}
			if m := want.FindStringSubmatch(line); m != nil {
				return m, nil
			}
		case <-timeout.C:
			return nil, errors.New("it does not serve")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// stop asks the process to end, and makes it end when it takes too long.
func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end a process: %w", err)
	}
	overdue := time.AfterFunc(20*time.Second, func() { p.command.Process.Kill() })
	defer overdue.Stop()
	<-p.ended
	p.read.Wait()
	return p.err
}
