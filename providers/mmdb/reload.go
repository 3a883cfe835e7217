package mmdb

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// watched is a file's path with what was seen there. It belongs to the goroutine that runs watch.
type watched struct {
	path    string
	taken   os.FileInfo // the state that was read, whether it could be used or not
	seen    os.FileInfo // the state at the last check, when it was another
	missing bool        // whether it was said that the file is gone
}

// open reads the file and notes its state from before, so that a change meanwhile is seen at the next check. What is
// no regular file is refused: a pipe would be waited for without end.
func (w *watched) open() (*file, error) {
	info, err := os.Stat(w.path)
	if err != nil {
		return nil, err
	}
	w.taken, w.seen = info, nil
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", w.path)
	}
	return readFile(w.path)
}

// changed reports whether the file is another than the one that was taken, and has been so since the last check:
// one that is still being written is left alone.
func (w *watched) changed() (bool, error) {
	info, err := os.Stat(w.path)
	if err != nil {
		w.seen = nil
		return false, err
	}
	if same(info, w.taken) {
		w.seen = nil
		return false, nil
	}
	settled := w.seen != nil && same(info, w.seen)
	w.seen = info
	return settled, nil
}

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// watch checks the files until ctx ends.
func (p *Provider) watch(ctx context.Context, interval time.Duration, files []*watched) {
	defer close(p.stopped)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for i, w := range files {
				p.check(i, w)
			}
		}
	}
}

// check takes the i-th file in again when it has changed. Look-ups under way keep the one that they have; a file
// that cannot be used leaves the old one in place.
func (p *Provider) check(i int, w *watched) {
	changed, err := w.changed()
	if err != nil {
		if !w.missing {
			p.logger.Warn("database file is gone, the old data stay in use", "file", w.path, "error", err)
		}
		w.missing = true
		return
	}
	w.missing = false
	if !changed {
		return
	}
	f, err := w.open()
	if err != nil {
		p.logger.Warn("database file cannot be used, the old data stay in use", "file", w.path, "error", err)
		return
	}
	files := slices.Clone(*p.files.Load())
	files[i] = f
	p.files.Store(&files)
	p.logger.Info("database file read again", "file", w.path,
		"type", f.reader.Metadata.DatabaseType, "built", f.reader.Metadata.BuildTime().UTC())
}
