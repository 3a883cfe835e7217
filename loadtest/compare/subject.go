package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// subject is a server in its own process, and the clients that send it requests.
type subject struct {
	process *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Scanner
	log     string
	clients []*client
}

// startSubject starts this program as a server of that kind and connects the clients.
func startSubject(t *trial, kind, dir, profile string, requests func(host string) [][]byte,
	connections int) (*subject, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	s := &subject{process: exec.Command(program, serveCommand, t.name, kind, dir, profile),
		log: accessLog(dir)}
	s.process.Stderr = os.Stderr
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	if s.input, err = s.process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	s.output = bufio.NewScanner(out)
	if err := s.connect(requests, t.proof, connections); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

func (s *subject) connect(requestsFor func(host string) [][]byte, proof string,
	connections int) error {
	address, err := s.readLine()
	if err != nil {
		return err
	}
	requests := requestsFor(address)
	for i := range connections {
		c, err := newClient(address, requests, proof, i*len(requests)/connections)
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	return nil
}

// readLine reads a line that the server prints.
func (s *subject) readLine() (string, error) {
	if !s.output.Scan() {
		return "", errors.Join(errors.New("the server printed nothing"), s.output.Err())
	}
	return s.output.Text(), nil
}

// measure sends n requests, divided among the clients, and measures their cost.
func (s *subject) measure(n int) (reading, error) {
	if err := os.Truncate(s.log, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return reading{}, fmt.Errorf("empty the access log: %w", err)
	}
	each := max(1, n/len(s.clients))
	before, err := s.cpu()
	if err != nil {
		return reading{}, err
	}
	start := time.Now()
	if err := s.sendEach(each); err != nil {
		return reading{}, err
	}
	elapsed := time.Since(start)
	after, err := s.cpu()
	if err != nil {
		return reading{}, err
	}
	sent := each * len(s.clients)
	return reading{cpu: (after - before) / time.Duration(sent),
		rate: float64(sent) / elapsed.Seconds()}, nil
}

// sendEach has every client send n requests.
func (s *subject) sendEach(n int) error {
	errs := make([]error, len(s.clients))
	var wg sync.WaitGroup
	for i, c := range s.clients {
		wg.Go(func() { errs[i] = c.run(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// cpu returns the CPU time that the server's process has used so far.
func (s *subject) cpu() (time.Duration, error) {
	if _, err := io.WriteString(s.input, "\n"); err != nil {
		return 0, fmt.Errorf("request the CPU time: %w", err)
	}
	line, err := s.readLine()
	if err != nil {
		return 0, err
	}
	micros, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	return time.Duration(micros) * time.Microsecond, nil
}

// end closes the connections and the server's input, which ends its process. It kills the process
// after 20 seconds.
func (s *subject) end() error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.conn.Close())
	}
	errs = append(errs, s.input.Close())
	kill := time.AfterFunc(20*time.Second, func() { s.process.Process.Kill() })
	defer kill.Stop()
	return errors.Join(append(errs, s.process.Wait())...)
}
