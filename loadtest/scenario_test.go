package loadtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gatehouse/loadtest"
	"gatehouse/loadtest/lab"
)

func startLocal(t *testing.T, settings ...string) *loadtest.Local {
	t.Helper()
	local, err := loadtest.StartLocal(t.Context(), gatehouse, "", settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Stop(); err != nil {
			t.Errorf("got %v, want both processes to end well", err)
		}
	})
	return local
}

// unhurried makes hits at a rate for d. Its end is minutes later, so that hits that begin late on a
// busy machine make no run invalid; the run itself ends with the last hit.
func unhurried(rate float64, d time.Duration) loadtest.Schedule {
	return append(loadtest.Steady(rate, d), loadtest.Stage{For: 5 * time.Minute})
}

// TestEveryScenario runs each scenario for a moment: all of its requests must get the answers that
// they should have.
func TestEveryScenario(t *testing.T) {
	for _, c := range []struct {
		scenario string
		rate     float64
		duration time.Duration
		people   int // each costs a hash of a password
		steps    string
		checks   int
	}{
		{"authorize", 4, time.Second, 4, "authorize login-page login consent-page consent token", 0},
		{"bulk", 20, time.Second, 20, "bulk", 0},
		{"bulk-cold", 5, time.Second, 20, "cold-bulk", 0},
		{"churn", 20, time.Second, 20, "refresh profile", 0},
		{"device", 10, time.Second, 4, "device-code device-page enter-code allow token", 0},
		{"introspect", 50, time.Second, 20, "introspect", 0},
		{"lookup-cold", 50, time.Second, 20, "cold-lookup", 0},
		{"lookup-hot", 100, time.Second, 20, "lookup", 0},
		{"lookup-zipf", 100, time.Second, 20, "zipf-lookup", 0},
		{"mixed", 100, time.Second, 20, "bulk refresh profile introspect cold-lookup lookup zipf-lookup my-ip profile-greedy token", 1},
		{"my-ip", 50, time.Second, 20, "my-ip", 0},
		{"openid", 30, time.Second, 4, "authorize token", 0},
		{"outage", 60, 6 * time.Second, 20, "lookup cold-lookup", 3},
		{"overload", 50, 6 * time.Second, 20, "lookup overloaded-lookup", 4},
		{"profile", 900, time.Second, 20, "profile profile-greedy", 1},
		{"refresh", 30, time.Second, 20, "refresh", 0},
		{"soak", 20, 10 * time.Second, 20, "", 3},
		{"stream", 5, time.Second, 20, "stream", 0},
		{"token", 50, time.Second, 20, "token", 0},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			scenario, err := loadtest.ScenarioNamed(c.scenario)
			if err != nil {
				t.Fatal(err)
			}
			local, schedule := shared, unhurried(c.rate, c.duration)
			// They look at the whole of their target, or break it, in parts of their time.
			if c.duration > time.Second {
				local = startLocal(t, scenario.Environment()...)
				schedule = loadtest.Steady(c.rate, c.duration)
			}
			setup := loadtest.Setup{Target: local.Target, People: c.people, Keys: 500}
			result, err := scenario.Run(t.Context(), setup, loadtest.Config{Schedule: schedule})
			if err != nil {
				t.Fatal(err)
			}
			var steps []string
			for _, s := range result.Steps {
				steps = append(steps, s.Name)
			}
			for _, name := range scenario.Steps(nil) {
				e, err := loadtest.ParseExpectation(name + " p99<1s")
				if err != nil || !e.Names(scenario.Steps(nil)) {
					t.Errorf("got %v, want a step %s that can be expected", err, name)
				}
			}
			if told := strings.Join(scenario.Steps(nil), " "); c.steps != "" && told != c.steps {
				t.Errorf("got steps %q told before, want %q", told, c.steps)
			}
			if got := strings.Join(steps, " "); c.steps != "" && c.scenario != "mixed" && got != c.steps {
				t.Errorf("got steps %q, want %q", got, c.steps)
			}
			if result.Hits != int64(c.rate*c.duration.Seconds()) || result.Broken != 0 || result.All.Failed != 0 {
				t.Errorf("got %d hits, %d broken, errors %v, want %v and none", result.Hits, result.Broken, result.All.Errors, c.rate*c.duration.Seconds())
			}
			if len(result.Checks) != c.checks {
				t.Errorf("got %d checks, want %d", len(result.Checks), c.checks)
			}
			for _, check := range result.Checks {
				// This depends on the machine; TestSoaksCompareQuarters has the rule.
				measured := strings.Contains(check.What, "flat")
				if !check.OK && !measured {
					t.Errorf("got %s: %s", check.What, check.Seen)
				}
			}
		})
	}
}

