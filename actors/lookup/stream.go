package lookup

import (
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/ratelimit"
)

// Bounds of a Stream, in queries.
const (
	streamWindow = 100              // misses that are asked for together
	mostAhead    = 6 * streamWindow // read and not yet returned, by one stream
	allAhead     = 60_000           // by all streams together, but each has a window
)

// Stream looks up many queries and returns their outcomes in order. It reads a bounded number of
// queries ahead, and asks for their misses in windows. A window has one goroutine, which ends
// within the lookup timeout. A Stream has one owner, who may close it at any time.
type Stream struct {
	service *Service
	from    Origin
	next    func() (text string, ok bool)
	ended   bool       // next has no more
	ahead   []streamed // read and not yet returned, from head on
	head    int
	open    *window // gathers misses; nil = none
}

// streamed is a query that was read ahead.
type streamed struct {
	text    string
	outcome geo.Outcome
	window  *window // that looks it up; nil = outcome is known
	place   int     // in the window's queries
}

// window is a group of misses that are asked for together.
type window struct {
	queries []geo.Query       // distinct, sharing no memory with the request
	places  map[geo.Query]int // of queries; nil once they are asked for
	ask     *ask              // nil while the window is open
	final   []outcome         // the outcomes, once done is closed
	done    chan struct{}     // closed when no outcome changes any more
}

// Stream returns a stream of the queries that next returns until ok is false. They may repeat.
// Stream keeps their memory until it has returned them. The caller must close it.
func (s *Service) Stream(from Origin, next func() (text string, ok bool)) *Stream {
	s.streams.Add(1)
	return &Stream{service: s, from: from, next: next}
}

// Close ends the stream. Call it once.
func (st *Stream) Close() { st.service.streams.Add(-1) }

// mayHold returns how many queries the stream may have read ahead.
func (st *Stream) mayHold() int {
	return max(streamWindow, min(mostAhead, allAhead/int(st.service.streams.Load())))
}

// Next returns the next query and its outcome; ok is false after the last one. It calls waits
// before it waits for the upstream, and ends if that returns false.
func (st *Stream) Next(waits func() bool) (text string, o geo.Outcome, ok bool) {
	if st.head == len(st.ahead) {
		text, o, ok = st.read()
		if !ok || !isMiss(&o) {
			return text, o, ok
		}
	}
	if most := st.mayHold(); len(st.ahead)-st.head <= most/2 {
		st.readAhead(most)
	}
	item := st.ahead[st.head]
	st.ahead[st.head] = streamed{}
	st.head++
	if item.window == nil {
		return item.text, item.outcome, true
	}
	o, ok = st.await(item.window, item.place, waits)
	return item.text, o, ok
}

// read reads one query and returns its outcome. It keeps a miss.
func (st *Stream) read() (text string, o geo.Outcome, ok bool) {
	if st.ended {
		return "", o, false
	}
	if text, ok = st.next(); !ok {
		st.ended = true
		return "", o, false
	}
	var q geo.Query
	if o = st.service.find(text, time.Now(), &q); isMiss(&o) {
		st.miss(text, q)
	}
	return text, o, true
}

// readAhead reads until most queries are held.
func (st *Stream) readAhead(most int) {
	n := copy(st.ahead, st.ahead[st.head:])
	clear(st.ahead[n:])
	st.ahead, st.head = st.ahead[:n], 0
	for len(st.ahead) < most {
		text, o, ok := st.read()
		if !ok {
			return
		}
		if !isMiss(&o) {
			st.ahead = append(st.ahead, streamed{text: text, outcome: o})
		}
	}
}

// miss adds a miss to the open window, and asks for the window when it is full.
func (st *Stream) miss(text string, q geo.Query) {
	if st.open == nil {
		st.open = &window{places: map[geo.Query]int{}, done: make(chan struct{})}
	}
	w := st.open
	place, known := w.places[q]
	if !known {
		place = len(w.queries)
		w.queries = append(w.queries, q.Clone())
		w.places[w.queries[place]] = place
	}
	st.ahead = append(st.ahead, streamed{text: text, window: w, place: place})
	if len(w.queries) == streamWindow {
		st.ask()
	}
}

// ask asks for the open window.
func (st *Stream) ask() {
	w, s := st.open, st.service
	st.open, w.places = nil, nil
	now := time.Now()
	w.ask = newAsk(w.queries, ratelimit.CallerPrefix(st.from.Caller), st.from.Trace,
		now.Add(s.config.LookupTimeout))
	w.ask.progress = make(chan struct{}, 1)
	if !s.inFlight.Enter() {
		for i := range w.queries {
			w.ask.complete(i, outcome{Outcome: geo.Outcome{Err: errOverloaded}})
		}
		w.final = w.ask.wait(w.ask.deadline)
		close(w.done)
		return
	}
	go func() {
		defer close(w.done)
		defer s.inFlight.Leave()
		defer func() {
			if recover() != nil { // in the offline files; no caller recovers this goroutine
				s.panicked()
				w.final = w.ask.wait(now)
			}
		}()
		w.final = s.checkAndResolve(w.ask, now)
	}()
}

// await returns an outcome of a window as soon as it is known; ok is false if waits returned false.
func (st *Stream) await(w *window, place int, waits func() bool) (o geo.Outcome, ok bool) {
	if w == st.open {
		st.ask()
	}
	mayChange := st.service.config.Fallback != nil
	for told := false; ; told = true {
		if o, ok = w.ask.settled(place, mayChange); ok {
			return o, true
		}
		select {
		case <-w.done:
			return w.final[place].Outcome, true
		default:
		}
		if !told && !waits() {
			return o, false
		}
		select {
		case <-w.done:
		case <-w.ask.progress:
		}
	}
}
