package loadtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"sync"
	"time"

	"gatehouse/loadtest/plan"
)

// job is a part of a load, as a coordinator sends it to an agent.
type job struct {
	Scenario string       // built in; "" = Own
	Own      *shippedPlan // from a file
	Target   Target
	Keys     int
	People   int
	Queries  []string
	Tokens   []string
	Mix      map[string]float64

	Schedule    Schedule // of the whole load; nil = closed
	Concurrency int      // of the part
	Duration    time.Duration
	Timeout     time.Duration
	Connections int // of the part
	Part        Part
}

// shippedPlan is a scenario of a file whose setup is done.
type shippedPlan struct {
	Text   []byte
	Shared map[string]string   // variables
	Rows   []map[string]string // the part's share of the data
}

// Limits of a job, far above what a machine can do.
const (
	maxUsers = 1_000_000
	maxTime  = 30 * 24 * time.Hour
)

// check returns an error for a job that no coordinator sends.
func (j *job) check() error {
	for _, s := range j.Schedule {
		if s.For <= 0 || s.For > maxTime || !(s.From >= 0 && s.From <= maxRate) ||
			!(s.To >= 0 && s.To <= maxRate) {
			return errors.New("the schedule is malformed")
		}
	}
	if (j.Schedule == nil) == (j.Concurrency == 0) || j.Concurrency < 0 ||
		j.Concurrency > maxUsers || j.Connections < 1 || j.Connections > maxUsers ||
		j.Timeout <= 0 || j.Timeout > maxTime || j.Duration < 0 || j.Duration > maxTime ||
		j.Part.Of < 1 || j.Part.Of > math.MaxInt32 || j.Part.Index < 0 || j.Part.Index >= j.Part.Of {
		return errors.New("the load is malformed")
	}
	return nil
}

// scenario returns the scenario of the job.
func (j *job) scenario() (Scenario, error) {
	if j.Own == nil {
		sc, err := ScenarioNamed(j.Scenario)
		if err == nil {
			err = sc.checkApart()
		}
		return sc, err
	}
	columns := map[string]bool{}
	for _, row := range j.Own.Rows {
		for name := range row {
			columns[name] = true
		}
	}
	// The file of the data and the environment are the coordinator's: none of this machine are read.
	p, err := plan.Read("scenario", j.Own.Text, func(string) (names []string, err error) {
		for name := range columns {
			names = append(names, name)
		}
		return names, nil
	})
	if err != nil {
		return Scenario{}, err
	}
	if p.Data != nil && len(j.Own.Rows) == 0 {
		return Scenario{}, errors.New("there are no rows for this agent")
	}
	o := &Own{plan: p}
	o.Scenario = Scenario{Name: "own", own: o, prepare: func(_ context.Context,
		s *Setup) (*workload, error) {
		return o.workload(s, j.Own.Shared, j.Own.Rows, nil), nil
	}}
	return o.Scenario, nil
}

// Agent makes parts of loads for coordinators that know its token, one at a time.
type Agent struct {
	Token   string // at least MinToken bytes, with the coordinators
	Version string // of the program; coordinators must have the same
	Owned   string // host that may be a target; "" = only this machine
	// Log gets a line about each connection; optional.
	Log func(line string)

	turn chan struct{} // held by the run in progress
	tune func(*run)    // for tests; optional
}

// maxGreetings is the number of connections that an agent serves at once. All but one are told that
// it is busy.
const maxGreetings = 32

// patience is how long a coordinator waits for the run before its own, which may just have ended.
const patience = 3 * time.Second

// Serve serves coordinators until ctx ends. It closes ln.
func (a *Agent) Serve(ctx context.Context, ln net.Listener) error {
	config, err := tlsOf(a.Token, agentSide, coordinatorSide)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	var serving sync.WaitGroup
	defer serving.Wait()
	slots := make(chan struct{}, maxGreetings)
	a.turn = make(chan struct{}, 1)
	for {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		select {
		case slots <- struct{}{}:
			serving.Go(func() {
				defer func() { <-slots }()
				a.serve(ctx, tls.Server(conn, config))
			})
		default:
			conn.Close()
		}
	}
}

func (a *Agent) log(conn net.Conn, format string, args ...any) {
	if a.Log != nil {
		a.Log(conn.RemoteAddr().String() + ": " + fmt.Sprintf(format, args...))
	}
}

