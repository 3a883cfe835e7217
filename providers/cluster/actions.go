package cluster

import (
	"context"
	"log/slog"
	"time"

	"gatehouse/actors/partition"
)

// actions carry out what the Member decides. They are called with Node.mu locked.
type actions struct{ n *Node }

// Run implements partition.Actions.
func (a actions) Run(op *partition.Op) {
	n := a.n
	timeout := storeTimeout
	if op.Kind == partition.OpBeat || op.Kind == partition.OpRead {
		timeout = leaseTimeout
	}
	n.wg.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, timeout)
		defer cancel()
		op.Do(ctx, n.config.Store)
		n.metrics.operation(op)
		n.do(func(now partition.Now) {
			n.journal.operation(ctx, op)
			n.member.Done(now, op)
		})
	})
}

// Send implements partition.Actions.
func (a actions) Send(to string, m *partition.Message) {
	if l := a.n.roster.Load().lanes[to]; l != nil {
		l.tell(m, a.n.clock())
	}
}

// Export implements partition.Actions.
func (a actions) Export(part int) [][]byte {
	if a.n.services.Export == nil {
		return nil
	}
	return a.n.services.Export(part)
}

// ReceiveCounts implements partition.Actions.
func (a actions) ReceiveCounts(part int, epoch int64, first bool, counts []byte) {
	if a.n.services.ReceiveCounts != nil {
		a.n.services.ReceiveCounts(part, epoch, first, counts)
	}
}

// Reload implements partition.Actions.
func (a actions) Reload() {
	a.n.reload = true
	a.n.apply()
}

// Follow implements partition.Actions.
func (a actions) Follow() {
	a.n.follow = true
	a.n.apply()
}

// Confirmed implements partition.Actions.
func (a actions) Confirmed(ticket int64) {
	if confirmed := a.n.tickets[ticket]; confirmed != nil {
		delete(a.n.tickets, ticket)
		close(confirmed)
	}
}

// Publish implements partition.Actions. The lanes are there before the View that needs them.
func (a actions) Publish(v *partition.View) {
	n := a.n
	n.meet(v, nil)
	n.view.Store(v)
	n.outdate()
	n.journal.publish(v, n.clock())
}

// apply starts a goroutine that does what is due, unless it is running. The caller holds n.mu.
func (n *Node) apply() {
	if !n.applying {
		n.applying = true
		n.wg.Go(n.applyAll)
	}
}

// applyAll applies changes until nothing is due.
func (n *Node) applyAll() {
	for {
		n.mu.Lock()
		id, reload := n.member.ID(), n.reload
		if n.stopped || !n.reload && !n.follow {
			n.applying = false
			n.mu.Unlock()
			return
		}
		n.reload, n.follow = false, false
		n.mu.Unlock()
		read := n.services.Follow
		if reload {
			read = n.services.Reload
		}
		ctx, cancel := context.WithTimeout(n.ctx, applyTimeout)
		seen, err := read(ctx)
		cancel()
		if err == nil {
			n.do(func(now partition.Now) { n.member.Applied(now, id, seen) })
			continue
		}
		n.config.Logger.Warn("changes cannot be read", slog.Any("error", err))
		n.mu.Lock()
		n.reload, n.follow = n.reload || reload, n.follow || !reload
		n.mu.Unlock()
		select {
		case <-time.After(retryApply):
		case <-n.ctx.Done():
		}
	}
}
