package partition

import "time"

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
}

// Report is what an asker tells the holder of a window. Ages are used, since clocks differ.
type Report struct {
	Age   time.Duration // of the window
	Used  int           // as the holder at Epoch has told; 0 = none
	Epoch int64
	Extra int // requests that were allowed without a holder
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
	return Report{Age: clock - w.Opened, Used: w.Used, Epoch: w.Epoch, Extra: w.Extra}
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

// Learn sets the asker's window to what the holder at an epoch has replied: its use and age, asked
// at clock. reported is how much of Extra the holder has added. A late reply changes nothing that a
// newer one has told, or that the node has counted as a later holder.
func (w *Window) Learn(
	used int, age time.Duration, epoch int64, reported int, clock time.Duration,
) {
	if epoch < w.Epoch {
		w.Extra, w.Sent = max(0, w.Extra-reported), max(0, w.Sent-reported)
		return
	}
	opened := clock - age
	if epoch == w.Epoch && !w.Over(clock) && opened < w.Opened+Length/2 {
		used = max(used, w.Used)
	}
	*w = Window{
		Opened: opened, Used: used, Epoch: epoch,
		Extra: max(0, w.Extra-reported), Sent: max(0, w.Sent-reported),
	}
}

// Allow reports whether the asker allows a request without the holder: a node may give away its
// part of what was left of the limit when it last knew. It counts the request.
func (w *Window) Allow(limit, nodes int, clock time.Duration) bool {
	if w.Over(clock) {
		*w = Window{Opened: clock}
	}
	if w.Extra >= (limit-w.Used)/max(1, nodes) {
		return false
	}
	w.Extra++
	return true
}

// Inherit makes the node's window what the holder before has handed over, for the holder at an
// epoch. It is called before Hold, with the window as of now: its age is added to moved.Opened.
func (w *Window) Inherit(moved Window, epoch, claimed int64, clock time.Duration) {
	own := w.Report(clock)
	*w = Window{Opened: moved.Opened, Used: moved.Used, Rebuilt: moved.Rebuilt, Epoch: epoch}
	w.Add(own, claimed, clock)
}
