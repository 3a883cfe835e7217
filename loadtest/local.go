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

// startTimeout is the time in which a process must start to serve.
const startTimeout = 30 * time.Second

// Local is a gatehouse and a simulated upstream on this machine, each in its own process.
type Local struct {
	Target
	Began     time.Time // start of the server's process
	dir       string
	processes []*process
}

// StartLocal starts both processes from a gatehouse program. database is a URL; "" = SQLite in a
// new temporary folder. settings are more environment variables (NAME=VALUE) for the server.
func StartLocal(ctx context.Context, program, database string,
	settings ...string) (_ *Local, err error) {
	l := &Local{Target: Target{Own: true}}
	if l.dir, err = os.MkdirTemp("", "gatehouse-load"); err != nil {
		return nil, fmt.Errorf("create a folder: %w", err)
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
	init.Env, init.SysProcAttr = env, ownProcessGroup()
	var stderr bytes.Buffer
	init.Stderr = &stderr
	text, err := init.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%s init: %w: %s", program, err, bytes.TrimSpace(stderr.Bytes()))
	}
	var operator struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(text, &operator); err != nil {
		return nil, fmt.Errorf("read the operator: %w", err)
	}
	l.ClientID, l.ClientSecret = operator.ID, operator.Secret
	if err := l.startSimulator(ctx, program); err != nil {
		return nil, err
	}
	return l, l.startServer(ctx, program, append(env, settings...))
}

var simulatorAddress = regexp.MustCompile(`interface at (http://\S+)`)

func (l *Local) startSimulator(ctx context.Context, program string) error {
	p, err := startProcess(exec.Command(program, "sim", "--listen", "127.0.0.1:0",
		"--latency", "20ms"))
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
	server := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--admin-listen",
		"127.0.0.1:0", "--log-format", "json", "--trusted-proxies", "127.0.0.1/32", "--ip-provider",
		"sim", "--ip-api-base", l.Simulator, "--breaker-cooldown", localCooldown.String())
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

// Stop stops both processes, waits for them, and removes the folder.
func (l *Local) Stop() error {
	var errs []error
	for i := len(l.processes) - 1; i >= 0; i-- {
		errs = append(errs, l.processes[i].stop())
	}
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

// process is a running program. Its output is read to the end; the last ten lines are kept.
type process struct {
	command *exec.Cmd
	lines   chan string // output, for await
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
	command.Stdout, command.Stderr, command.SysProcAttr = writer, writer, ownProcessGroup()
	p := &process{command: command, lines: make(chan string, 64), ended: make(chan struct{})}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", command.Path, err), reader.Close(),
			writer.Close())
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
		default: // await has returned
		}
		p.mu.Lock()
		p.tail = append(p.tail[max(0, len(p.tail)-9):], lines.Text())
		p.mu.Unlock()
	}
}

// await returns the first line that matches.
func (p *process) await(ctx context.Context, want *regexp.Regexp) ([]string, error) {
	timeout := time.NewTimer(startTimeout)
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
			return nil, errors.New("it did not start to serve in time")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// stop sends SIGTERM, and kills the process after 20 seconds.
func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil &&
		!errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end a process: %w", err)
	}
	overdue := time.AfterFunc(20*time.Second, func() { p.command.Process.Kill() })
	defer overdue.Stop()
	<-p.ended
	p.read.Wait()
	return p.err
}
