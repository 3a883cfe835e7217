package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// simulator changes what a gatehouse sim does, and nothing but its faults.
type simulator struct {
	http    *http.Client
	address string
}

func newSimulator(address string) *simulator {
	return &simulator{&http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		strings.TrimSuffix(address, "/") + "/_sim"}
}

// faults returns those that are set, as JSON.
func (s *simulator) faults(ctx context.Context) (string, error) {
	var answer struct {
		Settings struct {
			Faults json.RawMessage `json:"faults"`
		} `json:"settings"`
	}
	text, err := s.ask(ctx, http.MethodGet, "")
	if err == nil && (json.Unmarshal(text, &answer) != nil || answer.Settings.Faults == nil) {
		err = errors.New("ask the simulator: it tells no faults: is it a gatehouse sim?")
	}
	return string(answer.Settings.Faults), err
}

// setFaults replaces all faults by those.
func (s *simulator) setFaults(ctx context.Context, faults string) error {
	_, err := s.ask(ctx, http.MethodPut, `{"faults":`+faults+`}`)
	return err
}

func (s *simulator) ask(ctx context.Context, method, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.address, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the simulator: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the simulator: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("ask the simulator: it answered %d", response.StatusCode))
	}
	return text, errors.Join(err, response.Body.Close())
}

// outage lets the simulator fail for the middle third of a run, and notes when that was. The faults that it had before are there again
// afterwards, however the run ends.
func (s *simulator) outage(ctx context.Context, before string, planned, recovery time.Duration, phase *atomic.Int32, note func(Period)) error {
	defer s.http.CloseIdleConnections()
	began := time.Now()
	if !stay(ctx, planned/3) {
		return nil
	}
	phase.Store(failing)
	err := s.setFaults(ctx, `[{"kind":"status","status":503}]`)
	down := Period{What: "upstream down", From: time.Since(began)}
	stayed := err == nil && stay(ctx, planned/3)
	phase.Store(recovering)
	err = errors.Join(err, s.setFaults(context.WithoutCancel(ctx), before))
	down.To = time.Since(began)
	note(down)
	if err != nil || !stayed {
		return err
	}
	if stay(ctx, recovery) {
		phase.Store(recovered)
	}
	return nil
}

// stay waits, and reports whether ctx let it.
func stay(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
