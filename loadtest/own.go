package loadtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/loadtest/plan"
)

// Own is a scenario from a file.
type Own struct {
	Scenario
	Schedule    Schedule // nil = closed
	Concurrency int
	Thresholds  []Expectation

	text      []byte // of the file
	plan      *plan.Plan
	constants map[string]string
	rows      []map[string]string
}

var notInNames = regexp.MustCompile(`[^a-z0-9._-]+`)

// ReadOwn reads the scenario in a YAML file. duration is that of the command line; 0 = the file's.
func ReadOwn(name string, duration time.Duration) (*Own, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	o := &Own{text: text}
	o.plan, err = plan.Read(name, text, func(data string) ([]string, error) {
		f, err := os.Open(filepath.Join(filepath.Dir(name), data))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		var columns []string
		if columns, o.rows, err = plan.ReadRows(f); err != nil {
			return nil, fmt.Errorf("%s: %w", data, err)
		}
		return columns, nil
	})
	if err != nil {
		return nil, err
	}
	if o.constants, err = o.plan.Constants(os.LookupEnv); err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	base = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(base), "-"), "-.0123456789")
	o.Scenario = Scenario{Name: cmp.Or(o.plan.Name, base, "own"), About: o.plan.About, Rate: 10,
		Duration: 10 * time.Second, own: o}
	if _, err := ScenarioNamed(o.Name); err == nil {
		return nil, o.plan.Errorf([]any{"name"},
			"a built-in scenario is called %s: choose another name", o.Name)
	}
	o.prepare = o.ready
	for _, s := range o.plan.Steps {
		if !slices.Contains(o.steps, s.Name) {
			o.steps = append(o.steps, s.Name)
		}
	}
	return o, o.readLoad(duration)
}

// readLoad reads the load and the thresholds.
func (o *Own) readLoad(duration time.Duration) error {
	p := o.plan
	if p.Duration != "" {
		d, err := time.ParseDuration(p.Duration)
		if err != nil || d <= 0 {
			return p.Errorf([]any{"duration"}, "duration: write a time such as 30s")
		}
		o.Duration = d
	}
	if duration > 0 {
		o.Duration = duration
		if p.Timed() {
			return p.Errorf([]any{"stages"}, "--duration: the stages of the file say how long they are")
		}
	}
	for i, text := range p.Stages {
		stage, err := ParseSchedule(string(text), o.Duration)
		if err != nil {
			return p.Errorf([]any{"stages", i}, "stages: %s", err)
		}
		o.Schedule = append(o.Schedule, stage...)
	}
	if o.Concurrency = p.Users; o.Schedule == nil && o.Concurrency == 0 {
		o.Schedule = Steady(o.Rate, o.Duration)
	}
	for i, text := range p.Thresholds {
		e, err := ParseExpectation(text)
		if err == nil && !e.Names(o.steps) {
			err = fmt.Errorf("%q: there is no step %s: there are %s", text, e.Step,
				strings.Join(o.steps, ", "))
		}
		if err != nil {
			return p.Errorf([]any{"thresholds", i}, "thresholds: %s", err)
		}
		o.Thresholds = append(o.Thresholds, e)
	}
	return nil
}

// needs returns the flags that the steps need and the target lacks.
func (o *Own) needs(t Target) (missing []string) {
	for _, s := range slices.Concat(o.plan.Setup, o.plan.Teardown) {
		if s.Server == "admin" && t.Admin == "" {
			return []string{"--admin"}
		}
	}
	return nil
}

// ready makes the requests of setup. Those of teardown follow after the run, and after a setup that
// failed.
func (o *Own) ready(ctx context.Context, s *Setup) (*workload, error) {
	p, err := o.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	return o.workload(s, p.shared, p.rows, p.end), nil
}

// workload returns the hits of the scenario with variables and rows. after may be nil.
func (o *Own) workload(s *Setup, shared map[string]string, rows []map[string]string,
	after func(context.Context) error) *workload {
	return &workload{hit: func(h *Hit) error { return o.hit(h, s, shared, rows) }, after: after}
}

// begin makes the requests of setup, and those of teardown if one fails.
func (o *Own) begin(ctx context.Context, s *Setup) (*prelude, error) {
	public, err := newRun(s.Target.Base, Config{Timeout: s.provisioner.o.http.Timeout}, nil)
	if err != nil {
		return nil, err
	}
	public.header = s.Target.Header
	servers := map[string]*run{"": public, "public": public}
	if s.Target.Admin != "" {
		if servers["admin"], err = newRun(s.Target.Admin, public.config, nil); err != nil {
			return nil, err
		}
	}
	shared := maps.Clone(o.constants)
	maps.Copy(shared, map[string]string{"run": s.provisioner.run, "target": publicAddress(
		s.Target.Base), "operator.id": s.Target.ClientID, "operator.secret": s.Target.ClientSecret})
	rows := make([]map[string]string, len(o.rows))
	for i := range rows {
		rows[i] = maps.Clone(o.rows[i])
	}
	p := &prelude{o, s, servers, shared, rows}
	if err := p.setUp(ctx); err != nil {
		return nil, errors.Join(err, p.end(ctx))
	}
	return p, nil
}

// end makes the requests of teardown, also when ctx has ended.
func (p *prelude) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	defer p.servers["public"].client.CloseIdleConnections()
	return p.tearDown(ctx)
}

// prelude makes requests that are not measured.
type prelude struct {
	own     *Own
	setup   *Setup
	servers map[string]*run
	shared  map[string]string
	rows    []map[string]string
}

