package bulk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// State is the file that lets a command go on where an earlier one stopped. It is replaced as a
// whole, after the output that it counts has reached the disk.
type State struct {
	path   string
	output *os.File
	file   stateFile
}

type stateFile struct {
	Version  int               `json:"version"`
	Command  map[string]string `json:"command"` // options that change the output
	Head     int64             `json:"head"`    // bytes of the input that Sum is of
	Sum      string            `json:"sum"`     // SHA-256
	Position Position          `json:"position"`
	Done     bool              `json:"done"`
}

const (
	stateVersion = 1
	headSize     = 64 << 10
)

// OpenState reads the state at path, or begins a new one. It returns an error if the state belongs
// to another command or input, or if another command writes to the output. Both files must be regular
// files. The output is cut back to what the state counts, and is at its end.
func OpenState(path string, command map[string]string, in *Input, output *os.File) (*State, error) {
	s := &State{path: path, output: output}
	err := syscall.Flock(int(output.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // until it is closed
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.New("another command writes to the output")
	}
	for _, f := range []*os.File{in.file, output} {
		if err := s.checkOther(f); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, s.begin(command, in)
	case err != nil:
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s.file); err != nil || s.file.Version != stateVersion {
		return nil, fmt.Errorf("%s is not a state of this command", path)
	}
	return s, s.resume(command, in)
}

// checkOther returns an error if the state would replace a file that is something else.
func (s *State) checkOther(other *os.File) error {
	is, err := other.Stat()
	if err != nil {
		return err
	}
	for _, path := range []string{s.path, s.temporary()} {
		if info, err := os.Stat(path); err == nil && os.SameFile(is, info) {
			return fmt.Errorf("%s is the input or the output: name another file", path)
		}
	}
	return nil
}

// temporary returns the path of the file that takes the place of the state.
func (s *State) temporary() string { return s.path + ".new" }

// begin writes the first state, before any output.
func (s *State) begin(command map[string]string, in *Input) (err error) {
	s.file = stateFile{Version: stateVersion, Command: command}
	if s.file.Sum, s.file.Head, err = in.sum(headSize); err != nil {
		return err
	}
	if s.file.Position.Output, err = s.output.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	return s.write()
}

// resume checks that the command can go on, and cuts the output.
func (s *State) resume(command map[string]string, in *Input) error {
	for _, name := range slices.Sorted(maps.Keys(command)) {
		if was, is := s.file.Command[name], command[name]; was != is {
			return fmt.Errorf("%s belongs to another command: %s was %q and is %q", s.path, name,
				was, is)
		}
	}
	sum, head, err := in.sum(s.file.Head)
	if err != nil {
		return err
	}
	if sum != s.file.Sum || head != s.file.Head || in.plain && in.Size() < s.file.Position.Input {
		return fmt.Errorf("%s belongs to another input: the file has changed", s.path)
	}
	if whole, err := in.endsRow(s.file.Position.Input); err != nil || !whole {
		return errors.Join(err, fmt.Errorf("%s ends inside a row of the input, whose last row had no"+
			" line end and has changed: to begin again, remove the state and the output", s.path))
	}
	size, err := s.output.Seek(0, io.SeekEnd)
	switch {
	case err != nil:
		return err
	case size < s.file.Position.Output:
		return fmt.Errorf("the output has %d bytes, but %s counts %d: use --output, or >> instead of >;"+
			" to begin again, remove both", size, s.path, s.file.Position.Output)
	case s.file.Done && !in.hasGrown(s.file.Position.Input):
		return nil
	}
	s.file.Done = false
	if err := s.output.Truncate(s.file.Position.Output); err != nil {
		return err
	}
	_, err = s.output.Seek(0, io.SeekEnd)
	return err
}

// hasGrown reports whether rows were added after an offset. It does not know of compressed files.
func (in *Input) hasGrown(offset int64) bool { return in.plain && in.Size() > offset }

// endsRow reports whether an offset is after a whole row. The last row may have got its line end
// later. It does not know of compressed files.
func (in *Input) endsRow(offset int64) (bool, error) {
	if offset <= 0 || !in.hasGrown(offset) {
		return true, nil
	}
	var around [2]byte // the last byte before the offset, and the first after it
	_, err := in.file.ReadAt(around[:], offset-1)
	return around[0] == '\n' || around[1] == '\n' || around[1] == '\r', err
}

// sum returns the SHA-256 of the first bytes of the file, and their number: at most limit.
func (in *Input) sum(limit int64) (sum string, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(h, io.NewSectionReader(in.file, 0, limit))
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// Position returns how far the earlier commands have come.
func (s *State) Position() Position { return s.file.Position }

// Done reports whether all rows of the input were written.
func (s *State) Done() bool { return s.file.Done }

// Save records a position once the output up to it is on the disk.
func (s *State) Save(p Position, done bool) error {
	if err := s.output.Sync(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	s.file.Position, s.file.Done = p, done
	return s.write()
}

// write replaces the file.
func (s *State) write() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write state: %w", err)
		}
	}()
	text, err := json.Marshal(s.file)
	if err != nil {
		return err
	}
	if err := os.Remove(s.temporary()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // of a process that was killed
	}
	f, err := os.OpenFile(s.temporary(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(s.temporary(), s.path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(s.path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
