//go:build programs

package programs_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.WriteString(line + "\n")
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs a program until the test ends. It returns when the program has printed ready. When the
// test fails, it logs what the program has printed.
func start(t *testing.T, ready string, command *exec.Cmd) *output {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = in, in
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	printed, isReady := &output{}, make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines, once := bufio.NewScanner(out), sync.Once{}
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			printed.add(lines.Text())
			if strings.Contains(lines.Text(), ready) {
				once.Do(func() { close(isReady) })
			}
		}
	}()
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
		out.Close()
		<-ended
		if t.Failed() {
			t.Logf("%s printed:\n%s", filepath.Base(command.Path), printed)
		}
	})
	select {
	case <-isReady:
	case <-ended:
		t.Fatalf("%s ended before it was ready:\n%s", command.Path, printed)
	case <-time.After(timeout):
		t.Fatalf("%s is not ready:\n%s", command.Path, printed)
	}
	return printed
}

// awaitPort waits until a program listens on a port.
func awaitPort(t *testing.T, port int) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			connection.Close()
			return
		}
		if time.Since(begin) > timeout {
			t.Fatal(err)
		}
	}
}

// freePort returns a port on loopback that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// node returns the command of an app.
func node(t *testing.T, script string, environment map[string]string) *exec.Cmd {
	t.Helper()
	if _, err := os.Stat("apps/node_modules/express"); err != nil {
		t.Fatalf("got %v, want the apps installed: make test-clients", err)
	}
	command := withEnvironment(exec.Command("node", script), environment)
	command.Dir = "apps"
	return command
}

// tool returns the path of a program that scripts/programs has built.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../../.tools/programs", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("got %v, want %s installed: make test-clients", err, name)
	}
	return path
}

func withEnvironment(command *exec.Cmd, environment map[string]string) *exec.Cmd {
	command.Env = os.Environ()
	for name, value := range environment {
		command.Env = append(command.Env, fmt.Sprintf("%s=%s", name, value))
	}
	return command
}
