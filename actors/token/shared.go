package token

import (
	"context"
	"time"

	"gatehouse/actors/partition"
	"gatehouse/actors/ratelimit"
)

// Peers are the nodes of a cluster.
//
// Every node decides about its own requests: each knows what has ended as long as it may decide.
// Only the counting is shared. The first byte of a token's ID is its partition, whose holder counts
// the token's requests; the others ask it.
type Peers interface {
	View() *partition.View
	// Decides reports whether this node may decide at now.
	Decides(now time.Time) bool
	// Ask asks the holder of a partition and returns its reply and epoch, or partition.ErrHere,
	// ErrUnreachable or ErrBusy.
	Ask(service byte, part int, body []byte, until time.Time) (
		reply []byte, epoch int64, err error)
	// Confirm returns when every other node has applied what is committed, or may decide no longer.
	Confirm(ctx context.Context) error
}

// sharedWindows are a token's windows on one node of a cluster, one for each endpoint.
type sharedWindows [len(limitOf)]partition.Window

// countMode says how a tokenActor counts a request in a cluster.
type countMode uint8

const (
	countHere       countMode = iota // if this node holds the partition, else ask for another node
	countForPeer                     // for another node, which asks this one
	countedByHolder                  // the holder has counted it
	countAlone                       // the holder cannot be reached
	countNowhere                     // not at all: nobody has decided
)

// remoteCount is what a request needs of the holder of its token's partition, and gets from it.
type remoteCount struct {
	mode      countMode
	elsewhere bool             // the reply: another node has to count it
	epoch     int64            // of the partition, as this node knows it
	known     bool             // the holder at epoch knows the token
	report    partition.Report // to the holder

	rate ratelimit.Decision // of the holder
	used int                // of the window, and its age; 0 = no window is open
	age  time.Duration
	sent time.Duration // when the holder was asked, by Service.clock
}

func (s *Service) newAdmission() any {
	if s.config.Peers == nil {
		return &admission{}
	}
	return &admission{remote: &remoteCount{}}
}

// countShared counts a request as m.remote.mode says. It sets m.remote.elsewhere when another node
// has to count it.
func (a *tokenActor) countShared(m *admission, now ratelimit.Now) ratelimit.Decision {
	w, limit, r := &a.shared[m.endpoint], limitOf[m.endpoint], m.remote
	switch r.mode {
	case countedByHolder:
		w.Learn(r.used, r.age, r.epoch, r.report.Extra, r.sent)
		return r.rate
	case countAlone, countNowhere, countHere:
		w.Unsent(r.report)
		r.report = partition.Report{}
	}
	switch r.mode {
	case countAlone:
		return a.countAlone(w, m.endpoint, now)
	case countNowhere:
		return ratelimit.Decision{}
	}
	peers := a.service.config.Peers
	part := &peers.View().Parts[a.id[0]]
	switch {
	case part.Mine && !part.Moving && peers.Decides(m.now):
		a.hold(part, now.Clock)
		w.Add(r.report, part.Claimed, now.Clock)
		decision := take(w, limit, now)
		r.epoch, r.used, r.age = part.Epoch, w.Used, now.Clock-w.Opened
		return decision
	case r.mode == countHere && w.Epoch == part.Epoch && w.Extra == 0 && w.Used >= limit &&
		!w.Over(now.Clock):
		return take(w, limit, now) // refused: the holder has said so, and until when
	}
	r.elsewhere, r.epoch, r.known = true, part.Epoch, w.Epoch == part.Epoch
	r.report = w.Send(now.Clock)
	return ratelimit.Decision{}
}

// take counts a request in a window that this node decides about.
func take(w *partition.Window, limit int, now ratelimit.Now) ratelimit.Decision {
	if w.Over(now.Clock) {
		*w = partition.Window{Epoch: w.Epoch}
	}
	counted := ratelimit.Window{Opened: w.Opened, Used: w.Used}
	decision := counted.Take(limit, now)
	w.Opened, w.Used = counted.Opened, counted.Used
	return decision
}

// countAlone decides about a request while nobody who decides can be asked: this node may allow its
// part of what was left.
func (a *tokenActor) countAlone(
	w *partition.Window, endpoint Endpoint, now ratelimit.Now,
) ratelimit.Decision {
	a.service.metrics.provisional.Inc()
	limit, nodes := limitOf[endpoint], max(1, a.service.config.Peers.View().Up)
	allowed := w.Allow(limit, nodes, now.Clock)
	shown := ratelimit.Window{Opened: w.Opened, Used: limit}
	if allowed {
		share := (limit - w.Used) / nodes
		shown.Used = limit - 1 - (share - w.Extra)
	}
	return shown.Take(limit, now)
}

// hold makes the windows those of the holder at the partition's epoch. Windows that other nodes
// have handed over or reported take the place of what this node knew.
func (a *tokenActor) hold(part *partition.Part, clock time.Duration) {
	if a.shared[0].Epoch != part.Epoch {
		if handed, ok := a.service.directory.takeHanded(&a.id, part); ok {
			for i := range a.shared {
				a.shared[i].Inherit(handed[i], part.Epoch, part.Claimed, clock)
			}
		}
	}
	for i := range a.shared {
		a.shared[i].Hold(part.Epoch, part.Claimed, clock)
	}
}
