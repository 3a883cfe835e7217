package nodes_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/loadtest/nodes"
)

var (
	demoRequest = regexp.MustCompile(`curl -i '([^']+)' -H 'Authorization: (Bearer [^']+)'`)
	demoProcess = regexp.MustCompile(`(?m)^  node-\d .* PID (\d+)$`)
)

// TestDemo starts a demo, does what it prints, kills a node, and stops it. Nothing is left.
func TestDemo(t *testing.T) {
	folder, err := os.MkdirTemp("", "demo") // that of a test is closed to PostgreSQL's user
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", folder)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := nodes.Demo(ctx, nodes.Config{Program: gatehouse, Nodes: 3, Cluster: true}, writer)
		writer.Close()
		ended <- err
	}()
	lines := bufio.NewScanner(reader)
	text := until(lines, "Stop with Ctrl-C")
	request, processes := demoRequest.FindStringSubmatch(text),
		demoProcess.FindAllStringSubmatch(text, -1)
	if request == nil || len(processes) != 3 {
		t.Fatalf("got no request to try or not three nodes in\n%s%v", text, <-ended)
	}
	for range 3 {
		if got := profile(t, request[1], request[2]); got != http.StatusOK {
			t.Errorf("got status %d for a profile, want 200", got)
		}
	}
	killed, err := strconv.Atoi(processes[2][1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if text := until(lines, "node-3 has ended"); !strings.Contains(text, "starts again") {
		t.Errorf("got %s, want the end of node-3", text)
	}
	if got := profile(t, request[1], request[2]); got != http.StatusOK {
		t.Errorf("got status %d for a profile after a crash, want 200", got)
	}
	stop()
	go io.Copy(io.Discard, reader)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, p := range processes {
		if _, err := os.Stat("/proc/" + p[1]); err == nil {
			t.Errorf("got process %s after the end, want none", p[1])
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("got %v and error %v in the folder for temporary files, want nothing", left, err)
	}
}

// until returns the lines to the first that contains part, or all.
func until(lines *bufio.Scanner, part string) string {
	var text strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&text, lines.Text())
		if strings.Contains(lines.Text(), part) {
			break
		}
	}
	return text.String()
}

// profile requests a profile until it gets a response, and returns the status.
func profile(t *testing.T, url, authorization string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", authorization)
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}
