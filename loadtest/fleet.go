package loadtest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Agents names the agents of a run, which make its hits instead of this process.
type Agents struct {
	Addresses []string // HOST:PORT; none = this process makes the hits
	Token     string   // at least MinToken bytes
	Version   string   // of this program
	// dial connects to an agent; nil = by TCP.
	dial func(ctx context.Context, address string) (net.Conn, error) // for tests; nil = TCP
}

// Check returns an error if the scenario, with s and config, cannot be split among the agents.
func (a Agents) Check(sc Scenario, s Setup, config Config) error {
	n := len(a.Addresses)
	if n == 0 {
		return nil
	}
	if err := sc.checkApart(); err != nil {
		return err
	}
	away := ""
	for i, address := range a.Addresses {
		host, port, err := net.SplitHostPort(address)
		switch {
		case err != nil || host == "" || port == "":
			return fmt.Errorf("--agents: %q: write HOST:PORT", address)
		case slices.Contains(a.Addresses[:i], address):
			return fmt.Errorf("--agents: %s is repeated", address)
		case !isLoopback(host):
			away = address
		}
	}
	if away != "" && s.Target.isHere() {
		return fmt.Errorf("--agents: %s cannot reach a target on this machine's loopback: give --target an address that all agents reach", away)
	}
	if len(a.Token) < MinToken {
		return fmt.Errorf("--agent-token: give the token of the agents, at least %d characters, such as from openssl rand -hex 32", MinToken)
	}
	usedUp := 0 // queries that are looked up once
	if slices.ContainsFunc(sc.parts(s.Mix), func(part Scenario) bool {
		return part.Name == "lookup-cold"
	}) {
		usedUp = len(distinct(s.Queries))
	}
	for _, x := range []struct {
		what string
		have int
	}{{"--concurrency", config.Concurrency}, {"--connections", config.Connections},
		{"--queries", usedUp}, {"--tokens (two for each)", len(s.Tokens) / 2},
		{"data", sc.rows()}} {
		if x.have > 0 && x.have < n {
			return fmt.Errorf("%s: too few (%d) for %d agents", x.what, x.have, n)
		}
	}
	return nil
}

// isHere reports whether an address of the target is on loopback, or will be.
func (t Target) isHere() bool {
	return t.Own || slices.ContainsFunc([]string{t.Base, t.Admin}, func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && isLoopback(u.Hostname())
	})
}

// rows returns the number of rows of the scenario's data; 0 = it has none.
func (sc Scenario) rows() int {
	if sc.own == nil {
		return 0
	}
	return len(sc.own.rows)
}

// checkApart returns an error if only one process can make the hits: a scenario that breaks the
// target or watches it meanwhile.
func (sc Scenario) checkApart() error {
	if slices.Contains([]string{"outage", "overload", "soak"}, sc.Name) {
		return fmt.Errorf("--agents: %s breaks or watches the target during the run: run it without agents", sc.Name)
	}
	return nil
}

// fleet are the agents of a run.
type fleet struct{ all []*remote }

// remote is an agent as its coordinator sees it.
type remote struct {
	name string
	link *link
	part Part
}

// muster connects to all agents. They prove that they know the token, and have the same version.
func (a Agents) muster(ctx context.Context) (*fleet, error) {
	config, err := tlsOf(a.Token, coordinatorSide, agentSide)
	if err != nil {
		return nil, err
	}
	f := &fleet{}
	for i, address := range a.Addresses {
		f.all = append(f.all, &remote{name: address, part: Part{i, len(a.Addresses)}})
	}
	dial := a.dial
	if dial == nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{Timeout: greeting}).DialContext(ctx, "tcp", address)
		}
	}
	err = f.each(func(r *remote) error {
		conn, err := dial(ctx, r.name)
		if err != nil {
			return err
		}
		if r.link, err = newLink(ctx, tls.Client(conn, config)); err != nil {
			return lostBecause(err)
		}
		m, err := r.next()
		if err == nil && m.Version != a.Version {
			err = fmt.Errorf("is loadtest %s, and this is %s: use one version", m.Version, a.Version)
		}
		return err
	})
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// each calls do for all agents at once and returns the first error in their order.
func (f *fleet) each(do func(*remote) error) error {
	errs := make([]error, len(f.all))
	var tasks sync.WaitGroup
	for i, r := range f.all {
		tasks.Go(func() {
			if err := do(r); err != nil {
				errs[i] = fmt.Errorf("agent %s: %w", r.name, err)
			}
		})
	}
	tasks.Wait()
	return cmp.Or(errs...)
}

