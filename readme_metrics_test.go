package gatehouse_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReadmeMetrics compares the table of metrics with those of a demo whose upstream fails, so that none is missing
// for want of an event.
func TestReadmeMetrics(t *testing.T) {
	d := startDemo(t)
	d.ask(http.MethodGet, d.BaseURL+"/api/lookup?q=8.8.8.8", "")
	d.ask(http.MethodPut, d.UpstreamURL+"/_sim", `{"faults":[{"kind":"status","status":503}]}`)
	d.ask(http.MethodGet, d.BaseURL+"/api/lookup?q=8.8.4.4", "")
	d.ask(http.MethodGet, d.BaseURL+"/api/lookup?q=9.9.9.9", "")
	d.ask(http.MethodPost, d.BaseURL+"/oauth/token", "grant_type=client_credentials&client_id="+d.Clients.Public.ClientID)
	want := exposed(d.ask(http.MethodGet, d.AdminURL+"/metrics", ""))

	var got []string
	for _, row := range readTable(t, "Metric", "Type", "Labels", "Meaning") {
		labels := strings.Split(plain(row[2]), ", ")
		slices.Sort(labels)
		got = append(got, strings.TrimSpace(plain(row[0])+" "+row[1]+" "+strings.Join(labels, " ")))
	}
	slices.Sort(got)
	for _, metric := range got {
		if !slices.Contains(want, metric) {
			t.Errorf("got %q in the table, want a metric that there is", metric)
		}
	}
	for _, metric := range want {
		if !slices.Contains(got, metric) {
			t.Errorf("got no %q in the table, want it", metric)
		}
	}
}

// demo is a demo that runs, as its demo.json describes it.
type demo struct {
	t           *testing.T
	BaseURL     string `json:"base_url"`
	AdminURL    string `json:"admin_url"`
	UpstreamURL string `json:"upstream_url"`
	Clients     struct {
		Public struct {
			ClientID string `json:"client_id"`
		}
	}
}

// startDemo starts a demo whose breaker opens at the first failure, and that looks for reverse names where nobody answers.
func startDemo(t *testing.T) *demo {
	dir := t.TempDir()
	startServer(t, "bin/gatehouse demo --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --breaker-failures 1 --ptr 127.0.0.1:9 --dir "+dir,
		environment(), "serving")
	text, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{t: t}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// ask sends a request, whose body is a form, and returns the body of the answer, whatever its status.
func (d *demo) ask(method, url, body string) string {
	d.t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

var (
	family = regexp.MustCompile(`^# TYPE (gatehouse_\w+) (\w+)$`)
	label  = regexp.MustCompile(`(\w+)="`)
)

// exposed returns "name type labels" of each of gatehouse's own metrics, the labels sorted, from the text format of
// Prometheus.
func exposed(text string) []string {
	var found []string
	open := false // the last of found waits for its first sample
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch head := family.FindStringSubmatch(line); {
		case head != nil:
			found = append(found, head[1]+" "+head[2])
			open = true
		case strings.HasPrefix(line, "#"):
			open = false
		case open:
			var labels []string
			for _, l := range label.FindAllStringSubmatch(line, -1) {
				if l[1] != "le" {
					labels = append(labels, l[1])
				}
			}
			slices.Sort(labels)
			last := len(found) - 1
			found[last] = strings.TrimSpace(found[last] + " " + strings.Join(labels, " "))
			open = false
		}
	}
	slices.Sort(found)
	return found
}
