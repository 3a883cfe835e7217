package loadtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

const testToken = "0123456789abcdef0123456789abcdef"

// pipes is a listener in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// camp has agents in this process, whose hits go to a host in memory.
type camp struct {
	agents Agents
	stop   []context.CancelFunc // of each agent
	logs   *bytes.Buffer
	wait   func()
}

// newCamp starts n agents with a token.
func newCamp(t *testing.T, n int, token string, target *host) *camp {
	t.Helper()
	c := &camp{logs: &bytes.Buffer{}}
	lines := map[string]*pipes{}
	var serving sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		address := fmt.Sprintf("127.0.0.1:%d", i+1)
		ln := newPipes()
		lines[address] = ln
		ctx, cancel := context.WithCancel(t.Context())
		agent := &Agent{Token: token, Version: "v1", Log: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(c.logs, line)
		}, tune: func(r *run) { r.client.Dial, r.sleep = target.dial, time.Sleep }}
		serving.Go(func() {
			if err := agent.Serve(ctx, ln); err != nil {
				t.Error(err)
			}
		})
		c.stop = append(c.stop, cancel)
		c.agents.Addresses = append(c.agents.Addresses, address)
	}
	c.wait = func() {
		for _, stop := range c.stop {
			stop()
		}
		serving.Wait()
	}
	c.agents.Token, c.agents.Version = testToken, "v1"
	c.agents.dial = func(_ context.Context, address string) (net.Conn, error) {
		return lines[address].dial()
	}
	return c
}

// recorded is the latency of a hit: most are fast, some slow, one in a hundred very slow.
func recorded(hit uint64) time.Duration {
	d := time.Duration(1+hit*7919%997) * 17 * time.Microsecond
	switch {
	case hit%100 == 37:
		return 500*time.Millisecond + 13*d
	case hit%10 == 3:
		return 40*time.Millisecond + d
	}
	return d
}

// numbered is a scenario whose hits request /NUMBER.
func numbered(t *testing.T, more string) Scenario {
	t.Helper()
	file := filepath.Join(t.TempDir(), "numbered.yaml")
	text := "steps: [{name: one, path: \"/${hit}\"}]\n" + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := ReadOwn(file, 0)
	if err != nil {
		t.Fatal(err)
	}
	return own.Scenario
}

// replaying is a host whose latencies are the recorded ones. Every seventh hit fails.
func replaying() *host {
	return &host{handler: func(ctx *fasthttp.RequestCtx) {
		hit, err := strconv.ParseUint(string(ctx.Path()[1:]), 10, 64)
		if err != nil {
			panic(err)
		}
		time.Sleep(recorded(hit))
		if hit%7 == 0 {
			ctx.SetStatusCode(503)
		}
	}}
}

// TestThreeAgentsMeasureAsOne replays recorded latencies to one agent and to three, in virtual
// time. Every figure is the same: the histograms of all hits, of each step, and of each second.
func TestThreeAgentsMeasureAsOne(t *testing.T) {
	scenario := numbered(t, "")
	// No hit is due when a second ends: it could count in either.
	schedule := Schedule{{From: 50.3, To: 151.1, For: 2 * time.Second}, {From: 151.1, To: 151.1,
		For: 4 * time.Second}}
	results := map[int]*Result{}
	for _, n := range []int{1, 3} {
		warmFasthttp(t)
		synctest.Test(t, func(t *testing.T) {
			c := newCamp(t, n, testToken, replaying())
			var live int64
			result, err := scenario.Run(t.Context(), Setup{Target: Target{Base: "http://127.0.0.1:1"}},
				Config{Schedule: schedule, Agents: c.agents,
					Live: func(s Second) { live += s.Attempts }})
			if err != nil {
				t.Fatal(err)
			}
			if live != result.All.Attempts {
				t.Errorf("%d agents: got %d attempts live, %d in all", n, live, result.All.Attempts)
			}
			results[n] = result
			c.wait()
			time.Sleep(2 * time.Minute)
		})
	}
	one, three := results[1], results[3]
	if one == nil || three == nil {
		t.Fatal("got no results")
	}
	if !one.All.latency.Equals(three.All.latency) || one.All.latency.TotalCount() != 690 ||
		three.Hits != 805 || !three.Valid() || len(three.Seconds) != len(one.Seconds) {
		t.Errorf("got %+v of three agents, want %+v as of one", three.All, one.All)
	}
	figures := func(s Step) string { s.latency = nil; return fmt.Sprintf("%+v", s) }
	for i := range one.Steps {
		got, want := three.Steps[i], one.Steps[i]
		got.Rate, got.AttemptRate, got.FailureRate = want.Rate, want.AttemptRate, want.FailureRate
		if figures(got) != figures(want) || got.P999 < 500*time.Millisecond {
			t.Errorf("got\n%s of three agents, want\n%s", figures(got), figures(want))
		}
	}
	for i := range one.Seconds {
		got, want := three.Seconds[i], one.Seconds[i]
		if got.Attempts != want.Attempts || got.Failed != want.Failed || got.P50 != want.P50 ||
			got.P99 != want.P99 || got.Hits != want.Hits || !slices.Equal(got.Statuses, want.Statuses) ||
			got.At-want.At > time.Millisecond || want.At-got.At > time.Millisecond {
			t.Errorf("second %d: got\n%+v of three agents, want\n%+v", i, got, want)
		}
	}
	if three.Target != one.Target || three.Late != one.Late ||
		three.Achieved < 0.99*one.Achieved {
		t.Errorf("got target %v, late %v, achieved %v, want %v, %v, %v", three.Target, three.Late,
			three.Achieved, one.Target, one.Late, one.Achieved)
	}
}

