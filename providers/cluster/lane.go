package cluster

import (
	"runtime"
	"sync"
	"time"

	"gatehouse/actors/partition"
)

const (
	// maxAsks bounds the asks of a lane that have no reply.
	maxAsks = 65536
	// maxAskBytes and maxOtherBytes are about how much of each goes into one frame.
	maxAskBytes   = 256 << 10
	maxOtherBytes = 1 << 20
	// maxMessages is how many messages of each go into one frame.
	maxMessages = partition.MaxMessages / 2
	// maxQueued bounds the messages of a lane that are not asks, in bytes.
	maxQueued = 32 << 20
	// messageBytes is about what a message takes without its body.
	messageBytes = 32
	// replyTime is how long the reply to a frame may take until the node is suspected.
	replyTime = time.Second
	// probeEvery is the time between two probes of a suspected node.
	probeEvery = 250 * time.Millisecond
)

// ask is an ask that waits for its reply.
type ask struct {
	message partition.Message
	until   time.Duration
	reply   partition.Message
	err     error
	done    chan struct{} // gets one value when reply or err is set
}

var asks = sync.Pool{New: func() any { return &ask{done: make(chan struct{}, 1)} }}

// lane orders all that goes to one node. One frame with asks is in flight. What gathers meanwhile
// goes into the next one. Its methods may be called by many goroutines.
type lane struct {
	id, address string
	link        *link
	reply       time.Duration                     // replyTime, but in tests
	envelope    func() (version int, self string) // of frames
	clock       func() time.Duration              // of the node
	sent        func()                            // counts a frame

	mu     sync.Mutex
	closed bool

	waiting []*ask // not sent
	flying  []*ask // in the frame in flight; nil = replied
	first   int64  // Number of flying[0]
	late    map[int64]*ask
	open    int           // asks in all three
	number  int64         // of the last ask or frame
	frame   int64         // the frame in flight; 0 = none
	began   time.Duration // when it was sent
	stalled time.Duration // since when asks wait for room in the link; 0 = they do not
	// gathering says that a goroutine is about to flush.
	gathering bool

	suspected bool
	lost      int64 // number when the node was suspected
	probed    time.Duration

	others   []partition.Message // not asks
	queued   int                 // bytes of others
	replyTo  int64               // Frame.Reply of the next frame
	handling int                 // frames of which asks are being handled
	scratch  []partition.Message
}

func newLane(id, address string, k *link, first int64, reply time.Duration) *lane {
	return &lane{
		id: id, address: address, link: k, reply: reply,
		late: map[int64]*ask{}, number: first, lost: first,
	}
}

// enqueue sends a with the next frame.
func (l *lane) enqueue(a *ask) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed || l.suspected:
		return partition.ErrUnreachable
	case l.open >= maxAsks:
		return partition.ErrBusy
	}
	l.open++
	l.waiting = append(l.waiting, a)
	if l.frame == 0 {
		l.gather()
	}
	return nil
}

// gather flushes after every goroutine that is ready has had its turn, so that their asks are in
// the same frame. A processor that has nothing else to do flushes at once. The caller holds l.mu.
func (l *lane) gather() {
	if l.gathering {
		return
	}
	l.gathering = true
	go func() {
		runtime.Gosched()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gathering = false
		l.flush(l.clock())
	}()
}

// tell sends a message that is no ask. It may be lost.
func (l *lane) tell(m *partition.Message, clock time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(m)
	l.flush(clock)
}

func (l *lane) push(m *partition.Message) {
	size := messageBytes + len(m.Body) + len(m.Counts) + len(m.Rows)*messageBytes*3
	if l.closed || l.queued+size > maxQueued {
		return
	}
	l.queued += size
	l.others = append(l.others, *m)
}

// answer sends the reply to an ask of the node. The caller may use body again afterwards.
func (l *lane) answer(number int64, status partition.Status, epoch int64, body []byte,
	clock time.Duration) {
	m := partition.Message{Kind: partition.Answer, Number: number, Status: status, Epoch: epoch}
	l.mu.Lock()
	defer l.mu.Unlock()
	m.Body = append(m.Body, body...)
	l.push(&m)
	if l.handling == 0 {
		l.flush(clock)
	}
}

// flush sends what may be sent now. The caller holds l.mu.
func (l *lane) flush(clock time.Duration) {
	for !l.closed {
		asking := l.frame == 0 && len(l.waiting) > 0 && !l.suspected
		if !asking && len(l.others) == 0 && l.replyTo == 0 {
			return
		}
		if !l.link.reserveOrWait() {
			if asking && l.stalled == 0 {
				l.stalled = clock
			}
			return
		}
		l.send(asking, clock)
	}
}

// send sends one frame. The caller holds l.mu and has reserved room for it.
func (l *lane) send(asking bool, clock time.Duration) {
	f := partition.Frame{To: l.id, Reply: l.replyTo, Messages: l.scratch[:0]}
	f.Version, f.From = l.envelope()
	l.replyTo = 0
	size, n := 0, 0
	for n < min(len(l.others), maxMessages) && (n == 0 || size < maxOtherBytes) {
		m := &l.others[n]
		size += messageBytes + len(m.Body) + len(m.Counts) + len(m.Rows)*messageBytes*3
		f.Messages = append(f.Messages, *m)
		n++
	}
	l.queued -= size
	l.others = remove(l.others, n)
	if asking {
		size += l.load(&f)
		l.number++
		f.Number, l.frame, l.began, l.stalled = l.number, l.number, clock, 0
	}
	l.link.send(partition.AppendFrame(make([]byte, 0, size+128), &f))
	l.sent()
	clear(f.Messages)
	l.scratch = f.Messages[:0]
}

