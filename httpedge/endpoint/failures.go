package endpoint

import (
	"log/slog"
	"sync"
	"time"
)

const (
	failureInterval = 10 * time.Second // between two lines about one kind of failure
	maxFailureKinds = 100              // that are told apart; errors beyond have one line together
)

// Failures logs failed requests. The first failure of a kind is logged at once, and those after it
// as a count every 10 s. Its methods may be called by many goroutines. Use NewFailures.
type Failures struct {
	log *slog.Logger

	mu     sync.Mutex
	kinds  map[failure]*repeats
	closed bool
}

// failure is what failures of one kind have in common: the step that failed, and the error's text.
type failure struct{ step, cause string }

// repeats counts the failures of a kind since its last line.
type repeats struct {
	count int
	timer *time.Timer
}

// NewFailures returns Failures that write to log.
func NewFailures(log *slog.Logger) *Failures {
	return &Failures{log: log, kinds: map[failure]*repeats{}}
}

// Log notes that a step of a request failed. The attributes are logged with the first failure.
func (f *Failures) Log(step string, err error, attributes ...any) {
	kind := failure{step, err.Error()}
	f.mu.Lock()
	if f.kinds[kind] == nil && len(f.kinds) >= maxFailureKinds {
		kind = failure{"requests fail in many ways", "various"}
	}
	known := f.kinds[kind]
	if known != nil {
		known.count++
	} else if !f.closed {
		known := &repeats{}
		known.timer = time.AfterFunc(failureInterval, func() { f.tick(kind, known) })
		f.kinds[kind] = known
	}
	f.mu.Unlock()
	if known == nil {
		f.log.Error(kind.step, append([]any{"error", kind.cause}, attributes...)...)
	}
}

// tick logs the failures of a kind since its last line, or forgets the kind if there were none.
func (f *Failures) tick(kind failure, known *repeats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if known.count == 0 {
		delete(f.kinds, kind)
		return
	}
	f.report(kind, known)
	known.timer.Reset(failureInterval)
}

func (f *Failures) report(kind failure, known *repeats) {
	if known.count > 0 {
		f.log.Error(kind.step, "error", kind.cause, "more", known.count)
		known.count = 0
	}
}

// Close logs the counts so far. Failures after it are logged one by one.
func (f *Failures) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for kind, known := range f.kinds {
		known.timer.Stop()
		f.report(kind, known)
	}
	clear(f.kinds)
}