// serve serves one coordinator.
func (a *Agent) serve(ctx context.Context, conn *tls.Conn) {
	l, err := newLink(ctx, conn)
	if err != nil {
		a.log(conn, "refused: %s", lostBecause(err))
		return
	}
	defer l.close()
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return
	case <-time.After(patience):
		a.log(conn, "refused: busy with another run")
		l.send(message{Error: "is busy with another run"})
		return
	}
	if err := a.work(ctx, l); err != nil {
		if ctx.Err() != nil {
			err = errors.New("it was stopped")
		}
		a.log(conn, "%s", err)
		l.send(message{Error: err.Error()}) // the coordinator may be gone
	}
}

// work makes the part of one load. The load ends when its coordinator is lost.
func (a *Agent) work(ctx context.Context, l *link) error {
	if err := l.send(message{Version: a.Version}); err != nil {
		return err
	}
	m, err := l.receive()
	if err != nil || m.Job == nil {
		return errors.Join(errors.New("the coordinator sent no job"), err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := make(chan time.Duration, 1)
	go func() { cancel(a.listen(l, start)) }()
	j := m.Job
	w, s, err := a.prepare(ctx, l, j)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer s.operator.http.CloseIdleConnections()
	r, err := newRun(j.Target.Base, Config{Schedule: j.Schedule, Concurrency: j.Concurrency,
		Duration: j.Duration, Timeout: j.Timeout, Connections: j.Connections, Part: j.Part}, w.hit)
	if err != nil {
		return err
	}
	defer r.client.CloseIdleConnections()
	if a.tune != nil {
		a.tune(r)
	}
	r.header = j.Target.Header
	r.seen = func(p piece) {
		w, err := newWirePiece(p)
		if err == nil {
			err = l.send(message{Piece: w})
		}
		if err != nil {
			cancel(err)
		}
	}
	if err := l.send(message{Ready: true}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case after := <-start:
		pause(ctx, after)
	}
	a.log(l.conn, "runs part %d of %d of %s", j.Part.Index+1, j.Part.Of, j.Target.Base)
	result := r.do(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errStopped) {
		return cause
	}
	end := &ending{Hits: r.started.Load(), Broken: r.broken.Load(), Most: r.most.Load(),
		Last: time.Duration(r.last.Load()), Late: time.Duration(r.late.Load()),
		Spent: time.Duration(r.spent.Load()), Took: result.Took, UsedUp: result.UsedUp,
		KeysUsed: s.keysUsed, PeopleUsed: s.peopleUsed}
	if w.checks != nil {
		end.Checks = w.checks(&result)
	}
	a.log(l.conn, "done, %s hits", grouped(end.Hits))
	return l.send(message{Ended: end})
}

// errStopped is the reason of a run that its coordinator ends early.
var errStopped = errors.New("the coordinator ended the run")

// listen reads what the coordinator says about the run, until it stops it or is lost.
func (a *Agent) listen(l *link, start chan<- time.Duration) error {
	for {
		m, err := l.receive()
		switch {
		case err != nil:
			return fmt.Errorf("the coordinator is lost: %w", err)
		case m.Stop:
			return errStopped
		case m.Ping > 0:
			if err := l.send(message{Ping: m.Ping}); err != nil {
				return err
			}
		case m.Start != nil:
			select {
			case start <- *m.Start:
			default:
			}
		}
	}
}

// prepare checks the job and prepares its hits. It sends nothing to a target that this machine's
// owner has not confirmed.
func (a *Agent) prepare(ctx context.Context, l *link, j *job) (*workload, *Setup, error) {
	if err := j.Target.CheckOwner(a.Owned); err != nil {
		return nil, nil, fmt.Errorf("refuses the target: %w (to loadtest agent)", err)
	}
	if err := j.check(); err != nil {
		return nil, nil, err
	}
	sc, err := j.scenario()
	if err != nil {
		return nil, nil, err
	}
	s := &Setup{Target: j.Target, Keys: j.Keys, People: j.People, Queries: j.Queries,
		Tokens: j.Tokens, Mix: j.Mix, part: j.Part, operator: NewOperator(j.Target)}
	s.Progress = func(done, of int, what string) {
		if err := l.send(message{Done: done, Of: of, What: what}); err != nil {
			a.log(l.conn, "%s", err)
		}
	}
	s.provisioner = &provisioner{o: s.operator, notify: s.Progress,
		run: strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.Itoa(j.Part.Index)}
	w, err := sc.prepare(ctx, s)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare %s: %w", sc.Name, err)
	}
	return w, s, nil
}