// load moves asks from waiting to f and returns about their size.
func (l *lane) load(f *partition.Frame) (size int) {
	n := 0
	l.first = l.number + 1
	for n < min(len(l.waiting), maxMessages) && (n == 0 || size < maxAskBytes) {
		m := &l.waiting[n].message
		l.number++
		m.Number = l.number
		size += messageBytes + len(m.Body)
		f.Messages = append(f.Messages, *m)
		n++
	}
	l.flying = append(l.flying[:0], l.waiting[:n]...)
	l.waiting = remove(l.waiting, n)
	return size
}

// remove removes the first n elements of list.
func remove[T any](list []T, n int) []T {
	rest := copy(list, list[n:])
	clear(list[rest:])
	return list[:rest]
}

// arrived takes the replies of a frame from the node. The messages that are no replies are the
// caller's, between begin and end.
func (l *lane) arrived(f *partition.Frame, clock time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range f.Messages {
		switch m := &f.Messages[i]; m.Kind {
		case partition.Answer:
			l.replied(m, nil)
		case partition.Unsupported:
			l.replied(m, partition.ErrUnreachable)
		}
	}
	if f.Reply != 0 && f.Reply == l.frame {
		l.landed()
	}
	if f.Reply > l.lost {
		l.suspected = false
	}
	if l.handling == 0 {
		l.flush(clock)
	}
}

// replied ends the ask that m replies to.
func (l *lane) replied(m *partition.Message, err error) {
	if i := m.Number - l.first; i >= 0 && i < int64(len(l.flying)) {
		if a := l.flying[i]; a != nil {
			l.flying[i] = nil
			l.finish(a, m, err)
		}
		return
	}
	if a := l.late[m.Number]; a != nil {
		delete(l.late, m.Number)
		l.finish(a, m, err)
	}
}

// landed ends the flight of the frame. Those of its asks that have no reply get it later.
func (l *lane) landed() {
	l.frame = 0
	for i, a := range l.flying {
		if a != nil {
			l.late[l.first+int64(i)] = a
		}
	}
	clear(l.flying)
	l.flying = l.flying[:0]
}

func (l *lane) finish(a *ask, m *partition.Message, err error) {
	if m != nil {
		a.reply = *m
	}
	a.err = err
	l.open--
	a.done <- struct{}{}
}

// begin says that asks of the node are about to be handled: replies wait for end.
func (l *lane) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handling++
}

// end says that the asks of the frame with that number are handled; 0 = it had none. The replies
// take the asks along that gather meanwhile.
func (l *lane) end(number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handling--
	l.replyTo = max(l.replyTo, number)
	if len(l.waiting) > 0 || len(l.others) > 0 || l.replyTo != 0 {
		l.gather()
	}
}

// tick suspects a node that does not reply, probes it, and ends asks whose time is over.
func (l *lane) tick(clock time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return
	case l.suspected:
		if clock-l.probed >= probeEvery && l.link.reserve() {
			l.probe(clock)
		}
	case l.frame != 0 && clock-l.began >= l.reply,
		l.stalled != 0 && clock-l.stalled >= l.reply:
		l.suspect()
	}
	l.expire(clock)
	l.flush(clock)
}

// probe sends a frame that wants a reply. The caller has reserved room for it.
func (l *lane) probe(clock time.Duration) {
	l.probed = clock
	l.number++
	f := partition.Frame{To: l.id, Number: l.number, Reply: l.replyTo}
	f.Version, f.From = l.envelope()
	l.replyTo = 0
	l.link.send(partition.AppendFrame(nil, &f))
	l.sent()
}

// expire ends the asks whose time is over. Those in flight end with the frame.
func (l *lane) expire(clock time.Duration) {
	kept := l.waiting[:0]
	for _, a := range l.waiting {
		if clock < a.until {
			kept = append(kept, a)
		} else {
			l.finish(a, nil, partition.ErrUnreachable)
		}
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
	if len(kept) == 0 {
		l.stalled = 0
	}
	for i, a := range l.flying {
		if a != nil && clock >= a.until {
			l.flying[i] = nil
			l.finish(a, nil, partition.ErrUnreachable)
		}
	}
	for number, a := range l.late {
		if clock >= a.until {
			delete(l.late, number)
			l.finish(a, nil, partition.ErrUnreachable)
		}
	}
}

// suspect fails all asks, and further ones until the node replies to a probe.
func (l *lane) suspect() {
	l.suspected, l.lost, l.probed = true, l.number, 0
	l.fail()
}

// isSuspected reports whether the node did not reply lately.
func (l *lane) isSuspected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.suspected
}

func (l *lane) fail() {
	l.landed()
	l.stalled = 0
	for _, a := range l.waiting {
		l.finish(a, nil, partition.ErrUnreachable)
	}
	clear(l.waiting)
	l.waiting = l.waiting[:0]
	for _, a := range l.late {
		l.finish(a, nil, partition.ErrUnreachable)
	}
	clear(l.late)
}

// ended is called when the stream to the node has ended.
func (l *lane) ended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.suspect()
	}
}

// close fails all asks. The node is gone.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.fail()
		l.others, l.queued = nil, 0
	}
}

// resume is called when the link has room again.
func (l *lane) resume(clock time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush(clock)
}