// TestLostAgentMakesTheRunInvalid ends one of three agents in the middle. The others end early, and
// every form of the report says so.
func TestLostAgentMakesTheRunInvalid(t *testing.T) {
	scenario := numbered(t, "")
	warmFasthttp(t)
	synctest.Test(t, func(t *testing.T) {
		c := newCamp(t, 3, testToken, replaying())
		time.AfterFunc(5*time.Second, c.stop[1])
		result, err := scenario.Run(t.Context(), Setup{Target: Target{Base: "http://127.0.0.1:1"}},
			Config{Schedule: Steady(90, time.Minute), Agents: c.agents})
		if err != nil {
			t.Fatal(err)
		}
		c.wait()
		time.Sleep(2 * time.Minute)
		r := &Report{Scenario: "numbered", Schedule: "90:1m", Result: result}
		var text, page, machine bytes.Buffer
		if err := errors.Join(r.WriteText(&text), r.WriteHTML(&page), r.WriteJSON(&machine)); err != nil {
			t.Fatal(err)
		}
		const lost = "agent 127.0.0.1:2 after 5" // seconds, and how long it takes to end
		if r.Verdict() != Invalid || len(result.Lost) != 1 || result.Took > 8*time.Second ||
			result.Hits < 400 || result.Hits > 470 ||
			!strings.Contains(text.String(), "INVALID: an agent was lost") ||
			!strings.Contains(text.String(), lost) || !strings.Contains(page.String(), lost) ||
			!strings.Contains(text.String(), ": it was stopped") ||
			!strings.Contains(machine.String(), `"lost_agents": [`) {
			t.Errorf("got %s, %d hits in %s, lost %v\n%s", r.Verdict(), result.Hits, result.Took,
				result.Lost, &text)
		}
	})
}

