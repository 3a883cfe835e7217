package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/partition"
)

// startStandby starts the standby that the configuration asks for. From then on the URL of the
// database names both servers.
func (c *Cluster) startStandby() error {
	if c.config.Standby == NoStandby {
		return nil
	}
	var err error
	if c.followed, err = NewLink(c.postgres.Address(), nil); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(c.followed.Address)
	if err != nil {
		return err
	}
	if c.standby, err = c.postgres.NewStandby(host, port); err != nil {
		return err
	}
	if c.config.Standby == Synchronous {
		if err := c.postgres.RequireStandby(); err != nil {
			return err
		}
	}
	to, err := url.Parse(c.database)
	if err != nil {
		return fmt.Errorf("name both servers: %w", err)
	}
	to.Host = c.postgres.Address() + "," + c.standby.Address()
	query := to.Query()
	query.Set("target_session_attrs", "read-write")
	to.RawQuery = query.Encode()
	c.database = to.String()
	return nil
}

const (
	// failoverDelay is how long nobody notices that the first server is dead: less than a lease.
	failoverDelay = time.Second
	// behindTime is how long an asynchronous standby has got no commits before.
	behindTime = 3 * time.Second
	// failoverTime is how long the scenario ends tokens before and after.
	failoverTime = 8 * time.Second
)

// failover kills PostgreSQL and promotes its standby while tokens are used and ended.
func failover(standby Standby) func(context.Context, *Lab) (string, error) {
	return func(ctx context.Context, l *Lab) (_ string, err error) {
		lines := &logLines{keep: func(line *logLine) bool { return line.isBad() || line.isLapse() }}
		c, err := l.start(ctx, 3, Config{Lines: lines.note, Standby: standby})
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		o, err := newOrdeal(ctx, l, c, lines, 2*failoverTime+time.Minute)
		if err != nil {
			return "", err
		}
		f := &failing{faultRun: o, standby: standby}
		failed := o.run(ctx, f.run, f.after)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return f.verdict(failed)
	}
}

// failing is a failover of the database.
type failing struct {
	*faultRun
	standby  Standby
	promoted time.Duration // from the end of the first server
	ready    time.Duration // of all nodes, from the promotion
	// Ends that the database may have lost: kept are effective, known at the nodes that ran before
	// only, revived nowhere.
	kept, known, revived int
}

func (f *failing) run(ctx context.Context) error {
	pause(ctx, failoverTime)
	if f.standby == Asynchronous {
		f.lose(true)
		pause(ctx, time.Second) // the standby gets what has ended before
		f.cluster.followed.CutBoth("")
		pause(ctx, behindTime)
	}
	h := f.breaker.begin(Fault{Kind: FaultDatabase})
	err := f.cluster.postgres.Kill()
	if f.standby == Asynchronous { // what the standby has not got is lost
		err = errors.Join(err, f.cluster.followed.Close())
		f.cluster.followed = nil
	}
	pause(ctx, failoverDelay)
	err = errors.Join(err, f.cluster.standby.Promote())
	f.breaker.end(h, err)
	if err != nil {
		return err
	}
	f.promoted = time.Since(h.began)
	// A node needs a moment to notice that its lease has ended.
	pause(ctx, time.Second)
	if err := f.heal(ctx); err != nil {
		return err
	}
	f.ready = f.healed[0] + time.Second
	pause(ctx, confirmTime)
	f.lose(false)
	pause(ctx, failoverTime)
	return nil
}

// lose says whether what ends from now on may be lost.
func (f *failing) lose(losing bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.losing = losing
}

// after asks a node that has just started, too. It knows what the database knows. Of a revocation
// that the database has lost, those that ran before may know still.
func (f *failing) after(ctx context.Context) error {
	nodes := f.cluster.Nodes()
	fresh, err := f.cluster.Add()
	if err != nil {
		return err
	}
	if err := fresh.Start(ctx); err != nil {
		return err
	}
	if err := f.askEnded(ctx, []*Node{fresh}); err != nil {
		return err
	}
	var askers []*asker
	for _, n := range append(nodes, fresh) {
		askers = append(askers, newAsker(newDirect(n, defaultTimeout)))
	}
	var errs []error
	for _, token := range f.lost {
		var statuses []int
		for _, a := range askers {
			got := a.ask(token.text)
			statuses = append(statuses, got.Status)
		}
		before, now := slices.Compact(slices.Clone(statuses[:len(nodes)])), statuses[len(nodes)]
		switch {
		case len(before) > 1:
			err = fmt.Errorf("nodes do not agree about an ended token: %v", statuses)
			errs = append(errs, err)
		case before[0] == http.StatusUnauthorized && now == http.StatusUnauthorized:
			f.kept++
		case before[0] == http.StatusUnauthorized && now == http.StatusOK && !token.disabled:
			f.known++
		case before[0] == http.StatusOK && now == http.StatusOK:
			f.revived++
		default:
			err = fmt.Errorf("the last node is new and does not agree about an ended token "+
				"(user disabled: %v): %v", token.disabled, statuses)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// isLapse reports whether the line says that the node has lost its lease.
func (l *logLine) isLapse() bool { return strings.HasPrefix(l.msg, "the lease is lost") }

func (f *failing) verdict(failed error) (string, error) {
	lapsed, noticed := map[int]bool{}, map[int]bool{}
	var bad []logLine
	for _, line := range f.lines.lines() {
		switch {
		case !line.isLapse():
			bad = append(bad, line)
		case line.reason == string(partition.LapseLost):
			noticed[line.node] = true
			fallthrough
		default:
			lapsed[line.node] = true
		}
	}
	f.lines.all = bad
	nodes := 3
	text := fmt.Sprintf("the standby is promoted after %v, all nodes are ready %v later; "+
		"%d of %d nodes lost the lease, %d of them since commits are lost; %v", f.promoted.Round(100*time.Millisecond),
		f.ready.Round(100*time.Millisecond), len(lapsed), nodes, len(noticed), f.faultRun)
	err := errors.Join(failed, f.check())
	if f.standby == Synchronous {
		if len(noticed) > 0 || len(f.lost) > 0 {
			err = errors.Join(err, errors.New("a synchronous standby has lost commits"))
		}
		return text, err
	}
	text += fmt.Sprintf("; of %d ends from before the crash until all was well, %d are effective, "+
		"%d until the nodes restart, %d are not", len(f.lost), f.kept, f.known, f.revived)
	if len(lapsed) < nodes || len(noticed) == 0 || f.known+f.revived == 0 {
		err = errors.Join(err, errors.New("not each node has dropped what it knew, or nothing was lost"))
	}
	return text, err
}
