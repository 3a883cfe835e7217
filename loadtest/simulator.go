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

// simulator controls the faults of a gatehouse sim.
type simulator struct {
	http    *http.Client
	address string
}

func newSimulator(address string) *simulator {
	return &simulator{&http.Client{Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		strings.TrimSuffix(address, "/") + "/_sim"}
}

// faults returns the current faults as JSON.
func (s *simulator) faults(ctx context.Context) (string, error) {
	var state struct {
		Settings struct {
			Faults json.RawMessage `json:"faults"`
		} `json:"settings"`
	}
	text, err := s.call(ctx, http.MethodGet, "")
	if err == nil && (json.Unmarshal(text, &state) != nil || state.Settings.Faults == nil) {
		err = errors.New("call the simulator: the response has no faults: is it a gatehouse sim?")
	}
	return string(state.Settings.Faults), err
}

// setFaults replaces all faults.
func (s *simulator) setFaults(ctx context.Context, faults string) error {
	_, err := s.call(ctx, http.MethodPut, `{"faults":`+faults+`}`)
	return err
}

func (s *simulator) call(ctx context.Context, method, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.address, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call the simulator: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("call the simulator: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("call the simulator: got status %d", response.StatusCode))
	}
	return text, errors.Join(err, response.Body.Close())
}

// outage makes the simulator fail for the middle third of a run, and notes the period. It restores
// the faults in before, even if ctx ends.
func (s *simulator) outage(ctx context.Context, before string, planned, recovery time.Duration,
	phase *atomic.Int32, note func(Period)) error {
	defer s.http.CloseIdleConnections()
	began := time.Now()
	if !pause(ctx, planned/3) {
		return nil
	}
	phase.Store(failing)
	err := s.setFaults(ctx, `[{"kind":"status","status":503}]`)
	down := Period{What: "upstream down", From: time.Since(began)}
	complete := err == nil && pause(ctx, planned/3)
	phase.Store(recovering)
	err = errors.Join(err, s.setFaults(context.WithoutCancel(ctx), before))
	down.To = time.Since(began)
	note(down)
	if err != nil || !complete {
		return err
	}
	if pause(ctx, recovery) {
		phase.Store(recovered)
	}
	return nil
}

// pause waits for d. It returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
