// Package pgtest runs a PostgreSQL server for tests, with the programs of Debian's package
// postgresql: in a temporary folder, on a free loopback port, and until the tests end.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is a running PostgreSQL server.
type server struct {
	dir     string
	port    int
	process *exec.Cmd
	output  bytes.Buffer
	exited  chan struct{}

	mu    sync.Mutex
	admin *pgx.Conn // kept, since the server starts a process for each connection
}

const startTimeout = 30 * time.Second

// start creates a database cluster and starts its server.
func start(durable bool) (*server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	credential, err := owner()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent(durable), "pgtest")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	if err := s.startIn(bin, credential, durable); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// inMemory is where Linux has a file system in memory. Creating a database there takes half the time.
const inMemory = "/dev/shm"

// parent returns the folder for the folder of a server: in memory, if data may be lost and there is
// room for a few hundred small databases.
func parent(durable bool) string {
	var volume syscall.Statfs_t
	if durable || syscall.Statfs(inMemory, &volume) != nil ||
		volume.Bavail*uint64(volume.Bsize) < 4<<30 {
		return os.TempDir()
	}
	return inMemory
}

func (s *server) startIn(bin string, credential *syscall.Credential, durable bool) error {
	if credential != nil {
		if err := os.Chown(s.dir, int(credential.Uid), int(credential.Gid)); err != nil {
			return err
		}
	}
	data := s.data()
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "gatehouse", "-A",
		"trust", "-N", "-E", "UTF8", "--locale=C")
	initdb.Dir, initdb.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: credential}
	if output, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, output)
	}
	var err error
	for range 3 { // another process may take the free port
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.serve(bin, data, credential, durable); err == nil {
			return nil
		}
	}
	return err
}

func (s *server) serve(bin, data string, credential *syscall.Credential, durable bool) error {
	s.output.Reset()
	s.process = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", s.dir, "-p",
		strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=400", "-c",
		"shared_buffers=64MB",
		"-c", "fsync="+strconv.FormatBool(durable), "-c", "full_page_writes="+
			strconv.FormatBool(durable))
	s.process.Dir, s.process.Stderr = s.dir, &s.output
	s.process.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Setpgid: true,
		Pdeathsig: syscall.SIGINT}
	started := make(chan error)
	s.exited = make(chan struct{})
	go func(process *exec.Cmd, exited chan struct{}) {
		runtime.LockOSThread() // Pdeathsig is sent when this thread ends
		err := process.Start()
		started <- err
		if err == nil {
			_ = process.Wait() // its exit status does not matter
		}
		close(exited)
	}(s.process, s.exited)
	if err := <-started; err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	return s.awaitReady()
}

func (s *server) awaitReady() (err error) {
	deadline := time.After(startTimeout)
	for {
		if s.admin, err = pgx.Connect(context.Background(), s.url("postgres")); err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("postgres ended:\n%s", s.output.String())
		case <-deadline:
			return errors.Join(fmt.Errorf("wait for postgres: %w", err), s.end())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// execute executes a statement in the database postgres.
func (s *server) execute(statement string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.admin.Exec(context.Background(), statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func (s *server) url(database string) string {
	return fmt.Sprintf("postgres://gatehouse@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// data returns the folder of the database cluster.
func (s *server) data() string { return filepath.Join(s.dir, "data") }

// end stops the server without waiting for its clients.
func (s *server) end() error {
	if s.process == nil || s.process.Process == nil {
		return nil
	}
	if s.admin != nil {
		_ = s.admin.Close(context.Background()) // fails if the server has ended
	}
	_ = s.process.Process.Signal(syscall.SIGQUIT) // fails if it has ended
	select {
	case <-s.exited:
		return nil
	case <-time.After(startTimeout):
		return errors.New("postgres does not end")
	}
}

// stop stops the server and removes its folder.
func (s *server) stop() error { return errors.Join(s.end(), os.RemoveAll(s.dir)) }

// programs returns the folder with initdb and postgres of the newest installed version.
func programs() (string, error) {
	var candidates []string
	if output, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(output)))
	}
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	for _, dir := range append(installed, candidates...) {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			candidates = append(candidates, dir)
		}
	}
	for i := len(candidates) - 1; i >= 0; i-- {
		if _, err := os.Stat(filepath.Join(candidates[i], "postgres")); err == nil {
			return candidates[i], nil
		}
	}
	return "", errors.New("PostgreSQL's server is not installed (apt-get install postgresql)")
}

// owner returns the user that runs the server, which must not be root; nil = this process's user.
func owner() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil,
			fmt.Errorf("PostgreSQL's server is not installed (apt-get install postgresql): %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
