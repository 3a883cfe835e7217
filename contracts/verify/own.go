package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"gatehouse/contracts"
	"gatehouse/contracts/matching"
	"gatehouse/contracts/report"
)

// maxBody limits the body of a response, in bytes.
const maxBody = 64 << 20

// own is the engine of this project: it needs no library.
type own struct {
	recorder *recorder
	client   *http.Client
}

func newOwn(r *recorder) engine {
	return &own{r, &http.Client{Timeout: requestTimeout,
		Transport: &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
}

func (o *own) close() error {
	o.client.CloseIdleConnections()
	return nil
}

// try sets up the states, sends the request, compares the response, and tears down.
func (o *own) try(ctx context.Context, p *contracts.Pact, i int) (found []report.Problem, err error) {
	it := &p.Interactions[i]
	values := map[string]any{}
	states := it.States
	if len(states) == 0 {
		states = []contracts.StateUse{{}}
	}
	defer func() {
		if _, down := o.change(ctx, "teardown", states[len(states)-1]); err == nil {
			err = down
		}
	}()
	for _, state := range states {
		given, err := o.change(ctx, "setup", state)
		if err != nil {
			return nil, err
		}
		for name, value := range given {
			values[name] = value
		}
	}
	if o.recorder.failed() {
		return nil, nil // the recorder has the reasons
	}
	return o.exchange(ctx, it, values)
}

// change sends a state change and returns the values of the state. The recorder keeps failures.
func (o *own) change(ctx context.Context, action string, s contracts.StateUse) (map[string]any,
	error) {
	to := o.recorder.stateURL()
	if to == "" {
		return nil, nil
	}
	params := s.Parameters
	if params == nil {
		params = map[string]any{}
	}
	body, err := json.Marshal(map[string]any{"action": action, "state": s.Name, "params": params})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := o.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("change the state %q: %w", s.Name, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("change the state %q: %w", s.Name, err)
	}
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if response.StatusCode/100 != 2 || d.Decode(&values) != nil {
		return nil, nil // a state may give no values
	}
	return values, nil
}

// exchange sends the request and compares the response. A service that ends the connection fails.
func (o *own) exchange(ctx context.Context, it *contracts.Interaction,
	values map[string]any) ([]report.Problem, error) {
	expected, err := it.ExpectedWith(values)
	if err != nil {
		return []report.Problem{{Reason: err.Error()}}, nil
	}
	request, err := it.NewRequest(ctx, o.recorder.url, values)
	if err != nil {
		return []report.Problem{{Reason: err.Error()}}, nil
	}
	response, err := o.client.Do(request)
	if err != nil {
		return []report.Problem{{Reason: redacted("there is no response: " + err.Error())}}, ctx.Err()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return []report.Problem{{Where: "body $",
			Reason: redacted("the response ends early: " + err.Error())}}, ctx.Err()
	}
	var all []report.Problem
	for _, m := range matching.Compare(expected, &matching.Actual{Status: response.StatusCode,
		Headers: response.Header, Body: body}) {
		all = append(all, cleaned(report.Problem{Where: m.Where, Expected: m.Expected,
			Actual: m.Actual, Reason: m.Reason}))
	}
	return all, nil
}
