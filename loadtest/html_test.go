package loadtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/loadtest"
)

func pageOf(t *testing.T, r *loadtest.Report) string {
	t.Helper()
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// section returns the part of a page from a headline to the next.
func section(t *testing.T, page, headline string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "<h2>"+headline+"</h2>")
	if !ok {
		t.Fatalf("got no section %q in\n%s", headline, page)
	}
	text, _, _ := strings.Cut(rest, "<h2>")
	return text
}

// TestHeadlineHasVerdictAndComparison reads the title and the headline.
func TestHeadlineHasVerdictAndComparison(t *testing.T) {
	r := measured(1000)
	r.Worse = []string{"lookup p99 is 3ms, was 1ms", "lookup runs at 90.0/s, was 100.0/s"}
	page := pageOf(t, r)
	for _, want := range []string{
		"<title>lookup-hot: passed, 2 figures are worse than in before.json</title>",
		`<span class="verdict passed">passed</span> <span class="verdict worse">2 figures are worse than in before.json</span>`,
		"worse: lookup p99 is 3ms, was 1ms",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("got\n%s\nwant %q in it", page, want)
		}
	}
	r.Worse = []string{}
	if page := pageOf(t, r); !strings.Contains(page, `<span class="verdict passed">nothing is worse than in before.json</span>`) {
		t.Errorf("got\n%s\nwant it to say that nothing is worse", page)
	}
	r.Baseline = ""
	if page := pageOf(t, r); strings.Contains(page, "worse than") {
		t.Errorf("got\n%s\nwant nothing of a baseline, since there is none", page)
	}
}

func TestOneStepIsNotRepeatedAsAll(t *testing.T) {
	r := measured(1000)
	if steps := section(t, pageOf(t, r), "Steps"); strings.Contains(steps, ">all<") || !strings.Contains(steps, ">lookup<") {
		t.Errorf("got\n%s\nwant one row", steps)
	}
	r.Result.Steps = append(r.Result.Steps, loadtest.Step{Name: "bulk"})
	page := pageOf(t, r)
	if steps := section(t, page, "Steps"); !strings.Contains(steps, ">all<") {
		t.Errorf("got\n%s\nwant a row of all", steps)
	}
	if each := section(t, page, "Latency of each step"); strings.Count(each, "<figure") != 2 {
		t.Errorf("got\n%s\nwant a chart for each of two steps", each)
	}
}

func TestThresholdsStandApartFromChecks(t *testing.T) {
	r := measured(1000)
	r.Expected = []loadtest.Check{{What: "p99<1ms", Seen: "2ms"}}
	r.Result.Checks = []loadtest.Check{{What: "all is well", OK: true, Seen: "it is"}}
	page := pageOf(t, r)
	given, own := section(t, page, "Thresholds"), section(t, page, "The scenario’s own checks")
	if !strings.Contains(given, "p99&lt;1ms") || strings.Contains(given, "all is well") || !strings.Contains(given, "✗ crossed") {
		t.Errorf("got thresholds\n%s", given)
	}
	if !strings.Contains(own, "all is well") || strings.Contains(own, "p99") || !strings.Contains(own, "✓ held") {
		t.Errorf("got checks\n%s", own)
	}
}

// TestPagesNameTargetAndSettings reads what was asked, by which settings. Keys and people that a
// scenario does not use are left out.
func TestPagesNameTargetAndSettings(t *testing.T) {
	r := measured(1000)
	r.Result.Settings = loadtest.Settings{Target: "http://127.0.0.1:18080", Version: "v1.2.3", Own: true, Timeout: 3 * time.Second, Connections: 1234, Keys: 500, Tokens: 7}
	facts := section(t, pageOf(t, r), "Where, when and how")
	for _, want := range []string{
		"http://127.0.0.1:18080, started for the run", "v1.2.3", "100 hits/s for 10s (open model)", "3s for each response", "at most 1,234", "<dt>keys</dt><dd>500</dd>", "7 from a file",
	} {
		if !strings.Contains(facts, want) {
			t.Errorf("got\n%s\nwant %q in it", facts, want)
		}
	}
	r.Schedule, r.Concurrency, r.Result.Model, r.Result.Settings = "", 8, "closed", loadtest.Settings{Target: "http://a.example"}
	facts = section(t, pageOf(t, r), "Where, when and how")
	if !strings.Contains(facts, "8 users for 10s (closed model)") || strings.Contains(facts, "<dt>keys") || strings.Contains(facts, "started for") {
		t.Errorf("got\n%s\nwant users, and a target that was there", facts)
	}
}

