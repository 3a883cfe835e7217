package lookup

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"gatehouse/actors/geo"
	"gatehouse/actors/partition"
)

// Ledger keeps what is used of the budget that the nodes of a cluster share, so that a node that
// becomes its holder does not send more than the upstream allows. It may be used by many
// goroutines.
type Ledger interface {
	// SpendBudget writes the usage of an endpoint, unless a later number has been written at that
	// epoch. It reports whether the row of the partition is still as given: else it writes nothing.
	SpendBudget(ctx context.Context, row partition.Row, e geo.Endpoint, number int64, u geo.Usage) (
		held bool, err error)
	// Budgets returns the usage by endpoint that was written last for a partition. That of an
	// endpoint without any is the zero value.
	Budgets(ctx context.Context, name string) ([2]geo.Usage, error)
}

const (
	// ledgerTimeout is how long a write or a read of the ledger may take.
	ledgerTimeout = time.Second
	// sendAfterWrite is how long after the start of its write an exchange may be sent. A process
	// that was frozen in between sends nothing.
	sendAfterWrite = 2 * ledgerTimeout
	// clockSkew is how much longer a new holder waits for the end of the window than the ledger
	// says, which counts by the clock of the database.
	clockSkew = 500 * time.Millisecond
	// readAgainAfter is the time between two attempts to read the ledger.
	readAgainAfter = 250 * time.Millisecond
)

// tenure is the node's part in the shared budget.
type tenure struct {
	row     partition.Row
	decides bool
	moving  bool // the node hands it over, and may have to go on
}

// part returns the node's part in the shared budget at the time of a message. A node that was
// refused a write no longer decides, whatever it knows.
func (b *batcher) part() tenure {
	t := b.service.tenure()
	t.decides = t.decides && (b.refused == partition.Row{} || b.refused != t.row)
	return t
}

// tenure returns the node's part as it is now.
func (s *Service) tenure() tenure {
	if !s.isShared() {
		return tenure{decides: true}
	}
	view := s.peers.View()
	part := &view.Parts[partition.Lookups]
	name := partition.LookupsName(view.Nodes[view.Self].Egress)
	return tenure{
		row:     partition.Row{Name: name, Holder: view.Self, Epoch: part.Epoch},
		decides: decides(part),
		moving:  part.Moving,
	}
}

// follow makes the batcher see each change of the cluster, until the Service ends.
func (s *Service) follow() {
	for {
		view := s.peers.View()
		s.batcher.Tell(&wakeUp{})
		select {
		case <-view.Changed:
		case <-s.lifetime.Done():
			return
		}
	}
}

// The messages about the ledger: the batcher has a worker read it, and the worker reports.
type (
	readLedger   struct{ row partition.Row }
	ledgerIsRead struct {
		row    partition.Row
		worker *actor.PID
		usages [2]geo.Usage
		err    error
	}
)

// maySpend reports whether the node may use the upstream's budget. A new holder reads the ledger
// first. Lookups that are queued when another node is the holder go there.
func (b *batcher) maySpend(now time.Time) bool {
	switch t := &b.tenure; {
	case !b.service.isShared():
		return true
	case t.decides && b.adopted == t.row:
		return true
	case t.decides:
		b.adopt(now)
	case !t.moving:
		b.rejectQueued(movedAway)
	}
	return false
}

// adopt has an idle worker read the ledger, unless one does.
func (b *batcher) adopt(now time.Time) {
	if b.reading || len(b.idle) == 0 || now.Before(b.readAgain) {
		return
	}
	b.reading = true
	b.service.config.Actors.Root.Send(b.hire(), &readLedger{b.tenure.row})
}

// nextRead returns when to read the ledger after a failure; zero = not by the time alone.
func (b *batcher) nextRead(now time.Time) time.Time {
	if b.reading || !now.Before(b.readAgain) {
		return time.Time{}
	}
	return b.readAgain
}

// adoptRead makes the budgets those that the last holder has left.
func (b *batcher) adoptRead(m *ledgerIsRead, now time.Time) {
	b.idle = append(b.idle, m.worker)
	b.reading = false
	if m.err != nil {
		b.readAgain = now.Add(readAgainAfter)
		b.service.config.Logger.Warn("the upstream's budget cannot be read", "error", m.err)
		return
	}
	if m.row != b.tenure.row {
		return
	}
	b.adopted = m.row
	for e, u := range m.usages {
		if !u.Ends.IsZero() {
			u.Ends = u.Ends.Add(clockSkew)
			b.budget(geo.Endpoint(e)).Adopt(u, now)
		}
	}
}

// entry is what is written to the ledger before an exchange.
type entry struct {
	row    partition.Row
	number int64
	usage  geo.Usage
}

// spent returns the entry for an exchange that has been charged. Its window lasts until no exchange
// is under way that a former holder has sent.
func (b *batcher) spent(e geo.Endpoint, now time.Time) *entry {
	b.entries++
	u := b.budget(e).Usage(now)
	if ended := now.Add(sendAfterWrite + longestExchange); u.Ends.Before(ended) {
		u.Ends = ended
	}
	return &entry{b.tenure.row, b.entries, u}
}

// readLedger reads the ledger and reports.
func (w *worker) readLedger(self *actor.PID, m *readLedger) {
	ctx, cancel := context.WithTimeout(w.service.lifetime, ledgerTimeout)
	defer cancel()
	usages, err := w.service.config.Ledger.Budgets(ctx, m.row.Name)
	w.service.batcher.Tell(&ledgerIsRead{m.row, self, usages, err})
}

// errMoved says that another node uses the budget.
var errMoved = errors.New("another node holds the budget")

// record writes an exchange to the ledger. It returns an error if it must not be sent.
func (w *worker) record(e *exchange) error {
	if e.entry == nil {
		return nil
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.service.lifetime, ledgerTimeout)
	defer cancel()
	held, err := w.service.config.Ledger.SpendBudget(ctx, e.entry.row, e.endpoint, e.entry.number,
		e.entry.usage)
	switch {
	case err != nil:
		w.service.config.Logger.Warn("nothing is sent to the upstream: its budget cannot be written",
			"error", err)
		return errUnreachable
	case !held:
		return errMoved
	case time.Since(began) > sendAfterWrite:
		return errUnreachable
	}
	return nil
}
