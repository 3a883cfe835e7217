package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/net/http/httpguts"

	"gatehouse/loadtest"
)

// targetFlags name the server under load.
type targetFlags struct {
	Target       string   `name:"target" placeholder:"URL" group:"Target:" help:"Public address of a gatehouse (default: a server started for the run, with a simulated upstream)."`
	Admin        string   `name:"admin" placeholder:"URL" env:"GATEHOUSE_ADMIN_URL" group:"Target:" help:"Admin listener of the target, to create clients and users and to read its memory."`
	Simulator    string   `name:"simulator" placeholder:"URL" group:"Target:" help:"The gatehouse sim that is the upstream of the target, for outages."`
	ClientID     string   `name:"client-id" placeholder:"ID" env:"GATEHOUSE_CLIENT_ID" group:"Target:" help:"Operator client of the target."`
	ClientSecret string   `name:"client-secret" placeholder:"SECRET" env:"GATEHOUSE_CLIENT_SECRET" group:"Target:" help:"Secret of the operator client. Other users of this machine can see flags: use the variable."`
	Demo         string   `name:"demo" placeholder:"DIR" group:"Target:" help:"Take the target and its operator from the demo that runs in this folder."`
	IOwn         string   `name:"i-own-this-target" placeholder:"HOST" group:"Target:" help:"Confirms a target that is not this machine."`
	Gatehouse    string   `name:"gatehouse" placeholder:"FILE" group:"Target:" help:"Program to start without a target (default: gatehouse in the folder of this program, bin/gatehouse, or in the PATH)."`
	Header       []string `name:"header" sep:"none" placeholder:"NAME:VALUE" group:"Target:" help:"Header of each request to the target's public address, such as 'X-Tenant: a'. May be repeated."`
	APIKey       string   `name:"api-key" placeholder:"KEY" env:"GATEHOUSE_API_KEY" group:"Target:" help:"API key for lookups, sent as X-Api-Key. Other users of this machine can see flags: use the variable."`
	Database     string   `name:"database" placeholder:"URL" group:"Target:" help:"Database of that program (default: SQLite in a new folder)."`
}

type runCommand struct {
	Scenario    string        `arg:"" help:"Name of the scenario (loadtest list shows them), or a YAML file with one (loadtest schema shows its form)."`
	Rate        string        `name:"rate" placeholder:"RATE" group:"Load:" help:"Open model: hits a second, or stages as RATE:TIME and FROM..TO:TIME with commas, such as 0..500:10s,500:60s (default: the scenario's own)."`
	Concurrency int           `name:"concurrency" placeholder:"N" group:"Load:" help:"Closed model: users that wait for each response, instead of a rate."`
	Duration    time.Duration `name:"duration" placeholder:"TIME" group:"Load:" help:"How long hits begin (default: the scenario's own)."`
	Timeout     time.Duration `name:"timeout" default:"10s" placeholder:"TIME" group:"Load:" help:"Timeout of each response, and the longest delay of a hit behind its schedule, at most 10s there (${default})."`
	Connections int           `name:"connections" default:"1000" placeholder:"N" group:"Load:" help:"Connections at most; a hit waits for a free one, which counts as latency (${default})."`
	Agents      []string      `name:"agents" placeholder:"HOST:PORT,…" group:"Load:" help:"Let these agents make the hits, each its part of the rate, users and connections (loadtest agent --help)."`
	AgentToken  string        `name:"agent-token" placeholder:"TOKEN" env:"LOADTEST_AGENT_TOKEN" group:"Load:" help:"Secret of the agents. Other users of this machine can see flags: use the variable."`
	Keys        int           `name:"keys" placeholder:"N" group:"Load:" help:"Lookups: number of different queries (default: the scenario's own)."`
	People      int           `name:"people" placeholder:"N" group:"Load:" help:"Number of clients, users or tokens to create, or of idle connections of overload (default: the scenario's own)."`
	Queries     string        `name:"queries" placeholder:"FILE" group:"Load:" help:"Lookups: read the queries from a file, one a line, at least two; lookup-cold sends each once."`
	SkipBad     bool          `name:"skip-bad" group:"Load:" help:"With --queries: leave out lines that are no valid query, such as private addresses, and say how many."`
	Tokens      string        `name:"tokens" placeholder:"FILE" group:"Load:" help:"profile: read the access tokens from a file, one a line, at least two; no operator is needed then."`
	Mix         string        `name:"mix" placeholder:"NAME=WEIGHT,…" group:"Load:" help:"mixed and soak: the scenarios and their weights."`
	Expect      []string      `name:"expect" sep:"none" placeholder:"THRESHOLD" group:"Report:" help:"[STEP ]METRIC<VALUE, such as 'lookup p99<10ms', 'errors<0.1%', 'rate>900' (responses a second); exit 1 when crossed. May be repeated; errors<1% is expected unless a threshold of errors is given."`
	Baseline    string        `name:"baseline" placeholder:"FILE" group:"Report:" help:"Report what is worse than in this earlier --json report."`
	FailOnWorse bool          `name:"fail-on-worse" group:"Report:" help:"With --baseline: exit with 1 if a figure is worse."`
	JSON        string        `name:"json" placeholder:"FILE" group:"Report:" help:"Write the report as JSON; - writes it alone to standard output."`
	HTML        string        `name:"html" placeholder:"FILE" group:"Report:" help:"Write the report as one web page."`
	MetricsURL  string        `name:"metrics-url" placeholder:"URL" group:"Report:" help:"Send the figures of each second to a Prometheus while the load runs, by remote write, such as http://127.0.0.1:9090/api/v1/write."`
	MetricsAuth string        `name:"metrics-authorization" placeholder:"VALUE" env:"LOADTEST_METRICS_AUTHORIZATION" group:"Report:" help:"Authorization header for --metrics-url, such as 'Bearer TOKEN'. Other users of this machine can see flags: use the variable."`
	HDR         string        `name:"hdr" placeholder:"FILE" group:"Report:" help:"Write the distribution of latencies for HdrHistogram's plotter."`
	targetFlags
}