// TestHostileNamesAreText puts markup wherever a page shows a name.
func TestHostileNamesAreText(t *testing.T) {
	const bad = `"'><script>alert(1)</script><style>*{}</style>`
	r := measured(1000)
	r.Scenario, r.About, r.Baseline, r.Schedule, r.Worse = bad, bad, bad, bad, []string{bad}
	r.Expected, r.Result.Checks = []loadtest.Check{{What: bad, Seen: bad}}, []loadtest.Check{{What: bad, Seen: bad}}
	r.Environment = loadtest.Environment{System: bad, Model: bad, Go: bad, Generator: bad}
	r.Result.Settings = loadtest.Settings{Target: bad, Version: bad, Mix: map[string]float64{bad: 1}}
	r.Result.Periods = []loadtest.Period{{What: bad, From: time.Second, To: 2 * time.Second}}
	r.Result.Steps[0].Name, r.Result.Steps[0].Errors = bad, []loadtest.Count{{What: bad, Times: 1}}
	r.Result.Steps = append(r.Result.Steps, r.Result.Steps[0])
	r.Result.All.Statuses = []loadtest.Count{{What: bad, Times: 1}, {What: "200", Times: 1}}
	r.Result.Seconds = []loadtest.Second{{At: time.Second, Length: time.Second, Attempts: 1, Steps: []loadtest.StepSecond{{Name: bad, Attempts: 1}}}}
	page := pageOf(t, r)
	if strings.Contains(page, "<script") || strings.Count(page, "<style>") != 1 || strings.Contains(page, "ZgotmplZ") {
		t.Errorf("got\n%s\nwant all names as text", page)
	}
}

