package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"gatehouse/cmd/gatehouse/bulk"
)

// outageNotice returns a function that says that a server has no answer: after 5 seconds without a
// success, and then once a minute.
func outageNotice(stderr io.Writer) func(without time.Duration, cause error) {
	var mu sync.Mutex
	var told time.Time
	return func(without time.Duration, cause error) {
		mu.Lock()
		defer mu.Unlock()
		if without < 5*time.Second || time.Since(told) < time.Minute {
			return
		}
		told = time.Now()
		line := fmt.Sprintf("gatehouse: no answer for %s, trying again: %v\n",
			without.Round(time.Second), cause)
		if isTerminal(stderr) {
			line = "\r\x1b[K" + line // clears the progress
		}
		_, _ = io.WriteString(stderr, line) // the lookup goes on
	}
}

// showProgress shows how far a lookup is, on a terminal only, until stop is called.
func showProgress(p *program, config *bulk.Config) (stop func()) {
	if !isTerminal(p.stderr) || config.Input.Size() < 0 {
		return func() {}
	}
	bar := progressbar.NewOptions64(config.Input.Size(),
		progressbar.OptionSetWriter(p.stderr), progressbar.OptionShowBytes(true),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(20),
		progressbar.OptionSetPredictTime(true))
	began, before := time.Now(), config.From.Rows
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
			rows, asked := config.Counts.Rows.Load(), config.Counts.Asked.Load()
			bar.Describe(fmt.Sprintf("%d rows, %.0f/s, %s repeated, %d failed", rows,
				float64(rows-before)/time.Since(began).Seconds(), percent(rows-before-asked, rows-before),
				config.Counts.Failed.Load()))
			_ = bar.Set64(config.Input.Read())
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

func percent(part, all int64) string {
	return fmt.Sprintf("%.0f %%", 100*float64(max(0, part))/float64(max(1, all)))
}
