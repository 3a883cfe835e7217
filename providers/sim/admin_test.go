package sim_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"gatehouse/providers/sim"
)

type state struct {
	Settings sim.Settings
	Stats    map[string]any
}

func TestAdminShowsSettingsAndStatistics(t *testing.T) {
	u := startConfig(t, sim.Config{Key: "s3cret",
		Settings: sim.Settings{Faults: []sim.Fault{{Kind: sim.FaultHang, Rate: 0.5, Times: 2,
			Delay: time.Second}}}})
	got := u.get("/_sim")
	const want = `{"settings":{"tier":"open","window":"1m0s","singles_per_window":45,"batches_per_window":15,` +
		`"latency":"0s","jitter":"0s","faults":[{"kind":"hang","rate":0.5,"times":2,"delay":"1s"}]},"stats":{"since":`
	if !strings.HasPrefix(string(got.body), want) ||
		got.header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("got %s, want %s…", got.body, want)
	}
	if strings.Contains(string(got.body), "s3cret") {
		t.Error("got the key, want it hidden")
	}
	for _, name := range []string{
		"since", "requests", "singles", "batches", "items", "found", "not_found",
		"repeats", "refused",
		"violations", "empty_budget", "batch_domains", "oversize_batch", "faults", "in_flight",
		"in_flight_max",
	} {
		if _, there := decode[state](t, got).Stats[name]; !there {
			t.Errorf("got no %s in %s", name, got.body)
		}
	}
}

func TestAdminPatch(t *testing.T) {
	u := start(t, sim.Settings{Latency: time.Millisecond})
	want := u.Settings()
	for _, row := range []struct {
		patch string
		with  func(*sim.Settings)
	}{
		{`{}`, func(*sim.Settings) {}},
		{`{"tier":"free","singles_per_window":3}`, func(s *sim.Settings) { s.Tier, s.SinglesPerWindow = sim.TierFree, 3 }},
		{`{"latency":"0s","jitter":"2ms","window":"5s"}`, func(s *sim.Settings) { s.Latency, s.Jitter, s.Window = 0, 2*time.Millisecond, 5*time.Second }},
		{
			`{"batches_per_window":9,"faults":[{"kind":"status","status":503,"endpoint":"batch","rate":0.1},{"kind":"slow","delay":"1s","times":2}]}`,
			func(s *sim.Settings) {
				s.BatchesPerWindow = 9
				s.Faults = []sim.Fault{
					{Kind: sim.FaultStatus, Status: 503, Endpoint: sim.EndpointBatch, Rate: 0.1},
					{Kind: sim.FaultSlow, Delay: time.Second, Times: 2, Rate: 1},
				}
			},
		},
		{`{"faults":[{"kind":"drop"}]}`, func(s *sim.Settings) { s.Faults = []sim.Fault{{Kind: sim.FaultDrop, Rate: 1}} }},
		{`{"tier":null,"faults":null}`, func(*sim.Settings) {}},
		{`{"faults":[]}`, func(s *sim.Settings) { s.Faults = []sim.Fault{} }},
	} {
		row.with(&want)
		response := decode[state](t, u.do(http.MethodPut, "/_sim", row.patch)).Settings
		if len(response.Faults) == 0 {
			response.Faults = want.Faults
		}
		if got := u.Settings(); !reflect.DeepEqual(got, want) ||
			!reflect.DeepEqual(response, want) {
			t.Errorf("%s: got %+v and response %+v, want %+v", row.patch, got, response, want)
		}
	}
}

