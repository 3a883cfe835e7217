package main

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"gatehouse/cmd/gatehouse/bulk"
)

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
