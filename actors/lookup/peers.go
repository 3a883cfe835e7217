package lookup

import (
	"errors"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"gatehouse/actors/geo"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/partition"
	"gatehouse/actors/trace"
)

// Peers are the other nodes of a cluster. Its methods may be called by many goroutines.
type Peers interface {
	// View returns what this node knows of the cluster.
	View() *partition.View
	// Ask asks the node that holds a partition, and returns its reply and epoch. It returns
	// partition.ErrHere if this node does, and by until at the latest.
	Ask(service byte, part int, body []byte, until time.Time) ([]byte, int64, error)
	// Cast tells all other nodes, without waiting.
	Cast(service byte, body []byte)
}

// Errors of queries that another node had to look up.
var (
	errUnreachable = &geo.Error{Code: geo.CodeProviderUnreachable, RetryAfter: time.Second}
	// movedAway is the outcome of a query when the node no longer uses the upstream's budget, or
	// cannot be reached.
	movedAway = outcome{Outcome: geo.Outcome{Err: errUnreachable}, mayFallBack: true, moved: true}
)

const (
	// replyReserve is the part of the time left that is kept for the reply to another node.
	replyReserve = 50 * time.Millisecond
	// movePause is the time before a query is asked again whose holder has changed, unless this node
	// learns of the change earlier.
	movePause = 250 * time.Millisecond
	// mostPeerAsks is how many asks of other nodes are handled at once.
	mostPeerAsks = mailbox.Limit
)

// isShared reports whether the nodes of the cluster use one budget: its holder looks up for all.
func (s *Service) isShared() bool {
	return s.peers != nil && (s.terms.SinglesPerMinute > 0 || s.terms.BatchesPerMinute > 0)
}

// partitionOf returns the partition whose holder looks up q.
func (s *Service) partitionOf(q geo.Query) int {
	if s.isShared() {
		return partition.Lookups
	}
	return partition.Of([]byte(q.String()))
}

// decides reports whether the holder of a partition decides.
func decides(p *partition.Part) bool { return p.Mine && !p.Moving }

// group are queries of an ask that one node looks up.
type group struct {
	part    int
	queries []int // which of the ask's
}

// share has the holders of the queries that a lacks look them up. It returns at until at the
// latest.
func (s *Service) share(a *ask, until time.Time) {
	var wg sync.WaitGroup
	for _, g := range s.groups(a) {
		for some := range slices.Chunk(g.queries, mostShared) {
			wg.Go(func() { s.shareGroup(a, group{g.part, some}, until) })
		}
	}
	wg.Wait()
}

// groups returns the queries that a lacks by their holders: those of one holder are one message.
func (s *Service) groups(a *ask) (groups []group) {
	view, place := s.peers.View(), map[string]int{} // by the holder's ID
	for i, q := range a.queries {
		if a.has(i) {
			continue
		}
		part := s.partitionOf(q)
		at, ok := place[view.Parts[part].Holder]
		if !ok {
			at, place[view.Parts[part].Holder] = len(groups), len(groups)
			groups = append(groups, group{part: part})
		}
		groups[at].queries = append(groups[at].queries, i)
	}
	return groups
}

// shareGroup completes the queries of a group. It asks again for those whose holder has changed
// before they were sent, or cannot be reached: until a new one takes over, they wait in line.
func (s *Service) shareGroup(a *ask, g group, until time.Time) {
	for rest := g.queries; len(rest) > 0; {
		view := s.peers.View()
		queries := make([]geo.Query, len(rest))
		for i, at := range rest {
			queries[i] = a.queries[at]
		}
		var moved []int
		for i, o := range s.askHolder(g.part, newAsk(queries, a.caller, a.trace, a.deadline), until) {
			if o.moved && time.Until(until) > movePause {
				moved = append(moved, rest[i])
				continue
			}
			if o.moved {
				s.metrics.rejected(errUnreachable)
			}
			a.complete(rest[i], o)
		}
		if rest = moved; len(rest) > 0 {
			select {
			case <-view.Changed:
			case <-time.After(movePause):
			}
		}
	}
}

