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
	"slices"
	"strings"
	"syscall"
	"time"
)

// State is the file that lets a command go on where an earlier one stopped. It is replaced as a
// whole, after the output that it counts has reached the disk. No other command can use it until it
// is closed.
type State struct {
	path   string
	lock   *os.File // the file at path, locked
	output *os.File
	file   stateFile
	input  *Input     // of the last Begin
	at     *inputFile // likewise
}

type stateFile struct {
	Version int               `json:"version"`
	Command map[string]string `json:"command"` // options that change the output
	Data    string            `json:"data"`    // what the answers come from
	Header  string            `json:"header"`  // of the output
	Output  int64             `json:"output"`  // bytes
	Rows    int64             `json:"rows"`
	Failed  int64             `json:"failed"`
	Unknown int64             `json:"unknown"`
	End     string            `json:"end"`   // sum of the end of the output
	Whole   *wholeFile        `json:"whole"` // of an output that is done; nil = it is not
	Inputs  []*inputFile      `json:"inputs"`
}

// wholeFile is an output with what comes after the last row.
type wholeFile struct {
	Size int64  `json:"size"`
	End  string `json:"end"`
}

// inputFile is how far the rows of one input are written.
type inputFile struct {
	Name     string    `json:"name"`
	Head     int64     `json:"head"` // bytes of the beginning that Sum is of
	Sum      string    `json:"sum"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Position Position  `json:"position"`
	End      string    `json:"end"`    // sum of the bytes before the position, unless compressed
	Output   int64     `json:"output"` // bytes of the output after its last row
	Done     bool      `json:"done"`
}

const (
	stateVersion = 2
	sumSize      = 64 << 10 // bytes of a file that a sum is of
)

// Lock locks a regular file until it is closed. It returns an error if another command has the lock.
func Lock(f *os.File, what string) error {
	switch err := lock(f); {
	case err == nil, errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.ENOLCK):
		return nil // a file system without locks
	case errors.Is(err, errLocked):
		return fmt.Errorf("another command writes to the %s %s: wait for its end, or name another file",
			what, f.Name())
	default:
		return fmt.Errorf("lock the %s %s: %w", what, f.Name(), err)
	}
}

// OpenState reads the state at path, or begins a new one. It returns an error if the state belongs
// to another command, or if the output is not the one that it counts. The output must be a regular
// file that is locked. data says what the answers come from; anyData accepts other data than before.
func OpenState(path string, command map[string]string, data string, anyData bool,
	output *os.File) (*State, error) {
	s := &State{path: path, output: output}
	if err := s.checkOther(output); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	if err := s.read(command, data, anyData); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open opens and locks the file at the path, which another command may replace meanwhile.
func (s *State) open() error {
	for {
		f, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		if err := Lock(f, "state"); err != nil {
			return errors.Join(err, f.Close())
		}
		mine, err := f.Stat()
		is, gone := os.Stat(s.path)
		if err == nil && gone == nil && os.SameFile(mine, is) {
			s.lock = f
			return nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}

// Close lets another command use the state.
func (s *State) Close() error { return s.lock.Close() }

func (s *State) read(command map[string]string, data string, anyData bool) error {
	text, err := io.ReadAll(s.lock)
	switch {
	case err != nil:
		return err
	case len(text) == 0:
		s.file = stateFile{Version: stateVersion, Command: command, Data: data}
		if s.file.Output, err = s.output.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		s.file.End, err = s.sum(s.output, s.file.Output)
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s.file); err != nil || s.file.Version != stateVersion {
		return fmt.Errorf("%s is not a state of this command", s.path)
	}
	for _, name := range slices.Sorted(maps.Keys(command)) {
		if was, is := s.file.Command[name], command[name]; was != is {
			return fmt.Errorf("%s belongs to another command: %s was %q and is %q", s.path, name, was, is)
		}
	}
	if s.file.Data != data && !anyData {
		return fmt.Errorf("%s has rows from other data: it was %s and is %s; --allow-new-data goes on"+
			" with the new data, and to begin again, remove the state and the output", s.path,
			s.file.Data, data)
	}
	s.file.Data = data
	return s.checkOutput()
}

// checkOutput returns an error if the output does not have what the state counts.
func (s *State) checkOutput() error {
	info, err := s.output.Stat()
	if err != nil {
		return err
	}
	const again = "; to begin again, remove both"
	if info.Size() < s.file.Output {
		return fmt.Errorf("the output has %d bytes, but %s counts %d: use --output, or >> instead of >"+
			again, info.Size(), s.path, s.file.Output)
	}
	if end, err := s.sum(s.output, s.file.Output); err != nil || end != s.file.End {
		return errors.Join(err, fmt.Errorf("the output was changed: its rows do not end as %s says"+again,
			s.path))
	}
	if whole := s.file.Whole; whole != nil {
		if info.Size() != whole.Size {
			return fmt.Errorf("the output was changed: it has %d bytes, but had %d when it was done"+again,
				info.Size(), whole.Size)
		}
		if end, err := s.sum(s.output, whole.Size); err != nil || end != whole.End {
			return errors.Join(err, fmt.Errorf("the output was changed: it does not end as %s says"+again,
				s.path))
		}
	}
	return nil
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

// CheckNames returns an error if rows of an input are written that is not among names. One that is
// done may have been removed, and any one compressed.
func (s *State) CheckNames(names []string) error {
	for _, f := range s.file.Inputs {
		if !slices.Contains(names, f.Name) && !(f.isGone() && (f.Done || slices.ContainsFunc(names, f.isPackedAs))) {
			return fmt.Errorf("%s belongs to another command: it has rows of %s, which --file does not name",
				s.path, f.Name)
		}
	}
	return nil
}

// isGone reports whether the file is not there any more.
func (f *inputFile) isGone() bool {
	_, err := os.Stat(f.Name)
	return errors.Is(err, fs.ErrNotExist)
}

// isPackedAs reports whether a file has the name that a program gives to f when it compresses it.
func (f *inputFile) isPackedAs(name string) bool {
	return slices.Contains([]string{".gz", ".zst"}, strings.TrimPrefix(name, f.Name))
}

// unpacked returns the input that was compressed into a file since its rows were written, with its
// position in this file. It returns nil if there is none.
func (s *State) unpacked(name string, in *Input) (*inputFile, error) {
	i := slices.IndexFunc(s.file.Inputs, func(f *inputFile) bool { return f.isPackedAs(name) && f.isGone() })
	if i < 0 || in.plain {
		return nil, nil
	}
	f := s.file.Inputs[i]
	head, err := in.sumOfText(0, f.Head)
	end := ""
	if err == nil {
		end, err = in.sumOfText(max(0, f.Position.Input-sumSize), f.Position.Input)
	}
	if errors.Is(err, io.EOF) || err == nil && (head != f.Sum || end != f.End) {
		return nil, fmt.Errorf("%s has rows of %s, which is gone, and %s has others: give that another name",
			s.path, f.Name, name)
	}
	if err == nil && f.Position.Whole.Known {
		return nil, fmt.Errorf("%s was compressed before its last row had a line end: give it decompressed, as %s",
			name, f.Name)
	}
	if err == nil {
		err = in.seek(in.bom)
	}
	if err != nil {
		return nil, err
	}
	f.Name, f.Done, f.End = name, false, "" // rows may have been added before
	f.Sum, f.Head, err = in.sum()
	return f, err
}

// Begin returns from where to read an input: it goes on with this input. done says that all of its
// rows are written. The output is cut back to the rows that the state counts unless done.
func (s *State) Begin(name string, in *Input) (from Position, done bool, err error) {
	if err := s.checkOther(in.file); err != nil {
		return Position{}, false, err
	}
	s.input, s.at = in, nil
	for _, f := range s.file.Inputs {
		if f.Name == name {
			s.at = f
		}
	}
	if s.at != nil {
		err = s.resume()
	} else if s.at, err = s.unpacked(name, in); err == nil && s.at == nil {
		s.at = &inputFile{Name: name}
		s.at.Sum, s.at.Head, err = in.sum()
		s.file.Inputs = append(s.file.Inputs, s.at)
	}
	if err != nil {
		return Position{}, false, err
	}
	s.at.Size, s.at.Modified = in.opened.Size(), in.opened.ModTime()
	if s.at.Done && s.Done() {
		return s.Position(), true, nil
	}
	s.at.Position = Position{Input: s.at.Position.Input, Output: s.file.Output, Rows: s.file.Rows,
		Failed: s.file.Failed, Unknown: s.file.Unknown, Whole: s.at.Position.Whole}
	s.file.Whole = nil
	if in.plain {
		if s.at.End, err = s.sum(in.file, s.at.Position.Input); err != nil {
			return Position{}, false, err
		}
	}
	if s.file.End, err = s.sum(s.output, s.file.Output); err != nil {
		return Position{}, false, err
	}
	if err := s.write(); err != nil { // before any output
		return Position{}, false, err
	}
	if err := s.output.Truncate(s.file.Output); err != nil {
		return Position{}, false, err
	}
	_, err = s.output.Seek(0, io.SeekEnd)
	return s.at.Position, s.at.Done, err
}

// resume checks that the input is the one of the earlier command, and finds where to go on.
func (s *State) resume() error {
	in, at := s.input, s.at
	size, modified := in.opened.Size(), in.opened.ModTime()
	again := "; to begin again, remove the state and the output"
	sum, _, err := in.sumOf(at.Head)
	if err != nil {
		return err
	}
	if sum != at.Sum || size < at.Position.Input && in.plain {
		return fmt.Errorf("%s belongs to another input: the file %s has changed%s", s.path, at.Name, again)
	}
	if !in.plain && size != at.Size {
		return fmt.Errorf("%s had %d bytes and has %d: what was added to a compressed file cannot be told"+
			" from what was there; put the new rows into a file of their own and name it with another"+
			" --file, or give the file decompressed%s", at.Name, at.Size, size, again)
	}
	// The sums prove that a short file is the same.
	covered := at.Head
	if in.plain && at.Position.Input-sumSize <= at.Head {
		covered = max(covered, at.Position.Input)
	}
	if size <= at.Size && size > covered && !modified.Equal(at.Modified) {
		return fmt.Errorf("%s belongs to another input: %s was changed at %s without growing%s", s.path,
			at.Name, modified.Format(time.DateTime), again)
	}
	if in.plain && at.Position.Input > 0 {
		if end, err := s.sum(in.file, at.Position.Input); err != nil || end != at.End {
			return errors.Join(err, fmt.Errorf("%s belongs to another input: rows of %s that are done have"+
				" changed%s", s.path, at.Name, again))
		}
	}
	if !in.hasGrown(at.Position.Input) {
		return nil
	}
	at.Done = false
	whole := at.Position.Whole
	at.Position.Whole = Mark{}
	if !whole.Known {
		return nil
	}
	if at.Output == s.file.Output {
		at.Position.Input = whole.Input
		s.file.Output, s.file.Rows = whole.Output, whole.Rows
		s.file.Failed, s.file.Unknown = whole.Failed, whole.Unknown
		return nil
	}
	if ended, err := in.endsRow(at.Position.Input); err != nil || !ended {
		return errors.Join(err, fmt.Errorf("the last row of %s had no line end and has changed, but rows of"+
			" other files come after it%s", at.Name, again))
	}
	return nil
}

// hasGrown reports whether rows were added after an offset. It does not know of compressed files.
func (in *Input) hasGrown(offset int64) bool { return in.plain && in.Size() > offset }

// endsRow reports whether a line end comes after an offset.
func (in *Input) endsRow(offset int64) (bool, error) {
	var next [1]byte
	_, err := in.file.ReadAt(next[:], offset)
	return next[0] == '\n' || next[0] == '\r', err
}

// sum returns the SHA-256 of the first bytes of the file, and their number.
func (in *Input) sum() (sum string, n int64, err error) { return in.sumOf(sumSize) }

func (in *Input) sumOf(limit int64) (sum string, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(h, io.NewSectionReader(in.file, 0, limit))
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// sumOfText returns the SHA-256 of a part of the decompressed input, and io.EOF if that is shorter.
func (in *Input) sumOfText(from, to int64) (string, error) {
	h := sha256.New()
	h.Write(magicUTF8[min(from, in.bom):min(to, in.bom)])
	from = max(from, in.bom)
	if err := in.seek(from); err != nil {
		return "", err
	}
	_, err := io.CopyN(h, in, max(0, to-from))
	return hex.EncodeToString(h.Sum(nil)), err
}

// sum returns the SHA-256 of the last bytes of a file before an offset. The file may be open for
// writing only.
func (s *State) sum(f *os.File, offset int64) (string, error) {
	readable, closeReadable, err := readable(f)
	if err != nil {
		return "", fmt.Errorf("--resume reads the end of %s: %w", f.Name(), err)
	}
	defer closeReadable()
	h := sha256.New()
	from := max(0, offset-sumSize)
	if n, err := io.Copy(h, io.NewSectionReader(readable, from, offset-from)); err != nil || n < offset-from {
		return "", errors.Join(err, fmt.Errorf("%s has become shorter", f.Name()))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Position returns how far the earlier commands have come, without the place in an input.
func (s *State) Position() Position {
	return Position{Output: s.file.Output, Rows: s.file.Rows, Failed: s.file.Failed,
		Unknown: s.file.Unknown}
}

// Header is the header of the output, which all inputs must have; "" = not known yet.
func (s *State) Header() *string { return &s.file.Header }

// Save records a position in the input of Begin once the output up to it is on the disk. done says
// that it has no more rows.
func (s *State) Save(p Position, done bool) (err error) {
	if err := s.output.Sync(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	if p.Input > s.at.Position.Input {
		s.at.Output = p.Output
	}
	s.at.Position, s.at.Done = p, done
	s.file.Output, s.file.Rows, s.file.Failed, s.file.Unknown = p.Output, p.Rows, p.Failed, p.Unknown
	if s.file.End, err = s.sum(s.output, p.Output); err != nil {
		return err
	}
	if s.input.plain {
		if s.at.End, err = s.sum(s.input.file, p.Input); err != nil {
			return err
		}
	}
	return s.write()
}

// Finish records that the output is done, with what comes after the last row.
func (s *State) Finish() error {
	if err := s.output.Sync(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	info, err := s.output.Stat()
	if err != nil {
		return err
	}
	s.file.Whole = &wholeFile{Size: info.Size()}
	if s.file.Whole.End, err = s.sum(s.output, info.Size()); err != nil {
		return err
	}
	return s.write()
}

// Done reports whether the output was done and no row was written since.
func (s *State) Done() bool { return s.file.Whole != nil }

// write replaces the file, and locks the new one before others see it.
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
	if err = errors.Join(err, Lock(f, "state"), f.Sync()); err != nil {
		return errors.Join(err, f.Close())
	}
	return s.replace(f)
}
