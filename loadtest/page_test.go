package loadtest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gatehouse/loadtest"
	"gatehouse/loadtest/lab/browser"
)

// crowdedReport has the longest texts that a page shows: high figures, many failures, a step with a
// long name, five nines, and periods.
func crowdedReport() *loadtest.Report {
	step := func(name string) loadtest.Step {
		return loadtest.Step{Name: name, Attempts: 123_456_789, Failed: 98_765_432, Rate: 123_456.7,
			AttemptRate: 123_456.7, FailureRate: 98_765.4, Mean: 123456 * time.Microsecond,
			P50: 99_999 * time.Microsecond, P90: 119 * time.Second, P99: 119 * time.Second,
			P999: 119 * time.Second, Max: 119 * time.Second,
			Statuses: []loadtest.Count{{What: "none", Times: 98_765_432}, {What: "200", Times: 12_345_678},
				{What: "429", Times: 12_345_679}},
			Errors: []loadtest.Count{{What: "connection refused", Times: 98_765_432}}}
	}
	r := measured(1)
	r.Scenario, r.About = "a-scenario-of-ones-own-with-a-long-name", "What does it show? "+
		"https://gatehouse.example/a/path/that/is/long/enough/to/need/more/than/a/line/of/a/phone"
	r.Worse = []string{"overloaded-lookup p99.9 is 119.00s, was 118.00s"}
	r.Expected = []loadtest.Check{{What: "overloaded-lookup p99.9<10ms", Seen: "119.00s"}}
	r.Result.Checks = []loadtest.Check{{What: "teardown succeeds",
		Seen: "teardown: remove-person: connection refused; remove-client: connection refused"}}
	r.Result.Steps = []loadtest.Step{step("overloaded-lookup"), step("the-step-of-ones-own-scenario")}
	r.Result.All = step("all")
	r.Result.Target, r.Result.Achieved, r.Result.Planned = 123_456.7, 100_000.1, 2*time.Minute
	for n := range 120 {
		r.Result.Seconds = append(r.Result.Seconds, loadtest.Second{At: time.Duration(n+1) * time.Second,
			Length: time.Second, Attempts: 123_456, Failed: int64(n % 3 * 61_728), P50: time.Millisecond,
			P99: 119 * time.Second, Statuses: r.Result.All.Statuses,
			Steps: []loadtest.StepSecond{{Name: "overloaded-lookup", Attempts: 99, P50: time.Millisecond,
				P99: 119 * time.Second}}})
		r.Result.Resources = append(r.Result.Resources, loadtest.Resource{
			At: time.Duration(n) * time.Second, Memory: 12_345e6, Goroutines: 123_456,
			Connections: 100_000, CPU: float64(n) * 63.9})
	}
	r.Result.Periods = []loadtest.Period{{What: "upstream down", From: 40 * time.Second,
		To: 80 * time.Second}}
	r.Result.Settings = loadtest.Settings{Version: "v1.2.3-45-g0123456789ab", Own: true,
		Target: "https://gatehouse.a-long-name-of-a-host.internal.example.com:18443", Keys: 100_000,
		Headers: []string{"X-Tenant", "X-Api-Key", "X-A-Header-With-A-Long-Name"},
		Mix:     map[string]float64{"lookup-hot": 50, "lookup-zipf": 15, "introspect": 12345.678}}
	r.Environment = loadtest.Environment{System: "linux/amd64", Processors: 128, Go: "go1.26.0",
		Model: "Intel(R) Xeon(R) Platinum 8581C CPU @ 2.10GHz", Generator: "v1.2.3-45-g0123456789ab"}
	return r
}

// TestPagesKeepWithinTheirCards opens a report at several widths: no text leaves its card.
func TestPagesKeepWithinTheirCards(t *testing.T) {
	page := pageOf(t, crowdedReport())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page)
	}))
	defer server.Close()
	chromium, stop, err := browser.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	tab := browser.Open(t, chromium)
	const outside = `[...document.querySelectorAll("section")].flatMap(card => {
		const edge = card.getBoundingClientRect(), range = document.createRange(), found = [];
		const texts = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
		while (texts.nextNode()) {
			range.selectNodeContents(texts.currentNode);
			for (const r of range.getClientRects())
				if (r.width > 1 && texts.currentNode.data.trim() &&
					!texts.currentNode.parentNode.closest("thead") &&
					(r.right > edge.right || r.left < edge.left))
					found.push(texts.currentNode.data.trim() + " of " +
						(card.querySelector("h2")?.innerText || "the head"));
		}
		return found;
	}).concat([...document.querySelectorAll(".figures dd")].filter(
		d => d.scrollWidth > d.clientWidth).map(d => d.innerText + " over its neighbour")).join("\n")`
	for _, width := range []int64{320, 390, 700, 900, 1024, 1025, 1100, 1280, 1920} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			if err := browser.Look(tab, browser.View{Width: width}); err != nil {
				t.Fatal(err)
			}
			if err := chromedp.Do(tab, chromedp.Navigate(server.URL)); err != nil {
				t.Fatal(err)
			}
			found, err := chromedp.Run(tab, chromedp.Evaluate[string](outside))
			if err != nil || found != "" {
				t.Errorf("got %v, texts over the edge of their card:\n%s", err, found)
			}
			if by, err := browser.Overflow(tab); err != nil || by > 0 {
				t.Errorf("got %v, a page that is %d pixels wider than the window", err, by)
			}
		})
	}
}
