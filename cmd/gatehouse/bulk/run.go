package bulk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gatehouse/actors/geo"
)

// Source answers queries. It may be used by many goroutines.
type Source interface {
	// Answer sets answers[i] to the answer to queries[i]. misses is how many it did not know from
	// before. Its error ends the run. Answers to a smaller number are needed earlier.
	Answer(ctx context.Context, number int64, queries []geo.Query,
		answers []Answer) (misses int, err error)
}

// Config configures Run. Fields are required unless they say otherwise.
type Config struct {
	Input  *Input
	Name   string // optional: of the input, for errors
	Layout Layout
	Plan   *Plan
	Source Source
	Output io.Writer

	Workers int // chunks in work at a time
	MaxRows int // of a chunk

	MaxErrors  int64                // errors after which one more ends the run; -1 = any number
	From       Position             // optional: where an earlier run stopped
	Checkpoint func(Position) error // optional: called about every 200 ms, and at the end
	Counts     *Counts              // optional: for a display of the progress
	Header     *string              // optional: the header that the outputs of several inputs share
	More       bool                 // rows of another input follow: the output does not end
}

// readError returns an error of reading the input.
func (c *Config) readError(err error) error {
	return fmt.Errorf("read %s: %w", cmp.Or(c.Name, "input"), err)
}

// Position is how far a run has come.
type Position struct {
	Input   int64 `json:"input"`   // offset after the last row, in the decompressed input
	Output  int64 `json:"output"`  // bytes of these rows and of what was written before them
	Rows    int64 `json:"rows"`    // rows written
	Failed  int64 `json:"failed"`  // of them, those with an error
	Unknown int64 `json:"unknown"` // of them, those without a location

	// Whole is where the first row began that ended only because the input did.
	Whole Mark `json:"whole"`
}

// Mark is a Position that may not be known.
type Mark struct {
	Known   bool  `json:"known"`
	Input   int64 `json:"input"`
	Output  int64 `json:"output"`
	Rows    int64 `json:"rows"`
	Failed  int64 `json:"failed"`
	Unknown int64 `json:"unknown"`
}

// Counts are figures of a run. They may be read while it runs.
type Counts struct {
	Rows, Failed atomic.Int64
	Input        atomic.Int64 // offset after the last row, in the decompressed input
	Errors       atomic.Int64 // failed rows of this command, without private and reserved addresses
	Misses       atomic.Int64 // queries whose answers were not known from before
}

// ErrTooManyErrors ends a run that has had more failed rows than allowed.
var ErrTooManyErrors = errors.New("too many rows failed")

const checkpointEvery = 200 * time.Millisecond

// job is a chunk on its way from the splitter to the output.
type job struct {
	chunk
	number  int64 // in the order of the input
	lookups []lookup
	queries []geo.Query
	answers []Answer
	out     []byte
	errors  []extent // up to and with each row of the input that counts for MaxErrors
	all     extent   // all of it
	done    chan struct{}
}

// extent is how far a part of a chunk goes from its beginning.
type extent struct {
	in   int // number of the last row of the input
	rows int // of the output
	out  int // bytes of the output

	failed, unknown int // of the rows
	errors          int // of those that failed, not for a private or reserved address
}

// Run looks up the rows of the input and writes them in their order. It returns how far it came,
// also with an error. All rows before that position are written.
func Run(ctx context.Context, c Config) (Position, error) {
	if c.Counts == nil {
		c.Counts = &Counts{}
	}
	s := &splitter{input: c.Input.stream, comma: c.Layout.quotes(), maxRows: c.MaxRows,
		offset: c.Input.bom}
	header, err := c.Layout.begin(s)
	if err != nil {
		return c.From, c.readError(err)
	}
	r := &run{Config: c, pos: c.From, saved: time.Now()}
	r.Counts.Rows.Store(r.pos.Rows)
	r.Counts.Failed.Store(r.pos.Failed)
	r.Counts.Input.Store(r.pos.Input)
	if bytes.HasSuffix(header, []byte{'\n'}) {
		r.pos.Input = max(r.pos.Input, s.offset)
	}
	if c.From.Input > 0 {
		if err := c.Input.seek(c.From.Input); err != nil {
			return c.From, c.readError(err)
		}
		s = &splitter{input: c.Input.stream, comma: s.comma, maxRows: s.maxRows,
			offset: c.From.Input}
	}
	if err := r.begin(header); err != nil {
		return c.From, err
	}
	err = r.pump(ctx, s)
	if err == nil && !c.More {
		err = r.end()
	}
	if c.Checkpoint != nil {
		err = errors.Join(err, c.Checkpoint(r.pos))
	}
	return r.pos, err
}