// Help is shown by loadtest run --help.
func (*runCommand) Help() string {
	return "Example:\n\n    loadtest run lookup-hot --rate 5000 --duration 30s --html report.html --expect 'lookup p99<10ms'\n" +
		"    loadtest run token --concurrency 64\n    loadtest run mixed --demo gatehouse-demo"
}

// Run runs one scenario.
func (c *runCommand) Run(p *program, parsed *kong.Context) error {
	job, err := c.read()
	if err != nil {
		return err
	}
	if err := c.applies(job.scenario, job, givenFlags(parsed)); err != nil {
		return err
	}
	if job.setup.Target, err = c.named(); err != nil {
		return err
	}
	if err := job.check(); err != nil {
		return err
	}
	if job.metrics, err = c.newMetrics(job.scenario.Name); err != nil {
		return err
	}
	if job.skipped != "" {
		if _, err := fmt.Fprintln(p.stderr, job.skipped); err != nil {
			return err
		}
	}
	files, err := c.openOutputs()
	if err != nil {
		return err
	}
	return c.run(p, job, files)
}

// run runs the load and writes the reports.
func (c *runCommand) run(p *program, job *job, files outputs) error {
	target, end, err := c.start(p.ctx, job.scenario, job.setup.Target)
	if err != nil {
		return errors.Join(err, files.leave())
	}
	report, err := p.play(job, target)
	if err != nil {
		return errors.Join(err, end(), files.leave())
	}
	if err := errors.Join(c.show(p, report), files.writeAll(report), end()); err != nil {
		return err
	}
	if err := verdict(report); err != nil || !c.FailOnWorse || !report.Regressed() {
		return err
	}
	return &exitError{exitCrossed, "--fail-on-worse: a figure is worse than in the baseline"}
}

func verdict(report *loadtest.Report) error {
	switch report.Verdict() {
	case loadtest.Interrupted:
		return &exitError{code: exitInterrupted}
	case loadtest.Invalid:
		return &exitError{code: exitInvalid}
	case loadtest.Crossed:
		return &exitError{code: exitCrossed}
	}
	return nil
}

// job is a scenario with its load and thresholds.
type job struct {
	scenario loadtest.Scenario
	setup    loadtest.Setup
	config   loadtest.Config
	expect   []loadtest.Expectation
	baseline *loadtest.Baseline
	named    string // the baseline's file
	skipped  string // what was left out of the queries; "" = nothing
	metrics  *metrics
}

