package update

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// state is what is known from earlier runs. It has no secrets.
type state struct {
	path string
	lock *os.File

	Files    map[string]fetched     `json:"files"`    // by path
	Requests map[string][]time.Time `json:"requests"` // of the last 24 hours, by publisher
	Held     map[string]time.Time   `json:"held"`     // no request before, by host and port
}

// fetched is what a file was made of.
type fetched struct {
	Address      string `json:"address"` // hash of the URL
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	Checksum     string `json:"checksum,omitempty"` // that the publisher named
	Size         int64  `json:"size"`               // of the database
	Sum          string `json:"sha256"`             // likewise
}

// openState reads the state at a path, and locks it until close.
func openState(path string) (*state, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	locked, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(locked); err != nil {
		return nil, errors.Join(fmt.Errorf("another update uses %s", path), locked.Close())
	}
	s := &state{path: path, lock: locked}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("%s is not a state of updates: remove it to forget what was"+
			" requested: %w", path, err), locked.Close())
	}
	if s.Files == nil {
		s.Files = map[string]fetched{}
	}
	if s.Requests == nil {
		s.Requests = map[string][]time.Time{}
	}
	if s.Held == nil {
		s.Held = map[string]time.Time{}
	}
	return s, nil
}

func (s *state) close() error { return s.lock.Close() }

// save replaces the file.
func (s *state) save() error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temporary := s.path + ".new"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, s.path)
}

// known returns what is known of a file from a URL, if the file is still that one; nil = nothing.
func (s *state) known(path, address string) *fetched {
	f, ok := s.Files[path]
	if !ok || f.Address != hashOf(address) {
		return nil
	}
	size, sum, err := describe(path)
	if err != nil || size != f.Size || sum != f.Sum {
		return nil
	}
	return &f
}

// charge counts a request, or returns a *limit. daily is how many a day are allowed; 0 = any number.
func (s *state) charge(publisher string, daily int, now time.Time) error {
	if daily == 0 {
		return nil
	}
	all := slices.DeleteFunc(s.Requests[publisher], func(at time.Time) bool {
		return now.Sub(at) >= 24*time.Hour || at.After(now)
	})
	if len(all) >= daily {
		return &limit{all[len(all)-daily].Add(24 * time.Hour).UTC()}
	}
	s.Requests[publisher] = append(all, now.UTC())
	return nil
}

// held returns a *limit if a host wants no request at a time.
func (s *state) held(host string, now time.Time) error {
	until := s.Held[host]
	if now.Before(until) {
		return &limit{until}
	}
	delete(s.Held, host)
	return nil
}

// hold lets no request be sent to a host before a time.
func (s *state) hold(host string, until time.Time) { s.Held[host] = until.UTC() }

// hashOf returns a text that tells URLs apart and does not have their secrets.
func hashOf(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:8])
}