// run is the state of a Run.
type run struct {
	Config
	pos   Position
	head  []byte    // written with the first rows
	saved time.Time // of the last checkpoint
	jobs  sync.Pool
}

// begin prepares what comes before the rows.
func (r *run) begin(header []byte) error {
	if r.Plan.summary != nil {
		return nil
	}
	w := writer{&r.Layout, r.Plan}
	if head := strings.TrimSpace(string(w.header(nil, header))); r.Header != nil && head != "" {
		if *r.Header != "" && *r.Header != head {
			return &HeaderError{fmt.Sprintf("the output has the header %q, and with this file it would be %q:"+
				" look it up into another output, or use --format ndjson", *r.Header, head)}
		}
		*r.Header = head
	}
	if r.From.Rows > 0 {
		return nil
	}
	if r.Input.bom > 0 && w.keepsCells() {
		r.head = append(r.head, magicUTF8...)
	}
	r.head = w.header(r.head, header)
	if r.Plan.format == JSON {
		r.head = append(r.head, '[')
	}
	return nil
}

// end writes what comes after the rows. The position does not count it, so that a run which goes
// on from there replaces it.
func (r *run) end() error {
	tail := r.head // if there were no rows
	if r.Plan.format == JSON && r.Plan.summary == nil {
		tail = append(tail, "\n]\n"...)
	}
	if _, err := r.Output.Write(tail); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func (r *run) write(text []byte) error {
	n, err := r.Output.Write(text)
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	r.pos.Output += int64(n)
	return nil
}

// pump moves the chunks from the splitter to the output. If the input cannot be read any more, the
// rows before that are written.
func (r *run) pump(ctx context.Context, s *splitter) error {
	g, ctx := errgroup.WithContext(ctx)
	work := make(chan *job)
	ordered := make(chan *job, r.Workers+2)
	var unread error
	g.Go(func() error {
		defer close(work)
		defer close(ordered)
		unread = r.split(ctx, s, ordered, work)
		return nil // an error would drop the chunks that are in work
	})
	for range r.Workers {
		g.Go(func() error { return r.work(ctx, work) })
	}
	g.Go(func() error {
		for j := range ordered {
			select {
			case <-j.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := r.finish(j); err != nil {
				return err
			}
			j.done = nil
			r.jobs.Put(j)
		}
		return nil
	})
	return cmp.Or(g.Wait(), unread)
}

func (r *run) split(ctx context.Context, s *splitter, ordered, work chan<- *job) error {
	for number := int64(0); ctx.Err() == nil; number++ {
		j, ok := r.jobs.Get().(*job)
		if !ok {
			j = &job{}
		}
		switch err := s.next(&j.chunk); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			if errors.Is(err, io.ErrUnexpectedEOF) && !r.Input.plain {
				err = cutOff(err)
			}
			return r.readError(err)
		}
		j.number, j.done = number, make(chan struct{})
		for _, to := range []chan<- *job{ordered, work} {
			select {
			case to <- j:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return ctx.Err()
}

// work answers and renders chunks.
func (r *run) work(ctx context.Context, work <-chan *job) error {
	in := &reader{Layout: &r.Layout, plan: r.Plan}
	for j := range work {
		j.lookups = in.lookups(j.lookups[:0], &j.chunk)
		j.queries, j.answers = j.queries[:0], j.answers[:0]
		for i := range j.lookups {
			r.addQuery(j, &j.lookups[i])
		}
		misses, err := r.Source.Answer(ctx, j.number, j.queries, j.answers)
		if err != nil {
			return err
		}
		r.Counts.Misses.Add(int64(misses))
		r.render(j)
		close(j.done)
	}
	return nil
}

// addQuery adds the query of a lookup to those of the chunk, or finds its problem.
func (r *run) addQuery(j *job, l *lookup) {
	if l.record != nil {
		return
	}
	text := host(view(l.query))
	q, err := geo.ParseQuery(text)
	if err != nil {
		p := problemOf(err)
		if _, err := netip.ParsePrefix(text); err == nil {
			p.message = "This is a prefix: look up one of its addresses."
		}
		l.record = r.Plan.failure(p)
		return
	}
	l.index = len(j.queries)
	j.queries, j.answers = append(j.queries, q), append(j.answers, Answer{})
}

// answer returns the answer to the query of a lookup.
func (j *job) answer(l *lookup) Answer {
	if l.record != nil {
		return Answer{Record: l.record}
	}
	return j.answers[l.index]
}

// render renders the rows of a chunk.
func (r *run) render(j *job) {
	w := writer{&r.Layout, r.Plan}
	j.out, j.errors = j.out[:0], j.errors[:0]
	var sum extent
	before := 0 // errors at the last row of the input that had one
	n, answer := r.Layout.answers(), j.answer
	for i := 0; i < len(j.lookups); i += n {
		row := j.lookups[i : i+n]
		if r.Plan.summary == nil {
			j.out = w.row(j.out, row, answer)
		}
		j.count(&sum, row)
		sum.in, sum.rows, sum.out = row[0].in, sum.rows+1, len(j.out)
		last := i+n == len(j.lookups) || j.lookups[i+n].in != sum.in
		if last && sum.errors > before {
			j.errors = append(j.errors, sum)
			before = sum.errors
		}
	}
	j.all = sum
	j.all.in = len(j.ends) - 1
}

// count counts a row, which has failed if one of its lookups has.
func (j *job) count(sum *extent, row []lookup) {
	var failed, unknown, mistaken bool
	for i := range row {
		record := j.answer(&row[i]).Record
		unknown = unknown || record.unknown
		failed = failed || record.failed && !record.unknown
		mistaken = mistaken || record.failed && !record.unknown && !record.special
	}
	switch {
	case failed:
		sum.failed++
	case unknown:
		sum.unknown++
	}
	if mistaken {
		sum.errors++
	}
}

// part returns what to write of a chunk: all of it, or up to the row that is one error too many.
func (r *run) part(j *job) (part extent, tooMany bool) {
	for _, e := range j.errors {
		if r.MaxErrors >= 0 && r.Counts.Errors.Load()+int64(e.errors) > r.MaxErrors {
			return e, true
		}
	}
	return j.all, false
}

// finish writes a chunk, up to the row that is one failure too many.
func (r *run) finish(j *job) error {
	part, tooMany := r.part(j)
	out := j.out[:part.out]
	if r.pos.Rows == 0 && r.Plan.format == JSON {
		out = bytes.TrimPrefix(out, []byte{','}) // of the first object of an array
	}
	if j.open && !r.pos.Whole.Known {
		r.pos.Whole = Mark{true, r.pos.Input, r.pos.Output, r.pos.Rows, r.pos.Failed, r.pos.Unknown}
	}
	if part.rows > 0 && len(r.head) > 0 {
		out = append(r.head, out...)
		r.head = nil
	}
	if err := r.write(out); err != nil {
		return err
	}
	if r.Plan.summary != nil {
		for i := range j.lookups[:part.rows*r.Layout.answers()] {
			r.Plan.summary.add(j.answer(&j.lookups[i]))
		}
	}
	r.pos.Input = j.at[part.in]
	r.pos.Rows += int64(part.rows)
	r.pos.Failed += int64(part.failed)
	r.pos.Unknown += int64(part.unknown)
	r.Counts.Errors.Add(int64(part.errors))
	r.Counts.Rows.Store(r.pos.Rows)
	r.Counts.Failed.Store(r.pos.Failed)
	r.Counts.Input.Store(r.pos.Input)
	if r.Checkpoint != nil && time.Since(r.saved) >= checkpointEvery {
		if err := r.Checkpoint(r.pos); err != nil {
			return err
		}
		r.saved = time.Now()
	}
	if tooMany {
		return ErrTooManyErrors
	}
	return nil
}
