package mmdb

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// watched is a watched file. Only the goroutine that runs watch uses it.
type watched struct {
	path    string
	layout  *layout
	taken   os.FileInfo // state of the file when it was last read, usable or not
	seen    os.FileInfo // state at the last check, if it differs from taken
	missing bool        // it was logged that the file is missing
}

// open reads the file. It notes the file's state before reading, so that the next check finds a
// change during the read. It rejects a file that is not regular: reading a pipe could block
// forever.
func (w *watched) open() (*file, error) {
	info, err := os.Stat(w.path)
	if err != nil {
		return nil, err
	}
	w.taken, w.seen = info, nil
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", w.path)
	}
	return readFile(w.path, w.layout)
}

// changed reports whether the file differs from the one that was read, and is the same as at the
// last check: a file that is still being written must not be read.
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

// check reloads the i-th file if it has changed. Lookups in progress continue with the old file. If
// the new file cannot be used, the old one stays in use.
func (p *Provider) check(i int, w *watched) {
	changed, err := w.changed()
	if err != nil {
		if !w.missing {
			p.logger.Warn("database file is missing, the old data stays in use", "file",
				w.path, "error", err)
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
		p.logger.Warn("database file cannot be used, the old data stays in use", "file",
			w.path, "error", err)
		return
	}
	files := slices.Clone(p.files.Load().files)
	files[i] = f
	p.files.Store(newFileSet(files, p.rendered))
	p.logger.Info("database file reloaded", "file", w.path,
		"type", f.reader.Metadata.DatabaseType, "built", f.reader.Metadata.BuildTime().UTC())
}
