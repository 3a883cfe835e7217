package partition

import (
	"encoding/binary"
	"time"

	"gatehouse/actors/wire"
)

// spendWithin is how long after a window was opened an asker spends its allowance: its clock and
// that of the holder differ.
const spendWithin = Length - 500*time.Millisecond

// WindowName is the name of a window. Of two windows of a token the later one has the greater name.
type WindowName struct {
	Epoch int64         // of the partition when it was opened
	At    time.Duration // by the clock of the holder that opened it
}

func (n WindowName) isBefore(other WindowName) bool {
	return n.Epoch < other.Epoch || n.Epoch == other.Epoch && n.At < other.At
}

// Grant is the allowance of one asker in a window, as the holder knows it. Both numbers only grow,
// until the holder takes back the rest.
type Grant struct {
	Node    string // ID of the asker
	Granted int    // requests, all of which count as used
	Spent   int    // of them, as the asker has told
}

// Rest returns how many requests the holder has granted that are not known to be spent.
func (w *Window) Rest() (n int) {
	for i := range w.Grants {
		n += w.Grants[i].Granted - w.Grants[i].Spent
	}
	return n
}

// Open returns the grants with a rest.
func (w *Window) Open() (open []Grant) {
	for _, g := range w.Grants {
		if g.Granted > g.Spent {
			open = append(open, g)
		}
	}
	return open
}

// MustClose reports whether the holder must ask for the rest of what it has granted before it
// refuses a request.
func (w *Window) MustClose(limit int, clock time.Duration) bool {
	return !w.Over(clock) && w.Used >= limit && w.Rest() > 0
}

// Grant gives an asker an allowance after the holder has counted its request, and returns all that
// it has got in this window. A node has its share of what is left in hand: then it asks rarely, and
// leaves enough to all others. A window without a name gets one.
func (w *Window) Grant(r Report, node string, limit, nodes int, clock time.Duration) int {
	if w.Name == (WindowName{}) {
		w.Name = WindowName{Epoch: w.Epoch, At: clock}
	}
	g := w.grantOf(node)
	if g != nil && r.Name == w.Name {
		g.Spent = max(g.Spent, min(r.Spent, g.Granted))
	}
	size := w.share(limit, nodes)
	if w.Tight || w.Rebuilt > 0 || size <= 0 {
		size = 0
	} else if g == nil {
		w.Grants = append(w.Grants, Grant{Node: node})
		g = &w.Grants[len(w.Grants)-1]
	}
	if g == nil {
		return 0
	}
	more := max(0, size-(g.Granted-g.Spent))
	g.Granted += more
	w.Used += more
	return g.Granted
}

// share returns a node's part of the requests that are left.
func (w *Window) share(limit, nodes int) int { return (limit - w.Used) / max(1, nodes) }

func (w *Window) grantOf(node string) *Grant {
	for i := range w.Grants {
		if w.Grants[i].Node == node {
			return &w.Grants[i]
		}
	}
	return nil
}

// TakeBack takes back what an asker has not spent in the window with that name, and never will. It
// returns what it has spent.
func (w *Window) TakeBack(node string, name WindowName, spent int) int {
	g := w.grantOf(node)
	if g == nil || name != w.Name {
		return 0
	}
	g.Spent = max(g.Spent, min(spent, g.Granted))
	w.Used -= g.Granted - g.Spent
	g.Granted = g.Spent
	return g.Spent
}

// Reply returns what the holder tells an asker whose allowance is granted. The holder may count its
// own share until it is asked again: after a crash that counts as used.
func (w *Window) Reply(granted, limit, nodes int, clock time.Duration) Reply {
	return Reply{
		Used: w.Used - w.Rest(), Age: clock - w.Opened, Epoch: w.Epoch,
		Name: w.Name, Held: w.Used + w.share(limit, nodes), Granted: granted,
	}
}

// Spend reports whether the asker's allowance has a request left, and uses it.
func (w *Window) Spend(clock time.Duration) bool {
	if w.Spent >= w.Granted || clock-w.Opened >= spendWithin {
		return false
	}
	w.Spent++
	w.Used++
	return true
}

// Close ends the asker's allowance in the window with that name, also for replies that are on their
// way, and returns what is spent. ok says that the asker knows that.
func (w *Window) Close(name WindowName) (spent int, ok bool) {
	if name.isBefore(w.Name) {
		return 0, false
	}
	if name != w.Name {
		*w = Window{Epoch: w.Epoch, Extra: w.Extra, Sent: w.Sent, Opened: w.Opened, Name: name}
	}
	w.Shut, w.Granted = true, w.Spent
	return w.Spent, true
}

// Append appends what the next holder needs of the window, for ReadWindow. A node that knows no
// names reads nothing of the allowances: all that was granted counts as used.
func (w *Window) Append(dst []byte, named bool, clock time.Duration) []byte {
	open := *w
	if w.Over(clock) {
		open = Window{Opened: clock}
	}
	dst = wire.AppendDuration(dst, clock-open.Opened)
	dst = binary.AppendUvarint(dst, uint64(open.Used))
	dst = binary.AppendUvarint(dst, uint64(open.Rebuilt))
	if !named {
		return dst
	}
	dst = appendBool(open.Name.Append(dst), open.Tight)
	dst = binary.AppendUvarint(dst, uint64(len(open.Grants)))
	for _, g := range open.Grants {
		dst = appendString(dst, g.Node)
		dst = binary.AppendUvarint(dst, uint64(g.Granted))
		dst = binary.AppendUvarint(dst, uint64(g.Spent))
	}
	return dst
}

// ReadWindow reads what Append has written at another node.
func ReadWindow(r *wire.Reader, named bool, epoch int64, clock time.Duration) Window {
	w := Window{
		Opened: clock - r.Duration(), Used: r.UpTo(MostCounted), Rebuilt: r.UpTo(MostCounted),
		Epoch: epoch,
	}
	if !named {
		return w
	}
	w.Name, w.Tight = ReadWindowName(r), r.Bool()
	for n := r.Count(3); n > 0 && !r.Bad; n-- {
		g := Grant{Node: string(r.Field()), Granted: r.UpTo(MostCounted)}
		g.Spent = min(g.Granted, r.UpTo(MostCounted))
		w.Grants = append(w.Grants, g)
	}
	return w
}

// MostCounted is the greatest number of requests or seconds in a message of another node.
const MostCounted = 1 << 20

// Append appends the name, for ReadWindowName.
func (n WindowName) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(n.Epoch))
	return binary.AppendUvarint(dst, uint64(n.At))
}

// ReadWindowName reads what WindowName.Append has written.
func ReadWindowName(r *wire.Reader) WindowName {
	return WindowName{Epoch: int64(r.Uint()), At: time.Duration(r.Uint())}
}
