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
	// AskNode asks the node with an ID, whatever it holds. Its errors are those of Ask.
	AskNode(id string, service byte, part int, body []byte, until time.Time) ([]byte, error)
	// Confirm returns when every other node has applied what is committed, or may decide no longer.
	Confirm(ctx context.Context) error
}

// sharedWindows are a token's windows on one node of a cluster, one for each endpoint; nil = it was
// not used there.
type sharedWindows [len(limitOf)]*partition.Window

// counts are what an actor has counted in a cluster.
type counts struct {
	windows sharedWindows
	held    int64 // the partition's epoch for which windows are the holder's
}

// at returns the window of an endpoint.
func (s *sharedWindows) at(e Endpoint) *partition.Window {
	if s[e] == nil {
		s[e] = new(partition.Window)
	}
	return s[e]
}

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
	from      string           // ID of the node that asks, which knows names; "" = it does not
	elsewhere bool             // the reply: another node has to count it
	closing   bool             // the reply: what was granted and not spent has to come back first
	epoch     int64            // of the partition, as this node knows it
	known     bool             // the holder at epoch knows the token
	report    partition.Report // to the holder

	rate  ratelimit.Decision // of the holder
	reply partition.Reply    // of the holder
	sent  time.Duration      // when it was asked, by Service.clock
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
	w, limit, r := a.shared.windows.at(m.endpoint), limitOf[m.endpoint], m.remote
	switch r.mode {
	case countedByHolder:
		w.Learn(r.reply, r.report, r.sent)
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
	view := a.service.config.Peers.View()
	part, decides := &view.Parts[a.id[0]], a.service.config.Peers.Decides(m.now)
	switch {
	case part.Mine && !part.Moving && decides:
		a.hold(view, now.Clock)
		w.Add(r.report, part.Claimed, now.Clock)
		return a.countAsHolder(w, m, view, now)
	case r.mode == countHere && decides && w.Spend(now.Clock):
		a.service.metrics.spent.Inc()
		return told(w, limit, true, now)
	case r.mode == countHere && w.Epoch == part.Epoch && w.Reset != 0 && w.Extra == 0 &&
		w.Used >= limit && !w.Over(now.Clock):
		return told(w, limit, false, now)
	}
	r.elsewhere, r.epoch, r.known = true, part.Epoch, w.Epoch == part.Epoch
	r.report = w.Send(now.Clock)
	return ratelimit.Decision{}
}

// countAsHolder counts a request, and grants the node that asks an allowance. It counts nothing if
// the rest of what was granted has to come back first.
func (a *tokenActor) countAsHolder(
	w *partition.Window, m *admission, view *partition.View, now ratelimit.Now,
) ratelimit.Decision {
	limit, r := limitOf[m.endpoint], m.remote
	if w.MustClose(limit, now.Clock) {
		r.closing, r.elsewhere = true, true
		return ratelimit.Decision{}
	}
	decision := take(w, limit, now)
	granted, used := 0, w.Used
	if r.from != "" {
		w.Tight = w.Tight || !knowNames(view)
		granted = w.Grant(r.report, r.from, limit, view.Up, now.Clock)
		a.service.metrics.granted.Add(float64(w.Used - used))
	}
	r.reply = w.Reply(granted, limit, view.Up, now.Clock)
	if r.epoch = w.Epoch; decision.Allowed {
		decision.Remaining = limit - r.reply.Used
	}
	return decision
}

// told returns what this node decides by what the holder has told.
func told(w *partition.Window, limit int, allowed bool, now ratelimit.Now) ratelimit.Decision {
	d := ratelimit.Decision{Allowed: allowed, Limit: limit, Reset: w.Reset}
	if allowed {
		d.Remaining = max(0, limit-w.Used)
		return d
	}
	d.Wait = w.Reset - now.Unix/int64(time.Second)
	d.Wait = max(1, min(d.Wait, int64(partition.Length/time.Second)))
	return d
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
		share := (limit - max(w.Used, w.Held)) / nodes
		shown.Used = limit - 1 - (share - w.Extra)
	}
	return shown.Take(limit, now)
}

// hold makes the windows those of the holder at the partition's epoch. Windows that other nodes
// have handed over or reported take the place of what this node knew.
func (a *tokenActor) hold(view *partition.View, clock time.Duration) {
	part := &view.Parts[a.id[0]]
	if a.shared.held != part.Epoch {
		a.shared.held = part.Epoch
		if handed, ok := a.service.directory.takeHanded(&a.id, part); ok {
			for i, w := range a.shared.windows {
				if handed[i] != nil || w != nil {
					a.shared.windows.at(Endpoint(i)).Inherit(
						*handed.at(Endpoint(i)), view.Self, part.Epoch, part.Claimed, clock)
				}
			}
		}
	}
	for _, w := range a.shared.windows {
		if w != nil {
			w.Hold(part.Epoch, part.Claimed, clock)
		}
	}
}