// TestReports runs a scenario once and reads each form of its report.
func TestReports(t *testing.T) {
	scenario, err := loadtest.ScenarioNamed("lookup-hot")
	if err != nil {
		t.Fatal(err)
	}
	result, err := scenario.Run(t.Context(), loadtest.Setup{Target: shared.Target, Keys: 50}, loadtest.Config{Schedule: unhurried(100, time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	report := &loadtest.Report{Scenario: scenario.Name, About: "<b>about</b>", Began: time.Now(), Schedule: "100:1s", Environment: loadtest.ThisMachine("test"), Result: result}
	fast, _ := loadtest.ParseExpectation("lookup p99<1m")
	report.Expected = []loadtest.Check{fast.Check(result)}
	var text, page, hdr, machine bytes.Buffer
	if err := errors.Join(report.WriteText(&text), report.WriteHTML(&page), report.WriteHDR(&hdr), report.WriteJSON(&machine)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, got, want string }{
		{"text", text.String(), "statuses of lookup: 200 × 100"},
		{"text", text.String(), "ok      lookup p99<1m"},
		{"page", page.String(), "&lt;b&gt;about&lt;/b&gt;"},
		{"page", page.String(), "<path class=\"strong\" d=\"M0.00 "},
		{"percentiles", hdr.String(), "Percentile"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: got\n%s\nwant %q in it", c.name, c.got, c.want)
		}
	}
	for _, foreign := range []string{"<script", "<link", "@import", "url(", "href=", "src="} {
		if strings.Contains(page.String(), foreign) {
			t.Errorf("got a page with %q, want one that needs nothing else", foreign)
		}
	}
	var read struct {
		Verdict string
		All     struct{ Attempts int }
	}
	if err := json.Unmarshal(machine.Bytes(), &read); err != nil || read.Verdict != "passed" || read.All.Attempts != 100 {
		t.Errorf("got %+v, %v, want passed with 100 requests", read, err)
	}
	baseline, err := loadtest.ReadBaseline(&machine)
	if err != nil {
		t.Fatal(err)
	}
	if worse, err := baseline.Compare(report); err != nil || len(worse) != 0 {
		t.Errorf("got %q, %v beside itself, want nothing worse", worse, err)
	}
	slow := *result
	slow.Steps = []loadtest.Step{slow.Steps[0]}
	slow.Steps[0].P99 *= 10
	report.Result = &slow
	if worse, err := baseline.Compare(report); err != nil || len(worse) != 1 || !strings.Contains(worse[0], "lookup p99") {
		t.Errorf("got %q, %v, want p99 to be worse", worse, err)
	}
	slow.Steps[0].Failed = 50 // too few responses are left for a p99
	if worse, err := baseline.Compare(report); err != nil || len(worse) != 1 || !strings.Contains(worse[0], "50% errors") {
		t.Errorf("got %q, %v, want errors to be worse", worse, err)
	}
	report.Scenario = "bulk"
	if _, err := baseline.Compare(report); err == nil {
		t.Error("got no error for the baseline of another scenario")
	}
}

func TestSetupSaysWhatItNeeds(t *testing.T) {
	for _, c := range []struct {
		scenario string
		target   loadtest.Target
		want     string
	}{
		{"token", loadtest.Target{Base: shared.Base}, "--client-id"},
		{"outage", loadtest.Target{Base: shared.Base}, "--simulator"},
		{"token", loadtest.Target{Base: shared.Base, Admin: shared.Admin, ClientID: shared.ClientID, ClientSecret: "wrong"}, "responded with status 401"},
		{"lookup-hot", loadtest.Target{Base: "http://127.0.0.1:1"}, "reach the bulk endpoint"},
	} {
		scenario, err := loadtest.ScenarioNamed(c.scenario)
		if err != nil {
			t.Fatal(err)
		}
		_, err = scenario.Run(t.Context(), loadtest.Setup{Target: c.target}, loadtest.Config{Schedule: loadtest.Steady(1, time.Second)})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), shared.ClientSecret) {
			t.Errorf("%s: got %v, want an error with %q", c.scenario, err, c.want)
		}
	}
}

// endingAfter returns a context that ends when a run with the configuration has made hits for at
// least d.
func endingAfter(
	t *testing.T, d time.Duration, schedule loadtest.Schedule,
) (context.Context, loadtest.Config) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, loadtest.Config{Schedule: schedule, Live: func(s loadtest.Second) {
		if s.At >= d {
			cancel()
		}
	}}
}

// TestMixWithoutTrustedProxiesCreatesNobody has a server that does not believe X-Forwarded-For, and
// so refuses my-ip of this machine. mixed ends before it asks for a client or a user.
func TestMixWithoutTrustedProxiesCreatesNobody(t *testing.T) {
	server, err := lab.Gatehouse{Program: gatehouse}.Serve(t.Context(), "--roles=geo",
		"--ip-provider=sim")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"mixed", "soak"} {
		scenario, err := loadtest.ScenarioNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		created := 0
		admin := httptest.NewServer(http.HandlerFunc(
			func(_ http.ResponseWriter, r *http.Request) { created++ }))
		_, err = scenario.Run(t.Context(), loadtest.Setup{Target: loadtest.Target{Base: server.Base,
			Admin: admin.URL, ClientID: "c", ClientSecret: "s"}},
			loadtest.Config{Schedule: loadtest.Steady(100, 20*time.Second)})
		admin.Close()
		if err == nil || !strings.Contains(err.Error(), "GATEHOUSE_TRUSTED_PROXIES") || created > 0 {
			t.Errorf("%s: got %v and %d requests to the admin API, want an error before any", name, err,
				created)
		}
	}
}
