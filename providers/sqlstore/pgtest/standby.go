package pgtest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// standbyName is the name by which a server knows its standby.
const standbyName = "standby"

// NewStandby starts a standby that streams what s commits, from a HOST and PORT where s can be
// reached. Stop ends it.
func (s *Server) NewStandby(host, port string) (*Server, error) {
	standby, err := startStandby(host, port)
	if err != nil {
		return nil, fmt.Errorf("start a standby: %w", err)
	}
	return &Server{server: standby, databases: s.databases}, nil
}

func startStandby(host, port string) (_ *server, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	credential, err := owner()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if credential != nil {
		if err := os.Chown(dir, int(credential.Uid), int(credential.Gid)); err != nil {
			return nil, err
		}
	}
	backup := exec.Command(filepath.Join(bin, "pg_basebackup"), "--pgdata", s.data(),
		"--write-recovery-conf", "--checkpoint", "fast", "--no-sync", "--dbname",
		fmt.Sprintf("host=%s port=%s user=gatehouse application_name=%s", host, port, standbyName))
	backup.Dir, backup.SysProcAttr = dir, &syscall.SysProcAttr{Credential: credential}
	if output, err := backup.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w\n%s", err, output)
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	return s, s.serve(bin, s.data(), credential, false)
}

// RequireStandby lets each commit wait until the standby has it.
func (s *Server) RequireStandby() error {
	for _, statement := range []string{
		"ALTER SYSTEM SET synchronous_standby_names = '" + standbyName + "'",
		"SELECT pg_reload_conf()",
	} {
		if err := s.server.execute(statement); err != nil {
			return err
		}
	}
	for end := time.Now().Add(startTimeout); ; <-time.After(20 * time.Millisecond) {
		synchronous, err := s.server.ask("SELECT EXISTS (SELECT FROM pg_stat_replication " +
			"WHERE sync_state = 'sync' AND application_name = '" + standbyName + "')")
		if err != nil || synchronous {
			return err
		}
		if time.Now().After(end) {
			return errors.New("the standby does not become synchronous")
		}
	}
}

// Promote makes a standby a server that can be written.
func (s *Server) Promote() error {
	promoted, err := s.server.ask("SELECT pg_promote()")
	if err == nil && !promoted {
		err = errors.New("the standby is not promoted in time")
	}
	return err
}

// Kill ends all processes of the server by SIGKILL, as if its machine stopped.
func (s *Server) Kill() error {
	pid := s.server.process.Process.Pid
	// A server that stands still starts no process.
	if err := s.server.process.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("kill postgres: %w", err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return fmt.Errorf("kill postgres: %w", err)
	}
	for _, child := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(child)
		if err != nil {
			return fmt.Errorf("kill postgres: %w", err)
		}
		_ = syscall.Kill(child, syscall.SIGKILL) // fails if it has ended
	}
	_ = s.server.process.Process.Signal(syscall.SIGKILL)
	<-s.server.exited
	return s.server.removeMemory()
}

// removeMemory removes the shared memory of a server that was killed: the seventh line of its PID
// file has key and ID.
func (s *server) removeMemory() error {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return fmt.Errorf("remove shared memory: %w", err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 || len(strings.Fields(lines[6])) < 2 {
		return errors.New("remove shared memory: the PID file does not name it")
	}
	remove := exec.Command("ipcrm", "--shmem-id", strings.Fields(lines[6])[1])
	if output, err := remove.CombinedOutput(); err != nil {
		return fmt.Errorf("remove shared memory: %w: %s", err, output)
	}
	return nil
}

// ask returns the result of a query that is true or false.
func (s *server) ask(query string) (yes bool, err error) {
	db, err := sql.Open("pgx", s.url("postgres"))
	if err != nil {
		return false, err
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&yes); err != nil {
		return false, fmt.Errorf("%s: %w", query, err)
	}
	return yes, nil
}