func TestAdminPatchErrors(t *testing.T) {
	u := start(t, sim.Settings{})
	before := u.Settings()
	for patch, want := range map[string]string{
		`{"latency":"1ms","latncy":"1ms"}`:                         `unknown member "latncy"`,
		`{"faults":[{"kind":"drop","rat":1}]}`:                     `unknown member "rat"`,
		`{"tier":"gold"}`:                                          `tier: got "gold", want open, free or pro`,
		`{"window":"0s"}`:                                          `window: got 0, want more`,
		`{"window":60}`:                                            `window: got a JSON number`,
		`{"latency":"fast"}`:                                       `latency: got "fast", want a duration such as 250ms`,
		`{"jitter":"-1s"}`:                                         `jitter: got -1s, want 0 or more`,
		`{"singles_per_window":0}`:                                 `singles_per_window: got 0, want 1 or more`,
		`{"batches_per_window":-1}`:                                `batches_per_window: got -1, want 1 or more`,
		`{"faults":[{"kind":"drop"},{"kind":"fire"}]}`:             `faults[1]: kind: got "fire", want status, garbage, short_batch, bad_element, hang, drop, reset or slow`,
		`{"faults":[{"kind":"drop","rate":0}]}`:                    `faults[0]: rate: got 0, want above 0 and at most 1`,
		`{"faults":[{"kind":"drop","rate":1.5}]}`:                  `faults[0]: rate: got 1.5, want above 0 and at most 1`,
		`{"faults":[{"kind":"drop","times":-1}]}`:                  `faults[0]: times: got -1, want 0 or more`,
		`{"faults":[{"kind":"drop","endpoint":"all"}]}`:            `faults[0]: endpoint: got "all", want json or batch`,
		`{"faults":[{"kind":"short_batch","endpoint":"json"}]}`:    `faults[0]: endpoint: got json, want batch with short_batch`,
		`{"faults":[{"kind":"status"}]}`:                           `faults[0]: status: got 0, want 400 to 599`,
		`{"faults":[{"kind":"drop","status":503}]}`:                `faults[0]: status: got 503, want none with drop`,
		`{"faults":[{"kind":"slow"}]}`:                             `faults[0]: delay: got none, want one with slow`,
		`{"faults":[{"kind":"slow","delay":"x"}]}`:                 `faults[0]: delay: got "x", want a duration such as 250ms`,
		`{"faults":[{"kind":"hang","delay":"-1s"}]}`:               `faults[0]: delay: got -1s, want 0 or more`,
		`{"faults":[{"kind":"status","status":500,"delay":"1s"}]}`: `faults[0]: delay: got 1s, want none with status`,
		`[]`:             `settings: got a JSON array`,
		`{"tier":"free"`: `unexpected end of JSON input`,
		`{} {}`:          `invalid character '{' after top-level value`,
	} {
		got := u.do(http.MethodPut, "/_sim", patch)
		var response struct{ Error string }
		if err := json.Unmarshal(got.body, &response); err != nil || got.status != 400 ||
			response.Error != want {
			t.Errorf("%s: got %d %s, want 400 %s", patch, got.status, got.body, want)
		}
	}
	if got := u.Settings(); !reflect.DeepEqual(got, before) {
		t.Errorf("got %+v, want %+v unchanged", got, before)
	}
	if err := u.Change(sim.Settings{Tier: "gold"}); err == nil ||
		!strings.Contains(err.Error(), "gold") {
		t.Errorf("change: got error %v, want one that names the tier", err)
	}
}

func TestAdminResets(t *testing.T) {
	u := start(t, sim.Settings{Tier: sim.TierFree, BatchesPerWindow: 3})
	u.get("/json/8.8.8.8")
	u.do(http.MethodPut, "/_sim", `{"batches_per_window":9,"faults":[{"kind":"garbage"}]}`)
	u.get("/json/8.8.8.8")
	if got := decode[state](t, u.do(http.MethodDelete, "/_sim/stats",
		"")); got.Stats["requests"] != 0.0 || got.Settings.BatchesPerWindow != 9 {
		t.Errorf("got %+v, want zero statistics and unchanged settings", got)
	}
	if got := u.get("/json/8.8.8.8").header.Get("X-Rl"); got != "42" {
		t.Errorf("got X-Rl %s, want 42: the budget's window continues", got)
	}
	got := decode[state](t, u.do(http.MethodPost, "/_sim/reset", ""))
	if got.Stats["requests"] != 0.0 || got.Settings.BatchesPerWindow != 3 ||
		len(got.Settings.Faults) != 0 {
		t.Errorf("got %+v, want the state after the start", got)
	}
	if got := u.get("/json/8.8.8.8"); got.header.Get("X-Rl") != "44" || !json.Valid(got.body) {
		t.Errorf("got %s %s, want a new budget and JSON", got.header.Get("X-Rl"), got.body)
	}
}

func TestParseFault(t *testing.T) {
	for text, want := range map[string]sim.Fault{
		"garbage":                    {Kind: sim.FaultGarbage, Rate: 1},
		"status,status=503,rate=0.1": {Kind: sim.FaultStatus, Status: 503, Rate: 0.1},
		"hang,endpoint=batch,delay=5s": {Kind: sim.FaultHang, Endpoint: sim.EndpointBatch,
			Delay: 5 * time.Second, Rate: 1},
		"bad_element,times=3,rate=1": {Kind: sim.FaultBadElement, Times: 3, Rate: 1},
		"status,status=429,delay=1m,times=1": {Kind: sim.FaultStatus, Status: 429,
			Delay: time.Minute, Times: 1, Rate: 1},
	} {
		if got, err := sim.ParseFault(text); err != nil || got != want {
			t.Errorf("%s: got %+v and error %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                 `kind: got ""`,
		"status":           `status: got 0`,
		"drop,rate=0":      `rate: got 0`,
		"drop,rate=NaN":    `rate: got NaN`,
		"drop,rate=often":  `rate: `,
		"drop,colour=blue": `colour: no such member`,
		"drop,":            `no such member`,
	} {
		if _, err := sim.ParseFault(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", text, err, want)
		}
	}
}