// close ends all links. Agents end their loads then.
func (f *fleet) close() {
	for _, r := range f.all {
		if r.link != nil {
			r.link.close()
		}
	}
}

// next returns the next message, or an error for what failed at the agent.
func (r *remote) next() (message, error) {
	m, err := r.link.receive()
	if err == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	return m, err
}

// ship connects to the agents, makes the setup of a scenario from a file, and lets the agents
// prepare the rest. The workload has no hits.
func (sc Scenario) ship(ctx context.Context, s *Setup, config Config) (*fleet, *workload, error) {
	f, err := config.Agents.muster(ctx)
	if err != nil {
		return nil, nil, err
	}
	w := &workload{}
	var own *prelude
	if sc.own != nil {
		if own, err = sc.own.begin(ctx, s); err == nil {
			w.after = own.end
		}
	}
	if err == nil {
		err = f.prepare(ctx, sc, s, config, own)
	}
	if err != nil {
		f.close()
		if w.after != nil {
			err = errors.Join(err, w.after(ctx))
		}
		return nil, nil, err
	}
	return f, w, nil
}

// prepare sends each agent its part and waits until all are ready. own is the scenario's setup; nil
// = built in, which the agents prepare.
func (f *fleet) prepare(ctx context.Context, sc Scenario, s *Setup, config Config,
	own *prelude) error {
	defer context.AfterFunc(ctx, f.close)()
	var mu sync.Mutex
	done := make([][2]int, len(f.all))
	err := f.each(func(r *remote) error {
		if err := r.link.send(message{Job: r.job(sc, s, config, own)}); err != nil {
			return err
		}
		for {
			m, err := r.next()
			if err != nil || m.Ready {
				return err
			}
			mu.Lock()
			done[r.part.Index] = [2]int{m.Done, m.Of}
			ready, of := 0, 0
			for _, x := range done {
				ready, of = ready+x[0], of+x[1]
			}
			s.Progress(ready, of, m.What)
			mu.Unlock()
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// job returns the agent's part.
func (r *remote) job(sc Scenario, s *Setup, config Config, own *prelude) *job {
	share := func(n int) int { return int(r.part.size(uint64(n))) }
	j := &job{Scenario: sc.Name, Target: s.Target, Keys: s.Keys, People: s.People,
		Queries: s.Queries, Tokens: s.Tokens, Mix: s.Mix,
		Schedule: config.Schedule, Concurrency: share(config.Concurrency),
		Duration: config.Duration, Timeout: config.Timeout,
		Connections: share(config.Connections), Part: r.part}
	if s.People > 0 {
		j.People = max(1, share(s.People))
	}
	j.Target.Simulator, j.Target.Own = "", false
	if own != nil {
		j.Scenario, j.Own = "", &shippedPlan{Text: own.own.text, Shared: own.shared,
			Rows: partOf(r.part, own.rows)}
		j.Target.Admin, j.Target.ClientID, j.Target.ClientSecret = "", "", ""
	}
	return j
}

// start agrees on a moment with all agents, by the time until then: their clocks may differ.
func (f *fleet) start() error {
	delays := make([]time.Duration, len(f.all)) // of a message, about
	err := f.each(func(r *remote) error {
		delays[r.part.Index] = silence
		for n := range 3 {
			began := time.Now()
			if err := r.link.send(message{Ping: n + 1}); err != nil {
				return err
			}
			if _, err := r.next(); err != nil {
				return err
			}
			delays[r.part.Index] = min(delays[r.part.Index], time.Since(began)/2)
		}
		return nil
	})
	if err != nil {
		return err
	}
	at := time.Now().Add(100*time.Millisecond + 2*slices.Max(delays))
	return f.each(func(r *remote) error {
		after := time.Until(at) - delays[r.part.Index]
		return r.link.send(message{Start: &after})
	})
}

// stop ends the loads of all agents early.
func (f *fleet) stop() {
	for _, r := range f.all {
		go r.link.send(message{Stop: true}) // fails at an agent that is gone
	}
}

// event is what a run hears of an agent: a piece, its end, or that it is lost.
type event struct {
	from  *remote
	piece *piece
	ended *ending
	lost  error
}

// follow tells what an agent says, up to its end.
func (r *remote) follow(events chan<- event) {
	for {
		m, err := r.next()
		e := event{from: r, ended: m.Ended, lost: err}
		if err == nil && m.Piece != nil {
			var p piece
			p, e.lost = m.Piece.read()
			e.piece = &p
		}
		events <- e
		if e.ended != nil || e.lost != nil {
			return
		}
	}
}

// play lets the agents make their parts of r, merges what they see, and returns the result. The end
// of ctx ends the run early, and so does a lost agent: half a load is of no use.
func (f *fleet) play(ctx context.Context, r *run, s *Setup) Result {
	var result Result
	began := time.Now()
	if err := f.start(); err != nil {
		result.Lost = []string{err.Error()}
		r.finish(&result, true)
		return result
	}
	defer context.AfterFunc(ctx, f.stop)()
	events := make(chan event)
	merged := merger{run: r, pieces: make([][]piece, len(f.all)), over: make([]bool, len(f.all))}
	for _, x := range f.all {
		go x.follow(events)
	}
	for left := len(f.all); left > 0; {
		e := <-events
		i := e.from.part.Index
		switch {
		case e.lost != nil:
			result.Lost = append(result.Lost, fmt.Sprintf("agent %s after %s: %s", e.from.name,
				time.Since(began).Round(100*time.Millisecond), e.lost))
			result.Took = max(result.Took, time.Since(began))
			for _, p := range merged.pieces[i] {
				r.started.Add(p.Hits)
				raise(&r.last, int64(p.At))
			}
			f.stop()
		case e.ended != nil:
			r.count(e.ended)
			result.Took = max(result.Took, e.ended.Took)
			result.UsedUp = result.UsedUp || e.ended.UsedUp
			result.Checks = mergeChecks(result.Checks, e.ended.Checks)
			s.keysUsed = max(s.keysUsed, e.ended.KeysUsed)
			s.peopleUsed += e.ended.PeopleUsed
		default:
			merged.add(i, *e.piece)
			continue
		}
		left--
		merged.end(i)
	}
	result.Seconds = r.timeline.seconds
	r.finish(&result, ctx.Err() != nil || result.UsedUp || result.Lost != nil)
	return result
}

// count adds the figures of a part's run.
func (r *run) count(e *ending) {
	r.started.Add(e.Hits)
	r.broken.Add(e.Broken)
	r.most.Add(e.Most)
	r.spent.Add(int64(e.Spent))
	raise(&r.last, int64(e.Last))
	raise(&r.late, int64(e.Late))
}

// merger merges the pieces of agents second by second into a run.
type merger struct {
	run    *run
	pieces [][]piece // of each agent
	over   []bool    // agents that send no more
	next   int       // second that is merged next
}

func (m *merger) add(from int, p piece) {
	m.pieces[from] = append(m.pieces[from], p)
	m.merge()
}

func (m *merger) end(from int) {
	m.over[from] = true
	m.merge()
}

// merge merges the seconds of which no more pieces come.
func (m *merger) merge() {
	for {
		var found []*piece
		for i, all := range m.pieces {
			switch {
			case m.next < len(all):
				found = append(found, &all[m.next])
			case !m.over[i]:
				return
			}
		}
		if found == nil {
			return
		}
		m.next++
		whole := piece{Rest: true, steps: map[string]*tally{}}
		for _, p := range found {
			whole.join(*p)
			p.steps = nil // no longer needed
		}
		for name, t := range whole.steps {
			merge(m.run.recorder.total, name, t)
		}
		m.run.note(whole)
	}
}

// join adds what another agent saw in the same second.
func (p *piece) join(other piece) {
	p.At, p.Left, p.Length = max(p.At, other.At), max(p.Left, other.Left), max(p.Length, other.Length)
	p.Waiting, p.Hits, p.Rest = p.Waiting+other.Waiting, p.Hits+other.Hits, p.Rest && other.Rest
	for name, t := range other.steps {
		merge(p.steps, name, t)
	}
}

// mergeChecks adds the checks of an agent. A check holds if it holds at each.
func mergeChecks(all, more []Check) []Check {
	for _, c := range more {
		i := slices.IndexFunc(all, func(x Check) bool { return x.What == c.What })
		if i < 0 {
			all = append(all, c)
			continue
		}
		all[i].OK, all[i].Untested = all[i].OK && c.OK, all[i].Untested && c.Untested
		all[i].Seen += "; " + c.Seen
	}
	return all
}
