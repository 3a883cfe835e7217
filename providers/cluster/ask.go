package cluster

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"gatehouse/actors/partition"
)

const (
	// waitTime is how long an ask waits for a partition that moves.
	waitTime = 2 * time.Second
	// retryTime is when an ask is tried again, though nothing has changed here.
	retryTime = 50 * time.Millisecond
)

var errFrame = errors.New("the frame is not from its sender, not for this node, or malformed")

// Ask asks the holder of a partition. It returns its reply and the epoch at which it has decided.
// body must not change until Ask returns. The errors are ErrHere, ErrUnreachable and ErrBusy of
// package partition. While the partition moves, Ask waits, for 2 s at most and not after until.
func (n *Node) Ask(service byte, part int, body []byte, until time.Time) ([]byte, int64, error) {
	began := n.clock()
	end := until.Sub(n.began)
	reply, epoch, err := n.ask(service, part, body, began, end)
	n.metrics.asked(err, n.clock()-began)
	return reply, epoch, err
}

func (n *Node) ask(service byte, part int, body []byte, began, end time.Duration) (
	[]byte, int64, error) {
	for now := began; now < end; now = n.clock() {
		v := n.view.Load()
		p := &v.Parts[part]
		elsewhere := p.Moving
		switch {
		case p.Mine && int64(now) < n.lease.Load():
			return nil, 0, partition.ErrHere
		case p.Mine || p.Holder == "":
			return nil, 0, partition.ErrUnreachable
		case !p.Moving && p.Holder == v.Self:
			elsewhere = true // a newer View is about to be published
		case !p.Moving:
			a := asks.Get().(*ask)
			a.message = partition.Message{Kind: partition.Ask, Service: service, Partition: part,
				Epoch: p.Epoch, Body: body}
			a.until = end
			err := n.exchange(p.Holder, a)
			reply := a.reply
			a.message, a.reply, a.err = partition.Message{}, partition.Message{}, nil
			asks.Put(a)
			switch {
			case err != nil:
				return nil, 0, err
			case reply.Status == partition.Done:
				return reply.Body, reply.Epoch, nil
			case reply.Status == partition.Busy:
				return nil, 0, partition.ErrBusy
			}
			elsewhere = reply.Status == partition.Elsewhere
		}
		if !elsewhere || now-began >= n.wait {
			return nil, 0, partition.ErrUnreachable
		}
		pause := time.NewTimer(min(retryTime, end-now))
		select {
		case <-v.Changed:
		case <-pause.C:
		case <-n.ctx.Done():
		}
		pause.Stop()
		if n.ctx.Err() != nil {
			return nil, 0, partition.ErrUnreachable
		}
	}
	return nil, 0, partition.ErrUnreachable
}

// AskNode asks the node with an ID, whatever it holds. body must not change until AskNode returns.
// The errors are ErrUnreachable and ErrBusy of package partition.
func (n *Node) AskNode(id string, service byte, part int, body []byte, until time.Time) ([]byte, error) {
	a := asks.Get().(*ask)
	a.message = partition.Message{
		Kind: partition.AskNode, Service: service, Partition: part, Body: body,
	}
	a.until = until.Sub(n.began)
	err := n.exchange(id, a)
	reply := a.reply
	a.message, a.reply, a.err = partition.Message{}, partition.Message{}, nil
	asks.Put(a)
	switch {
	case err != nil:
		return nil, err
	case reply.Status != partition.Done:
		return nil, partition.ErrBusy
	}
	return reply.Body, nil
}

// exchange sends an ask to a node and waits for the reply.
func (n *Node) exchange(to string, a *ask) error {
	l := n.roster.Load().lanes[to]
	if l == nil {
		return partition.ErrUnreachable
	}
	if err := l.enqueue(a); err != nil {
		return err
	}
	<-a.done
	return a.err
}

// Cast sends body to a service of all other nodes. It may be lost.
func (n *Node) Cast(service byte, body []byte) {
	m := partition.Message{Kind: partition.Cast, Service: service, Body: slices.Clone(body)}
	clock := n.clock()
	for _, l := range n.roster.Load().lanes {
		l.tell(&m, clock)
	}
}

// receive handles a frame that came by a certificate.
func (n *Node) receive(certificate string, b []byte) {
	r := n.roster.Load()
	f, err := partition.ParseFrame(b)
	if err != nil || f.To != r.self || f.To == "" {
		n.refused(errFrame)
		return
	}
	if !r.isFrom(f.From, certificate) {
		// A process has a new ID after a lapse of its lease.
		n.look()
		if r = n.roster.Load(); !r.isFrom(f.From, certificate) {
			n.refused(errFrame)
			return
		}
	}
	n.handle(r.lanes[f.From], &f)
}

// isFrom reports whether a certificate is the one of the node with that ID.
func (r *roster) isFrom(id, certificate string) bool {
	node, ok := r.nodes[id]
	return ok && r.lanes[id] != nil && slices.Contains(node.Certificates, certificate)
}

// handle handles the messages of a frame, and replies.
func (n *Node) handle(l *lane, f *partition.Frame) {
	l.begin()
	l.arrived(f, n.clock())
	defer l.end(f.Number)
	for i := range f.Messages {
		switch m := &f.Messages[i]; m.Kind {
		case partition.Answer, partition.Unsupported:
		case partition.Ask, partition.AskNode:
			m.From = l.id
			n.handleAsk(l, m)
		case partition.Cast:
			if h := n.handlers[m.Service]; h != nil {
				h(*m, nil)
			}
		case partition.Hello, partition.Welcome, partition.Move, partition.Moved, partition.Taken,
			partition.Changed, partition.Seen:
			n.do(func(now partition.Now) { n.member.Receive(now, l.id, m) })
		default:
			l.tell(&partition.Message{Kind: partition.Unsupported, Number: m.Number}, n.clock())
		}
	}
}

// handleAsk calls the handler of an ask, if this node holds the partition.
func (n *Node) handleAsk(l *lane, m *partition.Message) {
	h := n.handlers[m.Service]
	v := n.view.Load()
	switch {
	case h == nil || m.Partition >= len(v.Parts):
		l.tell(&partition.Message{Kind: partition.Unsupported, Number: m.Number}, n.clock())
	case m.Kind == partition.Ask && !v.Parts[m.Partition].Mine || int64(n.clock()) >= n.lease.Load():
		l.answer(m.Number, partition.Elsewhere, v.Parts[m.Partition].Epoch, nil, n.clock())
	default:
		number := m.Number
		var replied atomic.Bool
		h(*m, func(status partition.Status, epoch int64, body []byte) {
			if !replied.Swap(true) {
				l.answer(number, status, epoch, body, n.clock())
			}
		})
	}
}