// setUp makes the requests of setup, up to the first that fails.
func (p *prelude) setUp(ctx context.Context) error {
	for i := range p.own.plan.Setup {
		s := &p.own.plan.Setup[i]
		if err := p.play(ctx, i, s, func(row map[string]string, n int) error {
			return p.request(s, row, n)
		}); err != nil {
			return fmt.Errorf("setup: %w", err)
		}
	}
	return nil
}

// tearDown makes all requests of teardown until ctx ends. A failed one does not keep the others
// from removing what they can. The error has the first failure of each step.
func (p *prelude) tearDown(ctx context.Context) error {
	var failures []string
	for i := range p.own.plan.Teardown {
		s := &p.own.plan.Teardown[i]
		var mu sync.Mutex
		var first error
		err := p.play(ctx, i, s, func(row map[string]string, n int) error {
			if err := p.request(s, row, n); err != nil {
				mu.Lock()
				defer mu.Unlock()
				first = cmp.Or(first, err)
			}
			return nil
		})
		if first = cmp.Or(first, err); first != nil {
			failures = append(failures, first.Error())
		}
	}
	if failures == nil {
		return nil
	}
	return fmt.Errorf("teardown: %s", strings.Join(failures, "; "))
}

// play calls do for each row of the data if the step has each_row, and else once without a row,
// with the step's number.
func (p *prelude) play(ctx context.Context, number int, s *plan.Step,
	do func(row map[string]string, n int) error) error {
	if s.EachRow {
		return p.setup.provisioner.each(ctx, len(p.rows), "rows for "+s.Name, func(n int) error {
			return do(p.rows[n], n)
		})
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return do(nil, number)
}

// request makes the request of a step. row may be nil; n is its number.
func (p *prelude) request(s *plan.Step, row map[string]string, n int) error {
	h := &Hit{Number: uint64(n), Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		run: p.servers[s.Server]}
	into := row
	if into == nil {
		into = p.shared
	}
	visit := &visit{h: h, base: p.setup.Target.Base, from: []map[string]string{row, p.shared},
		into: into}
	request, wrong := visit.request(s)
	if wrong == "" {
		_, _, wrong = h.exchange(&request)
	}
	if wrong != "" {
		return fmt.Errorf("%s: %s", s.Name, wrong)
	}
	return nil
}

// hit makes the requests of one hit.
func (o *Own) hit(h *Hit, s *Setup, shared map[string]string, rows []map[string]string) error {
	own := map[string]string{}
	v := &visit{h: h, base: s.Target.Base, from: []map[string]string{own, shared}, into: own,
		cookies: &browser{h: h}}
	if n := uint64(len(rows)); n > 0 {
		if o.plan.Data.Once && h.turn >= n {
			return errUsedUp
		}
		v.from = []map[string]string{own, rows[h.turn%n], shared}
	}
	for i := range o.plan.Steps {
		step := &o.plan.Steps[i]
		request, wrong := v.request(step)
		if wrong != "" {
			h.fail(step.Name, wrong)
			return errStep
		}
		if _, err := v.cookies.do(step.Name, request); err != nil {
			return err
		}
	}
	return nil
}

// visit is the state of a hit: its variables and cookies.
type visit struct {
	h       *Hit
	base    string
	from    []map[string]string // variables, the first map with a name counts
	into    map[string]string   // for what steps save
	cookies *browser
}

func (v *visit) value(name string) string {
	switch name {
	case "hit":
		return strconv.FormatUint(v.h.Number, 10)
	case "random":
		return fmt.Sprintf("%016x", v.h.Rand.Uint64())
	}
	for _, all := range v.from {
		if value, ok := all[name]; ok {
			return value
		}
	}
	return ""
}

// request returns the request of a step, or what is wrong with a value in it.
func (v *visit) request(s *plan.Step) (q Request, wrong string) {
	q = Request{Method: s.Method, Path: s.Path.Fill(v.value, func(at int, value string) string {
		if at == 0 {
			return value
		}
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	})}
	if strings.Contains(q.Path, "://") {
		q.Path = strings.TrimPrefix(q.Path, strings.TrimSuffix(v.base, "/"))
	}
	if !strings.HasPrefix(q.Path, "/") || strings.HasPrefix(q.Path, "//") {
		return q, "the path leads to another server"
	}
	switch {
	case s.Form != nil:
		q.Form = url.Values{}
		for name, text := range s.Form {
			q.Form.Set(name, text.Fill(v.value, nil))
		}
	case s.JSON != nil:
		var err error
		if q.JSON, err = s.JSON.Fill(v.value); err != nil {
			return q, "the body is no JSON"
		}
	case s.Body != nil:
		q.Text = []byte(s.Body.Fill(v.value, nil))
	}
	for name, text := range s.Headers {
		value := text.Fill(v.value, nil)
		if strings.ContainsAny(value, "\r\n") {
			return q, "the header " + name + " has a line break"
		}
		q.Header = append(q.Header, [2]string{name, value})
	}
	q.Want = func(r *Response) string { return v.read(s, r) }
	return q, ""
}

// read saves what a step saves, and returns what is wrong with the response.
func (v *visit) read(s *plan.Step, r *Response) string {
	if !s.Expect.Has(r.Status) {
		return wrongStatus(r)
	}
	for name, from := range s.Save {
		value, wrong := from.Read(r.Header, r.Body)
		if wrong != "" {
			return wrong
		}
		v.into[name] = strings.Clone(value)
	}
	return ""
}

// afterwards is the time in which requests of teardown may begin.
const afterwards = 30 * time.Second
