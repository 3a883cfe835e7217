package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"gatehouse/cmd/gatehouse/bulk"
)

// outageNotice returns a function that says that a server has no answer: when all requests have
// failed for 5 seconds, and then once a minute.
func outageNotice(stderr io.Writer) func(failing time.Duration, cause error) {
	var mu sync.Mutex
	var told time.Time
	return func(failing time.Duration, cause error) {
		mu.Lock()
		defer mu.Unlock()
		if failing < 5*time.Second || time.Since(told) < time.Minute {
			return
		}
		told = time.Now()
		line := fmt.Sprintf("gatehouse: no answer for %s, trying again: %v\n",
			failing.Round(time.Second), printable(cause.Error()))
		if isTerminal(stderr) {
			line = "\r\x1b[K" + line // clears the progress
		}
		_, _ = io.WriteString(stderr, line) // the lookup goes on
	}
}

// showProgress shows how far a lookup is, until stop is called.
func showProgress(p *program, config *bulk.Config) (stop func()) {
	width := 20
	if columns(p.stderr) < 80 {
		width = 5
	}
	bar := progressbar.NewOptions64(config.Input.Size(), // -1 = unknown: no bar
		progressbar.OptionSetWriter(p.stderr), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(width), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetSpinnerChangeInterval(0)) // no goroutine of its own
	progress := progress{began: time.Now(), from: config.From, input: config.Input}
	done, ended := make(chan struct{}), make(chan struct{})
	ticker := time.NewTicker(200 * time.Millisecond)
	go func() {
		defer close(ended)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-done:
				_ = bar.Clear() // the terminal is gone
				return
			}
			text, done := progress.describe(time.Now(), config.Counts)
			bar.Describe(fitted(text, columns(p.stderr)-width-len(" 100% || ")-1))
			_ = bar.Set64(done)
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// columns returns the width of a terminal, or 80 if that is not known.
func columns(terminal io.Writer) int {
	if f, ok := terminal.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// fitted returns as many of the figures of text, which commas separate, as fit a width.
func fitted(text string, width int) string {
	for len(text) > max(0, width) {
		text = text[:max(0, strings.LastIndex(text, ", "))]
	}
	return text
}

// progress is what the display of a lookup depends on.
type progress struct {
	began time.Time
	from  bulk.Position
	input *bulk.Input
}

// describe returns the figures of a lookup, with the time left if that is known, and how many bytes
// of the input are done. The bar ends with the last byte, so that one is left out.
func (p *progress) describe(now time.Time, counts *bulk.Counts) (text string, done int64) {
	rows := counts.Rows.Load() - p.from.Rows
	took := now.Sub(p.began)
	text = fmt.Sprintf("%d rows, %.0f/s, %s repeated, %d failed", counts.Rows.Load(),
		float64(rows)/took.Seconds(), percent(rows-counts.Misses.Load(), rows), counts.Failed.Load())
	size, began := p.input.Size(), p.input.Done(p.from.Input)
	done = min(p.input.Done(counts.Input.Load()), size-1)
	if done <= began {
		return text, max(0, done)
	}
	left := time.Duration(float64(took) * float64(size-done) / float64(done-began))
	return text + ", " + left.Round(time.Second).String() + " left", done
}

func percent(part, all int64) string {
	return fmt.Sprintf("%.0f %%", 100*float64(max(0, part))/float64(max(1, all)))
}
