package partition

import (
	"math"
	"time"
)

// Length is the duration of a window of requests.
const Length = time.Minute

// Window is the part of a node in counting one window of one token. At the holder it is the window
// itself. At an asker it is what the holder said last. In the zero value no window is open.
//
// An example with a limit of 100. The holder has counted 60 requests and says so: the asker Learns
// {Used: 60}. The link fails. With two nodes the asker may Allow (100-60)/2 = 20 requests alone. It
// allows 5: {Used: 60, Extra: 5}. The link is back. The next request Sends a Report with Extra 5:
// {Used: 60, Extra: 5, Sent: 5}. Another request meanwhile reports Extra 0. Then one of these
// happens:
//
//   - The holder Adds the report, counts the request and replies 66. The asker Learns {Used: 66}.
//   - The ask is lost. Unsent makes it {Used: 60, Extra: 5}: the next ask reports the 5.
//   - The asker becomes the holder, to which the former one has handed over {Used: 70}. It Inherits
//     that with its own 5: {Used: 75}.
//   - The asker becomes the holder because the former one has failed. Hold counts what it knows:
//     {Used: 65, Rebuilt: 60}. Of other askers' reports it Adds what they know above the 60.
//
// At the holder, Used has all that it has granted to askers. At an asker, it has what was used.
type Window struct {
	Opened time.Duration // by the node's clock; an asker's is at most as late as the holder's
	Used   int           // requests in the window, as known at Epoch
	Epoch  int64         // of the partition when the holder counted Used; 0 = never
	// Rebuilt is how many of Used a holder that failed has counted, as far as askers have reported.
	// Holder only.
	Rebuilt int
	// Extra is how many requests the asker has allowed without the holder, and no holder has
	// confirmed. Sent of them are on their way.
	Extra, Sent int

	Name WindowName // zero = it has none yet, or some member of the cluster knows no names
	// Granted is the asker's allowance in the window with that name: all that the holder has ever
	// granted it. Spent of them are used.
	Granted, Spent int
	Held           int   // asker only: Reply.Held
	Reset          int64 // asker only: the window's end as the holder has told it, Unix seconds

	Grants []Grant // holder only
	Tight  bool    // holder only: it grants nothing more
	Shut   bool    // asker only: the allowance is closed
}

// Report is what an asker tells the holder of a window. Ages are used, since clocks differ.
type Report struct {
	Age   time.Duration // of the window
	Used  int           // as the holder at Epoch has told; 0 = none
	Epoch int64
	Extra int // requests that were allowed without a holder

	Name  WindowName // of the window in which the asker has spent
	Spent int        // of its allowance
}

// Reply is what the holder of a window tells an asker whose request it has counted.
type Reply struct {
	Used  int // requests in the window, without what is granted and not spent
	Age   time.Duration
	Epoch int64 // of the partition
	Reset int64 // the window's end, Unix seconds

	Name    WindowName // zero = the holder grants nothing
	Held    int        // requests in the window, with all that others and the holder may use unasked
	Granted int        // all that the asker has got in this window
}

// Over reports whether no window is open at clock.
func (w *Window) Over(clock time.Duration) bool {
	return w.Used+w.Extra == 0 || clock-w.Opened >= Length
}

// Report returns what the asker tells the holder. The holder knows what it needs of it.
func (w *Window) Report(clock time.Duration) Report {
	if w.Over(clock) {
		return Report{}
	}
	return Report{
		Age: clock - w.Opened, Used: max(w.Used, w.Held), Epoch: w.Epoch, Extra: w.Extra,
		Name: w.Name, Spent: w.Spent,
	}
}

// Send is Report for an ask. What other asks report already is left out.
func (w *Window) Send(clock time.Duration) Report {
	r := w.Report(clock)
	r.Extra = max(0, r.Extra-w.Sent)
	w.Sent += r.Extra
	return r
}

// Unsent takes back what Send has counted as sent, because it did not arrive.
func (w *Window) Unsent(r Report) { w.Sent = max(0, w.Sent-r.Extra) }