// TestOutagesAreMarked runs an outage to its end and one that is interrupted. When it began and ended
// is in the result and in the charts over time. The simulator has faults of its own, which come back.
func TestOutagesAreMarked(t *testing.T) {
	t.Parallel()
	local := startLocal(t)
	scenario, err := loadtest.ScenarioNamed("outage")
	if err != nil {
		t.Fatal(err)
	}
	faults := func(method, body string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, local.Simulator+"/_sim", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var state struct {
			Settings struct{ Faults json.RawMessage }
		}
		if err := errors.Join(json.NewDecoder(response.Body).Decode(&state), response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("got %d, %v, want the settings", response.StatusCode, err)
		}
		return string(state.Settings.Faults)
	}
	before := faults(http.MethodPut, `{"faults":[{"kind":"hang","rate":0.001,"delay":"10ms"}]}`)
	play := func(after time.Duration) *loadtest.Result {
		ctx, config := endingAfter(t, after, loadtest.Steady(40, 6*time.Second))
		result, err := scenario.Run(ctx, loadtest.Setup{Target: local.Target, Keys: 50}, config)
		if err != nil {
			t.Fatal(err)
		}
		if got := faults(http.MethodGet, ""); got != before {
			t.Errorf("after %v: got faults %s, want %s", after, got, before)
		}
		return result
	}
	result := play(time.Hour)
	if len(result.Periods) != 1 || result.Periods[0].From < 2*time.Second || result.Periods[0].To < result.Periods[0].From+2*time.Second {
		t.Fatalf("got %v, want an outage of 2 s or a little more, from about 2 s on", result.Periods)
	}
	if result.Settings.Target != local.Base || !result.Settings.Own || result.Settings.Version == "" {
		t.Errorf("got %+v, want the target's address and version", result.Settings)
	}
	// A busy machine begins and ends it later.
	result.Periods[0].From, result.Periods[0].To = 2*time.Second, 4*time.Second
	report := &loadtest.Report{Scenario: "outage", Schedule: "40:6s", Result: result}
	page := pageOf(t, report)
	bands := regexp.MustCompile(`<div class="band" style="left:([\d.]+)%;width:([\d.]+)%"><span>upstream down</span>`).FindAllStringSubmatch(page, -1)
	if want := strings.Count(page, "<figure") - 1; len(bands) != want || want < 8 {
		t.Errorf("got %d marked charts, want %d: all but that of percentiles", len(bands), want)
	}
	for _, band := range bands {
		left, err := strconv.ParseFloat(band[1], 64)
		width, err2 := strconv.ParseFloat(band[2], 64)
		// From 2 s to 4 s, whenever the chart ends.
		if err != nil || err2 != nil || math.Abs(left-width) > 0.02 || left < 5 {
			t.Errorf("got a mark %s%% from the left and %s%% wide, want the outage", band[1], band[2])
		}
	}
	for _, want := range []string{"<h3>Statuses</h3>", "</svg>502</span>", "<h3>Goroutines and connections</h3>", "<h3>Processors</h3>", "<h3>cold-lookup</h3>"} {
		if !strings.Contains(page, want) {
			t.Errorf("got no %q in the page", want)
		}
	}
	var text bytes.Buffer
	if err := report.WriteJSON(&text); err != nil || !strings.Contains(text.String(), `"what": "upstream down"`) || !strings.Contains(text.String(), `"target": "`+local.Base+`"`) ||
		!strings.Contains(text.String(), `"keys": 50`) {
		t.Errorf("got %v, %s, want the outage, the target and the keys in it", err, text.String())
	}
	if early := play(3 * time.Second); !early.Ended || len(early.Periods) != 1 || early.Periods[0].To < early.Periods[0].From {
		t.Errorf("got ended %v with %v, want the outage as far as it came", early.Ended, early.Periods)
	}
}

// TestPagesNameTheNumbersOfScenarios runs scenarios without flags: their own numbers of keys and
// people are in the report.
func TestPagesNameTheNumbersOfScenarios(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"access_token":"a","client_id":"c","client_secret":"s"}`))
	}))
	defer target.Close()
	for _, c := range []struct {
		scenario, mix string
		setup         loadtest.Setup
		want          []string
		machine       string
	}{
		{"lookup-hot", "", loadtest.Setup{}, []string{"<dt>keys</dt><dd>4,096</dd>"}, `"keys": 4096`},
		{"lookup-hot", "", loadtest.Setup{Keys: 7}, []string{"<dt>keys</dt><dd>7</dd>"}, `"keys": 7`},
		{"token", "", loadtest.Setup{}, []string{"<dt>people and tokens</dt><dd>8</dd>"}, `"people": 8`},
		{"mixed", "lookup-hot=1,lookup-zipf=1,token=1", loadtest.Setup{},
			[]string{"<dt>keys</dt><dd>100,000</dd>", "<dt>people and tokens</dt><dd>8</dd>"},
			`"keys": 100000`},
	} {
		scenario, err := loadtest.ScenarioNamed(c.scenario)
		if c.mix != "" && err == nil {
			c.setup.Mix, err = loadtest.ParseMix(c.mix)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.setup.Target = loadtest.Target{Base: target.URL, Admin: target.URL, ClientID: "c",
			ClientSecret: "s"}
		result, err := scenario.Run(t.Context(), c.setup,
			loadtest.Config{Schedule: unhurried(10, 100*time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		r := &loadtest.Report{Scenario: c.scenario, Schedule: "10:1s", Result: result}
		facts := section(t, pageOf(t, r), "Where, when and how")
		var machine bytes.Buffer
		if err := r.WriteJSON(&machine); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(facts, want) || !strings.Contains(machine.String(), c.machine) ||
				strings.Contains(facts, "own number") {
				t.Errorf("%s: got\n%s%s\nwant %q and %q in it", c.scenario, facts, &machine, want,
					c.machine)
			}
		}
	}
}
