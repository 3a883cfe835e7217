package nodes

import (
	"context"
	"time"
)

// WriteNext writes the sources of the next version.
func WriteNext(ctx context.Context, folder string) error {
	_, err := writeNext(ctx, folder)
	return err
}

// Unexplained returns the problems with a line that a node writes while a fault lasts.
func Unexplained(kind FaultKind, line string) int {
	b := newBreaker(&Cluster{}, nil)
	b.all = []*happened{{Fault: Fault{Kind: kind}, began: time.Now()}}
	if read := parseLine(0, line); read.isBad() {
		return len(b.problems([]logLine{read}))
	}
	return 0
}

// Seen is what a run of faults has seen.
type Seen struct {
	Late      bool // a token was admitted after its end
	Admitted  int  // requests of one token in a window
	Failed    int  // status of a request; 0 = none failed
	Calm      bool // no fault had an effect then
	Healed    time.Duration
	DuringOne bool // there was a fault
}

// Check returns what is against the promises.
func (s Seen) Check() error {
	now := time.Now()
	o := &faultRun{breaker: newBreaker(&Cluster{}, nil), lines: &logLines{}, tally: NewTally(1),
		ended: []endedToken{{}}, healed: []time.Duration{s.Healed}}
	o.warm.Store(1)
	if s.Late {
		o.late = []string{"late"}
	}
	for range s.Admitted {
		o.note(Response{Status: 200, Reset: now.Unix() + 60, Began: now})
	}
	if s.Failed != 0 {
		o.note(Response{Status: s.Failed, Began: now})
	}
	if s.Calm {
		o.calm = []period{{now.Add(-time.Second), now.Add(time.Second)}}
	}
	if s.DuringOne {
		o.breaker.all = []*happened{{Fault: Fault{Kind: FaultKill}, began: now}}
	}
	return o.check()
}