// TestAgentsEndWithTheirCoordinator ends the coordinator in the middle of a run, by a signal and
// without a word. The agents make no more hits.
func TestAgentsEndWithTheirCoordinator(t *testing.T) {
	for _, silent := range []bool{false, true} {
		scenario := numbered(t, "")
		warmFasthttp(t)
		synctest.Test(t, func(t *testing.T) {
			var hits atomic.Int64
			c := newCamp(t, 2, testToken, &host{handler: func(*fasthttp.RequestCtx) { hits.Add(1) }})
			dial := c.agents.dial
			if silent { // what the coordinator sends is lost from the fifth second on
				began := time.Now()
				c.agents.dial = func(ctx context.Context, address string) (net.Conn, error) {
					conn, err := dial(ctx, address)
					return &deaf{conn, began.Add(5 * time.Second)}, err
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if silent {
				ctx = t.Context()
			}
			result, err := scenario.Run(ctx, Setup{Target: Target{Base: "http://127.0.0.1:1"}},
				Config{Schedule: Steady(10, time.Hour), Agents: c.agents})
			if err != nil {
				t.Fatal(err)
			}
			made := hits.Load()
			if !result.Ended || result.Took > 25*time.Second || made > 250 || made < 40 ||
				silent != (result.Lost != nil) || !silent && result.Hits != made {
				t.Errorf("silent %v: got ended %v, %d hits of %d in %s, lost %v", silent, result.Ended,
					result.Hits, made, result.Took, result.Lost)
			}
			time.Sleep(10 * time.Minute)
			if again := hits.Load(); again != made {
				t.Errorf("silent %v: got %d more hits after the end", silent, again-made)
			}
			c.wait()
		})
	}
}

// deaf is a connection that loses what is written from a time on.
type deaf struct {
	net.Conn
	from time.Time
}

func (d *deaf) Write(text []byte) (int, error) {
	if time.Now().After(d.from) {
		return len(text), nil
	}
	return d.Conn.Write(text)
}

// TestAgentsMakeOneRunAtATime has a second run while the first goes on, and one right after it.
func TestAgentsMakeOneRunAtATime(t *testing.T) {
	scenario := numbered(t, "")
	warmFasthttp(t)
	synctest.Test(t, func(t *testing.T) {
		c := newCamp(t, 2, testToken, replaying())
		play := func(d time.Duration) error {
			_, err := scenario.Run(t.Context(), Setup{Target: Target{Base: "http://127.0.0.1:1"}},
				Config{Schedule: Steady(10, d), Agents: c.agents})
			return err
		}
		var first sync.WaitGroup
		first.Go(func() {
			if err := play(20 * time.Second); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(5 * time.Second)
		if err := play(time.Second); err == nil || !strings.Contains(err.Error(), "is busy") {
			t.Errorf("got %v, want the agents to be busy", err)
		}
		first.Wait()
		if err := play(time.Second); err != nil {
			t.Errorf("got %v right after a run, want another", err)
		}
		c.wait()
		time.Sleep(2 * time.Minute)
	})
}

// TestTokensAreMutual has coordinators and agents with other tokens. Neither side says anything to
// the other: no job, no version, no request to the target.
func TestTokensAreMutual(t *testing.T) { synctest.Test(t, testTokens) }

func testTokens(t *testing.T) {
	target := &host{handler: func(*fasthttp.RequestCtx) { t.Error("got a request, want none") }}
	scenario := numbered(t, "setup: [{name: before, path: /}]")
	c := newCamp(t, 2, strings.Repeat("x", MinToken), target)
	play := func(agents Agents) error {
		_, err := scenario.Run(t.Context(), Setup{Target: Target{Base: "http://127.0.0.1:1"}},
			Config{Schedule: Steady(10, time.Second), Agents: agents})
		return err
	}
	if err := play(c.agents); err == nil || !strings.Contains(err.Error(),
		"agent 127.0.0.1:1: the other side has another token") {
		t.Errorf("got %v, want an error about the token", err)
	}
	// The agent accepts any coordinator here: the coordinator refuses.
	if err := play(impostor(t)); !errors.Is(err, errToken) {
		t.Errorf("got %v, want the coordinator to refuse an agent with another token", err)
	}
	// The coordinator accepts any agent here: the agent refuses.
	config, err := tlsOf(testToken, coordinatorSide, agentSide)
	if err != nil {
		t.Fatal(err)
	}
	config.VerifyConnection = nil
	for _, anonymous := range []bool{false, true} {
		if anonymous {
			config.Certificates = nil
		}
		conn, err := c.agents.dial(t.Context(), "127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		if err := greet(t, conn, config); !errors.Is(err, errToken) {
			t.Errorf("anonymous %v: got %v, want the agent to refuse", anonymous, err)
		}
	}
	// An agent cannot repeat the proof of a coordinator, nor the other way round.
	if config, err = tlsOf(strings.Repeat("x", MinToken), agentSide, agentSide); err != nil {
		t.Fatal(err)
	}
	conn, err := c.agents.dial(t.Context(), "127.0.0.1:2")
	if err != nil {
		t.Fatal(err)
	}
	if err := greet(t, conn, config); !errors.Is(err, errToken) {
		t.Errorf("got %v between two agents, want one to refuse", err)
	}
	c.agents.Token = strings.Repeat("x", MinToken)
	c.agents.Version = "v2"
	if err := play(c.agents); err == nil || !strings.Contains(err.Error(), "is loadtest v1, and this is v2") {
		t.Errorf("got %v, want an error about the versions", err)
	}
	c.wait()
	if log := c.logs.String(); strings.Count(log, "another token") < 2 ||
		strings.Contains(log, testToken) {
		t.Errorf("got log\n%s\nwant the refusals without a token", log)
	}
	time.Sleep(time.Minute)
}

// impostor is an agent that accepts any coordinator and does not know its token.
func impostor(t *testing.T) Agents {
	t.Helper()
	config, err := tlsOf(strings.Repeat("x", MinToken), agentSide, coordinatorSide)
	if err != nil {
		t.Fatal(err)
	}
	config.VerifyConnection = nil
	return Agents{Addresses: []string{"127.0.0.1:9"}, Token: testToken, Version: "v1",
		dial: func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				l, err := newLink(t.Context(), tls.Server(theirs, config))
				if err != nil {
					return
				}
				defer l.close()
				l.send(message{Version: "v1"})
				if m, err := l.receive(); err == nil {
					t.Errorf("got %+v from the coordinator, want it to refuse", m)
				}
			}()
			return ours, nil
		}}
}

// greet connects to an agent and returns why there is no link.
func greet(t *testing.T, conn net.Conn, config *tls.Config) error {
	l, err := newLink(t.Context(), tls.Client(conn, config))
	if err != nil {
		return err
	}
	defer l.close()
	_, err = l.receive()
	return err
}

// TestAgentsRefuseTargetsOfOthers has coordinators with the token that aim agents elsewhere. The
// agents send nothing there.
func TestAgentsRefuseTargetsOfOthers(t *testing.T) { synctest.Test(t, testRefusals) }

func testRefusals(t *testing.T) {
	target := &host{handler: func(*fasthttp.RequestCtx) { t.Error("got a request, want none") }}
	c := newCamp(t, 1, testToken, target)
	defer time.Sleep(time.Minute)
	defer c.wait()
	good := job{Scenario: "lookup-hot", Target: Target{Base: "http://127.0.0.1:1"},
		Schedule: Steady(1, time.Second), Timeout: time.Second, Connections: 1, Part: Part{0, 1}}
	for _, c2 := range []struct {
		name string
		edit func(*job)
		want string
	}{
		{"base", func(j *job) { j.Target.Base = "http://stranger.example" },
			"stranger.example is not this machine"},
		{"admin", func(j *job) { j.Target.Admin = "http://192.0.2.1" }, "192.0.2.1 is not this machine"},
		{"user", func(j *job) { j.Target.Base = "http://127.0.0.1:1@stranger.example" },
			"without user"},
		{"own", func(j *job) { j.Target.Base, j.Target.Own = "http://stranger.example", true },
			"stranger.example is not this machine"},
		{"scenario", func(j *job) { j.Scenario = "outage" }, "run it without agents"},
		{"no load", func(j *job) { j.Schedule = nil }, "the load is malformed"},
		{"part", func(j *job) { j.Part = Part{1, 1} }, "the load is malformed"},
		{"schedule", func(j *job) { j.Schedule[0].For = 0 }, "the schedule is malformed"},
		{"file", func(j *job) {
			j.Own = &shippedPlan{Text: []byte("steps:\n- {name: a, path: /}\n" +
				"data: {file: /etc/passwd}\n")}
		}, "there are no rows"},
	} {
		fleet, err := c.agents.muster(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		j := good
		j.Schedule = slices.Clone(good.Schedule)
		c2.edit(&j)
		if err := fleet.all[0].link.send(message{Job: &j}); err != nil {
			t.Fatal(err)
		}
		if _, err := fleet.all[0].next(); err == nil || !strings.Contains(err.Error(), c2.want) {
			t.Errorf("%s: got %v, want %q", c2.name, err, c2.want)
		}
		fleet.close()
		time.Sleep(time.Minute) // until the agent is free again
	}
}

// TestPartsAreTheWhole splits schedules, users and rows.
func TestPartsAreTheWhole(t *testing.T) {
	schedule := Schedule{{From: 0, To: 31, For: 3 * time.Second}, {From: 7, To: 7, For: time.Second}}
	rows := []string{"a", "b", "c", "d", "e", "f", "g"}
	for of := 1; of <= 5; of++ {
		var hits uint64
		seen := map[uint64]bool{}
		var all []string
		for i := range of {
			p := Part{i, of}
			hits += p.size(schedule.Hits())
			for n := range p.size(schedule.Hits()) {
				seen[p.number(n)] = true
			}
			if next := p.number(p.size(schedule.Hits())); next < schedule.Hits() {
				t.Errorf("part %d of %d: got hit %d left out", i, of, next)
			}
			all = append(all, partOf(p, rows)...)
		}
		slices.Sort(all)
		if hits != schedule.Hits() || uint64(len(seen)) != hits || !slices.Equal(all, rows) {
			t.Errorf("%d parts: got %d hits, %d different, rows %v, want %d and all rows", of, hits,
				len(seen), all, schedule.Hits())
		}
	}
	if whole := (Part{}); whole.size(5) != 5 || whole.number(3) != 3 {
		t.Error("got a part, want the zero Part to be the whole")
	}
}

// TestAgentsAreChecked has runs that cannot be split.
func TestAgentsAreChecked(t *testing.T) {
	two := []string{"127.0.0.1:1", "127.0.0.1:2"}
	hot, err := ScenarioNamed("lookup-hot")
	if err != nil {
		t.Fatal(err)
	}
	cold, err := ScenarioNamed("lookup-cold")
	if err != nil {
		t.Fatal(err)
	}
	outage, err := ScenarioNamed("outage")
	if err != nil {
		t.Fatal(err)
	}
	here, away := Target{Base: "http://127.0.0.1:1"}, Target{Base: "http://10.0.0.1:1"}
	for _, c := range []struct {
		name   string
		sc     Scenario
		agents Agents
		setup  Setup
		config Config
		want   string // "" = no error
	}{
		{"good", hot, Agents{Addresses: two, Token: testToken}, Setup{Target: here}, Config{}, ""},
		{"none", outage, Agents{}, Setup{Target: here}, Config{}, ""},
		{"own server", hot, Agents{Addresses: two, Token: testToken}, Setup{Target: Target{Own: true}},
			Config{}, ""},
		{"away", hot, Agents{Addresses: []string{"10.0.0.2:1"}, Token: testToken},
			Setup{Target: away}, Config{}, ""},
		{"loopback from elsewhere", hot, Agents{Addresses: []string{"10.0.0.2:1"}, Token: testToken},
			Setup{Target: here}, Config{}, "10.0.0.2:1 cannot reach a target on this machine"},
		{"loopback by IPv6", hot, Agents{Addresses: []string{"10.0.0.2:1"}, Token: testToken},
			Setup{Target: Target{Base: "http://[::1]"}}, Config{}, "cannot reach"},
		{"own server elsewhere", hot, Agents{Addresses: []string{"10.0.0.2:1"}, Token: testToken},
			Setup{Target: Target{Own: true}}, Config{}, "cannot reach"},
		{"outage", outage, Agents{Addresses: two, Token: testToken}, Setup{Target: here}, Config{},
			"run it without agents"},
		{"no port", hot, Agents{Addresses: []string{"127.0.0.1"}, Token: testToken},
			Setup{Target: here}, Config{}, "write HOST:PORT"},
		{"repeated", hot, Agents{Addresses: []string{two[0], two[0]}, Token: testToken},
			Setup{Target: here}, Config{}, "is repeated"},
		{"short token", hot, Agents{Addresses: two, Token: "secret"}, Setup{Target: here}, Config{},
			"at least 32 characters"},
		{"users", hot, Agents{Addresses: two, Token: testToken}, Setup{Target: here},
			Config{Concurrency: 1}, "--concurrency: too few (1) for 2 agents"},
		{"few queries", hot, Agents{Addresses: append(two, "127.0.0.1:3"), Token: testToken},
			Setup{Target: here, Queries: []string{"8.8.8.8", "1.1.1.1"}}, Config{Connections: 9}, ""},
		{"queries used up", cold, Agents{Addresses: two, Token: testToken}, Setup{Target: here,
			Queries: []string{"a.example", "A.EXAMPLE"}}, Config{}, "--queries: too few (1) for 2 agents"},
		{"tokens", hot, Agents{Addresses: two, Token: testToken}, Setup{Target: here,
			Tokens: []string{"a", "b", "c"}}, Config{}, "--tokens (two for each): too few (1)"},
		{"connections", hot, Agents{Addresses: two, Token: testToken}, Setup{Target: here},
			Config{Connections: 1}, "--connections: too few"},
	} {
		err := c.agents.Check(c.sc, c.setup, c.config)
		if c.want == "" && err != nil || c.want != "" && (err == nil ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