// Hold makes the node's window that of the holder at an epoch. The window of a node that asked
// another holder until now counts as its own report. It is called before each request is counted.
func (w *Window) Hold(epoch, claimed int64, clock time.Duration) {
	if w.Epoch == epoch && w.Extra == 0 {
		return
	}
	r := w.Report(clock)
	if w.Epoch == epoch {
		w.Extra, w.Sent, r.Used = 0, 0, 0
	} else {
		*w = Window{Epoch: epoch}
	}
	w.Add(r, claimed, clock)
}

// Add adds what an asker reports to the holder's window. claimed is Part.Claimed: what a holder
// from before it has told is missing in the window, and counts once, however many askers report it.
func (w *Window) Add(r Report, claimed int64, clock time.Duration) {
	if r.Age >= Length {
		return
	}
	if w.Over(clock) {
		*w = Window{Epoch: w.Epoch}
	}
	more := max(0, r.Extra)
	if r.Epoch < claimed && r.Used > w.Rebuilt {
		more += r.Used - w.Rebuilt
		w.Rebuilt = r.Used
	}
	if more == 0 {
		return
	}
	if opened := clock - max(0, r.Age); w.Used == 0 || opened < w.Opened {
		w.Opened = opened
	}
	w.Used += more
}

// Learn sets the asker's window to what the holder has replied to a report that was sent at clock.
// A late reply changes nothing that a newer one has told, or that the node has counted as a later
// holder.
func (w *Window) Learn(r Reply, sent Report, clock time.Duration) {
	w.Extra, w.Sent = max(0, w.Extra-sent.Extra), max(0, w.Sent-sent.Extra)
	named := r.Name != WindowName{}
	if r.Epoch < w.Epoch || named && r.Name.isBefore(w.Name) {
		return
	}
	next := Window{
		Opened: clock - r.Age, Used: r.Used, Epoch: r.Epoch, Extra: w.Extra, Sent: w.Sent,
		Name: r.Name, Granted: r.Granted, Held: r.Held, Reset: r.Reset,
	}
	switch {
	case named && r.Name == w.Name:
		next.Spent, next.Shut = w.Spent, w.Shut
		next.Granted, next.Held = max(w.Granted, r.Granted), max(w.Held, r.Held)
		if sent.Name == r.Name {
			next.Used += w.Spent - sent.Spent
		}
		next.Used = max(next.Used, w.Used-w.Rest()) // it may have been the holder
		if w.Shut {
			next.Granted = w.Spent
		}
	case !named:
		if r.Epoch == w.Epoch && !w.Over(clock) && next.Opened < w.Opened+Length/2 {
			next.Used = max(next.Used, w.Used)
		}
		next.Name, next.Spent, next.Granted, next.Shut = w.Name, w.Spent, w.Spent, w.Shut
	}
	*w = next
}

// Allow reports whether the asker allows a request without the holder: a node may give away its
// part of what was left of the limit when it last knew. It counts the request.
func (w *Window) Allow(limit, nodes int, clock time.Duration) bool {
	if w.Over(clock) { // the allowance is over, but what is known of it is not
		*w = Window{Opened: clock, Name: w.Name, Granted: w.Spent, Spent: w.Spent, Shut: w.Shut}
	}
	if w.Extra >= (limit-max(w.Used, w.Held))/max(1, nodes) {
		return false
	}
	w.Extra++
	return true
}

// Inherit makes the node's window what the holder before has handed over, for the holder at an
// epoch: the node with the ID self. It is called before Hold, with the window as of now: its age is
// added to moved.Opened.
func (w *Window) Inherit(moved Window, self string, epoch, claimed int64, clock time.Duration) {
	own := w.Report(clock)
	spent := 0
	if moved.Name.isBefore(w.Name) {
		spent = math.MaxInt // the node no longer knows
	} else if moved.Name == w.Name {
		spent = w.Spent
	}
	*w = moved
	w.Epoch, w.Extra, w.Sent = epoch, 0, 0
	w.Spent = w.TakeBack(self, moved.Name, spent)
	w.Granted = w.Spent
	w.Add(own, claimed, clock)
}