// askHolder returns the outcomes of a, whose queries the holder of a partition looks up. Without a
// shared budget this node does when the holder cannot.
func (s *Service) askHolder(part int, a *ask, until time.Time) []outcome {
	p := &s.peers.View().Parts[part]
	if decides(p) || p.Mine && !s.isShared() {
		return s.lookUpHere(a, until)
	}
	body := encodeRequest(a.queries, a.caller, a.trace, time.Until(until))
	response, _, err := s.peers.Ask(partition.ServiceLookups, part, body, until)
	if errors.Is(err, partition.ErrHere) {
		return s.lookUpHere(a, until)
	}
	now := time.Now()
	if err == nil {
		var outcomes []outcome
		if outcomes, err = decodeReplies(response, a.queries, now); err == nil {
			s.keep(a.queries, outcomes)
			return outcomes
		}
	}
	if !now.Before(until) {
		return a.wait(until) // nothing has arrived
	}
	if !s.isShared() {
		return s.lookUpHere(a, until)
	}
	failure := errUnreachable
	switch {
	case errors.Is(err, partition.ErrBusy):
		failure = errOverloaded
	case errors.Is(err, partition.ErrUnreachable) && s.config.Fallback == nil:
		return slices.Repeat([]outcome{movedAway}, len(a.queries))
	}
	for range a.queries {
		s.metrics.rejected(failure)
	}
	return slices.Repeat([]outcome{rejection(failure)}, len(a.queries))
}

// keep puts what another node has fetched into the cache.
func (s *Service) keep(queries []geo.Query, outcomes []outcome) {
	for i, o := range outcomes {
		if o.Entry != nil {
			s.cache.Put(queries[i], o.Entry)
		}
	}
}

// lookUpHere returns the outcomes of a from this node's cache and upstream.
func (s *Service) lookUpHere(a *ask, until time.Time) []outcome {
	now := time.Now()
	for i, q := range a.queries {
		if e := s.cache.Peek(q, now); e != nil {
			a.complete(i, outcome{Outcome: geo.Outcome{Entry: e, Err: e.Err, Cached: true}})
		} else if err := s.refusal(q, a.caller, now); err != nil {
			a.complete(i, rejection(err))
		}
	}
	s.askBatcher(a)
	return a.wait(until)
}

// HandlePeer handles an ask of another node, which it ends with reply, or a cast: reply is nil. It
// does not block.
func (s *Service) HandlePeer(
	m partition.Message, reply func(status partition.Status, epoch int64, body []byte),
) {
	if reply == nil {
		if err := decodeNews(m.Body, time.Now(), s.cache.Put); err != nil {
			s.config.Logger.Warn("another node told of lookups in a way that this one does not know",
				"error", err)
		}
		return
	}
	if s.peers == nil || m.Partition < 0 || m.Partition >= partition.Count {
		reply(partition.Elsewhere, 0, nil)
		return
	}
	part := &s.peers.View().Parts[m.Partition]
	if s.isShared() && (m.Partition != partition.Lookups || !decides(part)) {
		reply(partition.Elsewhere, part.Epoch, nil)
		return
	}
	r, queries, err := decodeRequest(m.Body)
	if err != nil {
		s.config.Logger.Warn("another node asked for lookups in a way that this one does not know",
			"error", err)
		reply(partition.Done, part.Epoch, nil) // it fails to decode that
		return
	}
	if s.peerAsks.Add(1) > mostPeerAsks || !s.inFlight.Enter() {
		s.peerAsks.Add(-1)
		reply(partition.Busy, part.Epoch, nil)
		return
	}
	go func() {
		defer s.peerAsks.Add(-1)
		defer s.inFlight.Leave()
		outcomes := s.lookUpFor(queries, &r)
		reply(partition.Done, part.Epoch, encodeReplies(outcomes, time.Now()))
	}()
}

// lookUpFor looks up the queries of a request of another node, whose caller gives up after r.Left.
func (s *Service) lookUpFor(queries []geo.Query, r *request) []outcome {
	now, parent := time.Now(), trace.Parse([]byte(r.Trace))
	var span trace.Span
	if parent != "" { // the node that asks has decided whether there is a trace
		span = s.config.Tracer.Start(parent, "look up for another node", trace.Server, now)
	}
	until := now.Add(min(r.Left, s.config.LookupTimeout) - replyReserve)
	outcomes := s.lookUpHere(newAsk(queries, r.Caller, span.Traceparent(), until), until)
	span.End(time.Now(), "", attribute.Int("gatehouse.queries", len(queries)))
	return outcomes
}

// tell tells all nodes what the upstream has answered, once an exchange and once for each reverse
// name that came late: the free tier allows 26 answers a second.
func (s *Service) tell(queries []geo.Query, entries []*geo.Entry) {
	if !s.isShared() {
		return
	}
	for _, message := range encodeNews(queries, entries, time.Now()) {
		s.peers.Cast(partition.ServiceLookups, message)
	}
}
