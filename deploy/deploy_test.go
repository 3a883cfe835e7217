// Package deploy_test tries what is handed to others: packages, images, manifests, examples of
// proxies, alert rules and dashboards. Checks that install programs or run containers have the
// build tag deploy (make test-deploy).
package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gatehouse/loadtest/lab"
)

// built is the folder of a program that was built for these tests.
var built string

func TestMain(m *testing.M) {
	os.Exit(lab.WithProgram(func(program string) (int, error) {
		built = filepath.Dir(program)
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", built+"/", "./make")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%w: %s", err, out)
		}
		return m.Run(), nil
	}))
}

// sh runs a script in the root of the repository and returns what it prints on stdout. $BUILT has
// the programs, $T is a folder.
func sh(t *testing.T, script string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir = ".."
	command.Env = append(os.Environ(), "BUILT="+built, "T="+t.TempDir(),
		"PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	var out, errs strings.Builder
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out.String(), errs.String())
	}
	return out.String()
}

// read returns a file of this folder.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNotices(t *testing.T) {
	want := sh(t, "$BUILT/make notices ./cmd/gatehouse")
	if got := sh(t, "$BUILT/gatehouse licenses"); got != want {
		t.Error("gatehouse licenses prints others than what is linked: run make notices")
	}
}

// TestBillOfMaterials: it lists the modules that Go recorded in the program, and Go itself.
func TestBillOfMaterials(t *testing.T) {
	var bill struct {
		Packages []struct{ Name, VersionInfo string }
	}
	if err := json.Unmarshal([]byte(sh(t, "$BUILT/make sbom $BUILT/gatehouse")), &bill); err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, p := range bill.Packages[2:] { // after the program and Go
		got = append(got, p.Name+" "+p.VersionInfo)
	}
	want := strings.Split(strings.TrimSpace(
		sh(t, `go version -m $BUILT/gatehouse | awk '$1 == "dep" { print $2, $3 }'`)), "\n")
	if len(want) < 20 || !slices.Equal(got, want) || bill.Packages[1].Name != "stdlib" {
		t.Errorf("got %q, want Go and %q", got, want)
	}
}

// TestManual: the manual page and the completions have each command, and are well-formed.
func TestManual(t *testing.T) {
	page := sh(t, `$BUILT/make man $BUILT/gatehouse`)
	for _, want := range []string{`.SS "gatehouse client create"`, `\-\-database\-url=URL`, `.SH "EXIT STATUS"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the manual page has no %s", want)
		}
	}
	got := sh(t, `$BUILT/make bash $BUILT/gatehouse >$T/bash; . $T/bash
		complete_words() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _gatehouse; echo "${COMPREPLY[*]}"; }
		complete_words gatehouse cl; complete_words gatehouse client appr
		complete_words gatehouse serve --base-; complete_words gatehouse client create --tokens-p
		$BUILT/make fish $BUILT/gatehouse | grep -c "seen_subcommand_from create' -l redirect-uri"`)
	want := "client cluster\napprove\n--base-url\n--tokens-per-minute\n1\n"
	if got != want {
		t.Errorf("got completions %q, want %q", got, want)
	}
}

func TestUnit(t *testing.T) {
	got := sh(t, "systemd-analyze security --offline=true --threshold=15 deploy/systemd/gatehouse.service")
	if !strings.Contains(got, "Overall exposure level") {
		t.Errorf("got %q, want an exposure level of 1.5 or less", got)
	}
}

// knownMetrics returns the labels of each metric of the handbook, which its tests compare with the
// program.
func knownMetrics(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(gatehouse_\\w+)` \\| (\\w+) \\| (.*?) ?\\|")
	for _, page := range []string{"../docs/operations.md", "../docs/cluster.md"} {
		for _, found := range row.FindAllStringSubmatch(read(t, page), -1) {
			name, labels := found[1], regexp.MustCompile(`\w+`).FindAllString(found[3], -1)
			if found[2] == "histogram" {
				name, labels = name+"_bucket", append(labels, "le")
			}
			known[name] = append(labels, "instance", "job")
		}
	}
	return known
}

var (
	metricInExpression = regexp.MustCompile(`(gatehouse_\w+)(?:\{([^}]*)\})?`)
	labelInSelector    = regexp.MustCompile(`(\w+)[=!]~?"`)
	grouping           = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// checkExpression reports metrics and labels that the program does not have.
func checkExpression(t *testing.T, where, expression string, known map[string][]string) {
	t.Helper()
	found := metricInExpression.FindAllStringSubmatch(expression, -1)
	var all []string
	for _, metric := range found {
		labels, ok := known[metric[1]]
		if !ok {
			t.Errorf("%s: the program has no metric %s", where, metric[1])
		}
		all = append(all, labels...)
		for _, label := range labelInSelector.FindAllStringSubmatch(metric[2], -1) {
			if !slices.Contains(labels, label[1]) {
				t.Errorf("%s: %s has no label %s", where, metric[1], label[1])
			}
		}
	}
	for _, by := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(by[1], ", ") {
			if len(found) > 0 && !slices.Contains(all, label) {
				t.Errorf("%s: no metric has the label %s", where, label)
			}
		}
	}
}

// TestAlertRules: Prometheus finds each rule silent, then firing, as its case says. The rules ask
// for what the program has.
func TestAlertRules(t *testing.T) {
	type rule struct {
		Alert, Expr, For string
		Labels           struct{ Severity string }
		Annotations      struct{ Summary string }
	}
	var rules struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(read(t, "prometheus/alerts.yml")), &rules); err != nil {
		t.Fatal(err)
	}
	cases, known := read(t, "prometheus/alerts_test.yml"), knownMetrics(t)
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			checkExpression(t, r.Alert, r.Expr, known)
			if r.For == "" || r.Labels.Severity == "" || r.Annotations.Summary == "" ||
				!strings.Contains(cases, "\n        alertname: "+r.Alert+"\n") {
				t.Errorf("%s: got %+v, want a duration, a severity, a summary and a case", r.Alert, r)
			}
		}
	}
	sh(t, "promtool test rules deploy/prometheus/alerts_test.yml")
}

// dashboard is what these tests read of a dashboard.
type dashboard struct {
	Title  string
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

func dashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob("grafana/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("got dashboards %q, error %v, want four", files, err)
	}
	for _, file := range files {
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, file)), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, d)
	}
	return all
}

func TestDashboards(t *testing.T) {
	known := knownMetrics(t)
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				checkExpression(t, d.Title+", "+p.Title, target.Expr, known)
			}
		}
	}
}