// read returns the job of the named scenario, built in or from a file. Flags win over the file's
// load, and add to its thresholds.
func (c *runCommand) read() (*job, error) {
	if !strings.ContainsAny(c.Scenario, `./\`) {
		scenario, err := loadtest.ScenarioNamed(c.Scenario)
		if err != nil {
			return nil, usagef("%s (the name of a file ends in .yaml)", err)
		}
		return c.job(scenario)
	}
	own, err := loadtest.ReadOwn(c.Scenario, c.Duration)
	if err != nil {
		return nil, usagef("%s", err)
	}
	j, err := c.job(own.Scenario)
	if err != nil {
		return nil, err
	}
	if c.Rate == "" && c.Concurrency == 0 {
		j.config.Schedule, j.config.Concurrency = own.Schedule, own.Concurrency
	}
	j.expect = append(own.Thresholds, j.expect...)
	return j, nil
}

// job checks the flags.
func (c *runCommand) job(scenario loadtest.Scenario) (*job, error) {
	j := &job{scenario: scenario, config: loadtest.Config{Timeout: c.Timeout,
		Connections: c.Connections, Concurrency: c.Concurrency, Duration: c.Duration,
		Agents: loadtest.Agents{Addresses: c.Agents, Token: c.AgentToken, Version: version}}}
	if err := c.checkNumbers(); err != nil {
		return nil, err
	}
	if c.Duration == 0 {
		j.config.Duration = scenario.Duration
	}
	if c.Concurrency > 0 && c.Rate != "" {
		return nil, usagef("--rate and --concurrency: choose one of them")
	}
	var err error
	if c.Concurrency == 0 {
		rate := c.Rate
		if rate == "" {
			rate = fmt.Sprint(scenario.Rate)
		}
		if j.config.Schedule, err = loadtest.ParseSchedule(rate, j.config.Duration); err != nil {
			return nil, usagef("--rate: %s", err)
		}
	}
	j.setup.Keys, j.setup.People = c.Keys, c.People
	if c.Mix != "" {
		if j.setup.Mix, err = loadtest.ParseMix(c.Mix); err != nil {
			return nil, usagef("--mix: %s", err)
		}
	}
	if err := c.readQueries(j); err != nil {
		return nil, err
	}
	if j.setup.Tokens, err = readLines("--tokens", c.Tokens, nil); err != nil {
		return nil, err
	}
	for _, text := range c.Expect {
		e, err := loadtest.ParseExpectation(text)
		if err != nil {
			return nil, usagef("--expect: %s", err)
		}
		j.expect = append(j.expect, e)
	}
	if c.FailOnWorse && c.Baseline == "" {
		return nil, usagef("--fail-on-worse: needs an earlier report in --baseline")
	}
	return j, j.readBaseline(c.Baseline)
}

func (j *job) readBaseline(name string) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return usagef("--baseline: %s", err)
	}
	j.named = filepath.Base(name)
	if j.baseline, err = loadtest.ReadBaseline(f); err != nil {
		err = usagef("--baseline %s: %s", name, err)
	}
	return errors.Join(err, f.Close())
}

// readQueries reads the queries of --queries. With --skip-bad it leaves out those that the scenario
// cannot look up.
func (c *runCommand) readQueries(j *job) (err error) {
	if c.SkipBad && c.Queries == "" {
		return usagef("--skip-bad: is of use with --queries only")
	}
	skipped, first := 0, error(nil)
	j.setup.Queries, err = readLines("--queries", c.Queries,
		func(number int, text string) (bool, error) {
			err := j.scenario.CheckQuery(text, j.setup.Mix)
			if err == nil {
				return true, nil
			}
			err = fmt.Errorf("line %d: %w", number, err)
			if !c.SkipBad {
				return false, usagef("--queries %s: %s (--skip-bad leaves out such lines)", c.Queries, err)
			}
			if skipped++; first == nil {
				first = err
			}
			return false, nil
		})
	if skipped > 0 {
		j.skipped = fmt.Sprintf("loadtest: --skip-bad: lines left out of %s: %d; the first is %s",
			c.Queries, skipped, first)
	}
	return err
}

// readLines returns the lines of a file that are not empty and that keep wants, which may be nil.
// It returns nil if no file is named.
func readLines(flag, name string,
	keep func(number int, text string) (bool, error)) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usagef("%s: %s", flag, err)
	}
	defer f.Close()
	var all []string
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		wanted := text != ""
		if wanted && keep != nil {
			if wanted, err = keep(number, text); err != nil {
				return nil, err
			}
		}
		if wanted {
			all = append(all, text)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, usagef("%s: %s", flag, err)
	}
	if len(all) < 2 {
		return nil, usagef("%s %s: needs at least two lines", flag, name)
	}
	return all, nil
}

// headers returns the headers of the flags.
func (f *targetFlags) headers() (all [][2]string, err error) {
	for _, text := range f.Header {
		name, value, ok := strings.Cut(text, ":")
		value = strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, usagef("--header: write NAME: VALUE, such as 'X-Tenant: a'")
		}
		if f.APIKey != "" && strings.EqualFold(name, "X-Api-Key") {
			return nil, usagef("--header and --api-key: choose one of them for X-Api-Key")
		}
		all = append(all, [2]string{name, value})
	}
	if f.APIKey == "" {
		return all, nil
	}
	if !httpguts.ValidHeaderFieldValue(f.APIKey) {
		return nil, usagef("--api-key: a key has no line breaks")
	}
	return append(all, [2]string{"X-Api-Key", f.APIKey}), nil
}

// named returns the target that the flags name, else one of our own that is not started yet.
func (f *targetFlags) named() (t loadtest.Target, err error) {
	if t, err = f.server(); err == nil {
		t.Header, err = f.headers()
	}
	return t, err
}

// server returns the target without headers.
func (f *targetFlags) server() (loadtest.Target, error) {
	switch {
	case f.Demo != "":
		target, err := demoTarget(f.Demo)
		if err != nil {
			return target, err
		}
		if err := target.CheckOwner(f.IOwn); err != nil {
			return target, usagef("--demo %s: %s", f.Demo, err)
		}
		return target, nil
	case f.Target != "":
		target := loadtest.Target{Base: f.Target, Admin: f.Admin, Simulator: f.Simulator,
			ClientID: f.ClientID, ClientSecret: f.ClientSecret}
		if err := target.CheckOwner(f.IOwn); err != nil {
			return target, usagef("%s", err)
		}
		return target, nil
	}
	_, err := f.program()
	return loadtest.Target{Own: true}, err
}

// start starts the target if it is our own, and returns a function that stops it.
func (f *targetFlags) start(ctx context.Context, scenario loadtest.Scenario,
	target loadtest.Target) (loadtest.Target, func() error, error) {
	if !target.Own {
		return target, func() error { return nil }, nil
	}
	program, err := f.program()
	if err != nil {
		return target, nil, err
	}
	local, err := loadtest.StartLocal(ctx, program, f.Database, scenario.Environment()...)
	if err != nil {
		return target, nil, err
	}
	local.Target.Header = target.Header
	return local.Target, local.Stop, nil
}

// program returns the gatehouse program to start.
func (f *targetFlags) program() (string, error) {
	if f.Gatehouse != "" {
		if _, err := os.Stat(f.Gatehouse); err != nil {
			return "", usagef("--gatehouse: %s", err)
		}
		return f.Gatehouse, nil
	}
	return findGatehouse()
}

// demoTarget returns the target that a demo's file describes.
func demoTarget(dir string) (t loadtest.Target, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err != nil {
		return t, usagef("--demo %s: must be the folder of a running demo: %s", dir, err)
	}
	var demo struct {
		Base     string `json:"base_url"`
		Admin    string `json:"admin_url"`
		Upstream string `json:"upstream_url"`
		Clients  struct {
			Operator struct {
				ID     string `json:"client_id"`
				Secret string `json:"client_secret"`
			} `json:"operator"`
		} `json:"clients"`
	}
	if json.Unmarshal(text, &demo) != nil || demo.Base == "" {
		return t, usagef("--demo %s: its demo.json is not what a demo writes", dir)
	}
	return loadtest.Target{Base: demo.Base, Admin: demo.Admin, Simulator: demo.Upstream,
		ClientID: demo.Clients.Operator.ID, ClientSecret: demo.Clients.Operator.Secret}, nil
}

// report returns the job's report without a result.
func (j *job) report() *loadtest.Report {
	r := &loadtest.Report{Scenario: j.scenario.Name, About: j.scenario.About, Began: time.Now(),
		Environment: loadtest.ThisMachine(version), Concurrency: j.config.Concurrency,
		Connections: j.config.Connections}
	if j.config.Schedule != nil {
		r.Schedule = j.config.Schedule.String()
	}
	return r
}

// play runs a job and shows its progress.
func (p *program) play(j *job, target loadtest.Target) (*loadtest.Report, error) {
	line := &liveLine{w: p.stderr, over: p.live, name: j.scenario.Name}
	j.setup.Target, j.setup.Progress, j.config.Live = target, line.progress, line.second
	if j.metrics != nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(p.ctx)) // an interrupted run sends, too
		defer cancel()
		go j.metrics.send(ctx)
		j.config.Live = func(s loadtest.Second) {
			line.second(s)
			j.metrics.second(s)
		}
		defer func() {
			if err := j.metrics.end(cancel); err != nil {
				fmt.Fprintf(p.stderr, "loadtest: %s\n", err)
			}
		}()
	}
	report := j.report()
	var err error
	if report.Result, err = j.scenario.Run(p.ctx, j.setup, j.config); err != nil {
		line.end()
		return nil, err
	}
	line.end()
	report.Expect(j.expect...)
	if j.baseline != nil {
		report.Baseline = j.named
		if report.Worse, err = j.baseline.Compare(report); err != nil {
			report.Baseline = ""
			fmt.Fprintf(p.stderr, "loadtest: --baseline: %s\n", err)
		}
	}
	return report, nil
}

// show writes the report to standard output.
func (c *runCommand) show(p *program, report *loadtest.Report) error {
	if c.JSON == "-" {
		return report.WriteJSON(p.stdout)
	}
	return report.WriteText(p.stdout)
}
