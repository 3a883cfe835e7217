package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/cmd/gatehouse/bulk"
)

type userImport struct {
	remoteFlags
	File      string `name:"file" short:"f" default:"-" placeholder:"FILE" help:"File with a JSON object a line, or - for stdin; gzip and zstd are decompressed."`
	Resume    string `name:"resume" placeholder:"STATE" help:"Keep the position in this file. After an interruption, the same command goes on from there."`
	DryRun    bool   `name:"dry-run" help:"Create nobody; say which lines would be refused."`
	MaxErrors int64  `name:"max-errors" default:"-1" placeholder:"N" help:"Stop when more than N lines are refused (default: never)."`
}

// Help is shown by gatehouse user import --help.
func (*userImport) Help() string {
	return "Creates a user for each line, such as\n\n" +
		`    {"name":"Ada","email":"ada@example.com","email_verified":true,"password_hash":"$2y$10$…"}` + "\n\n" +
		"Lines that are refused are named by their number with the reason, and the others are created. Nobody " +
		"gets a message. docs/migrating.md has all members, and how other programs' exports become such lines.\n\n" +
		"Exit codes: 0 all lines are imported, 1 the command could not run or was interrupted, 2 wrong usage, " +
		"3 some lines were refused.\n\n" +
		"Example:\n\n    gatehouse user export --demo ./gatehouse-demo | gatehouse user import --demo ./gatehouse-demo --dry-run || [ $? = 3 ]\n" +
		"    gatehouse user import --file users.ndjson --resume import.state"
}

// Limits on imports.
const (
	// maxPart is the longest part of an import in bytes, as the server takes it.
	maxPart        = 60_000
	maxPartLines   = 500
	lineOverhead   = 40 // bytes of a line's number in a part
	importPatience = 2 * time.Minute
)

// Run imports the users.
func (c *userImport) Run(p *program) (err error) {
	if c.DryRun && c.Resume != "" {
		return usagef("--dry-run changes nothing, so there is nothing to --resume")
	}
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	file := p.stdin
	if c.File != "-" {
		opened, err := os.Open(c.File)
		if err != nil {
			return usagef("--file: %v", err)
		}
		defer opened.Close() // only read
		file = opened
	} else if isTerminal(p.stdin) {
		return usagef("--file: must be given, or users on stdin")
	}
	input, err := bulk.NewInput(file)
	if err != nil {
		return usagef("--file: %v", err)
	}
	job := &importJob{userImport: c, remote: r, lines: newLineReader(input), began: time.Now()}
	if c.DryRun {
		job.seen = map[uint64]struct{}{}
	}
	job.state.Import = uuid.NewString()
	if c.Resume != "" {
		if job.file, err = openImportState(c.Resume, &job.state); err != nil {
			return usagef("--resume: %v", err)
		}
		defer func() { err = errors.Join(err, job.file.Close()) }()
	}
	return job.run()
}

// importState is how far an import is. As a file it is replaced in one write.
type importState struct {
	Import  string `json:"import"`
	Line    int64  `json:"line"`  // the last one that is done
	Input   string `json:"input"` // SHA-256 of the lines that are done
	Created int64  `json:"created"`
	Refused int64  `json:"refused"`
	Lost    int64  `json:"factors_lost,omitempty"`
	Done    bool   `json:"done"`
}

// stateSize is the size of the file with an importState: one sector of a disk.
const stateSize = 512

// openImportState opens and locks the file, and reads the state from it unless it is empty.
func openImportState(path string, s *importState) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, stateSize+1))
	if err == nil && len(text) > 0 {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if d.Decode(s) != nil || uuid.Validate(s.Import) != nil || len(text) != stateSize {
			err = fmt.Errorf("%s is not a state of this command", path)
		}
	}
	if err == nil {
		err = bulk.Lock(f, "state")
	}
	if err == nil && len(text) == 0 { // before the first part is sent under this name
		err = saveImportState(f, s)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func saveImportState(f *os.File, s *importState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	padded := append(append(text, bytes.Repeat([]byte{' '}, stateSize-1-len(text))...), '\n')
	if _, err := f.WriteAt(padded, 0); err != nil {
		return err
	}
	return f.Sync()
}

// importJob is an import whose files are open.
type importJob struct {
	*userImport
	*remote
	lines *lineReader
	state importState
	file  *os.File // of the state; nil = none
	began time.Time
	from  int64 // the last line that an earlier command has done
	sent  bool  // the server has done a part
	seen  map[uint64]struct{}
}

func (j *importJob) run() error {
	if err := j.skip(); err != nil {
		return err
	}
	if j.state.Done {
		return j.report(nil, "already done: ")
	}
	err := j.importAll()
	if err == nil {
		j.state.Done = true
		err = j.save()
	}
	if err != nil && !j.sent {
		return err
	}
	return j.report(err, "")
}

// skip goes behind the lines that are done.
func (j *importJob) skip() error {
	j.from = j.state.Line
	for j.lines.number < j.state.Line {
		if _, err := j.lines.next(); err != nil {
			return usagef("--resume: the input ends before line %d, up to which it was imported", j.state.Line)
		}
	}
	if j.state.Line > 0 && j.lines.digest() != j.state.Input {
		return usagef("--resume: the lines up to %d, which are imported, have changed; to begin again, "+
			"remove the state", j.state.Line)
	}
	return nil
}

// importAll imports all lines from the reader's place on.
func (j *importJob) importAll() error {
	for {
		part, err := j.readPart()
		if err != nil {
			return err
		}
		if part.lines == nil && len(part.refused) == 0 && part.last == j.state.Line {
			return nil
		}
		if err := j.send(part); err != nil {
			return err
		}
		j.state.Line, j.state.Input = part.last, part.digest
		if err := j.save(); err != nil {
			return err
		}
		j.progress()
		if j.MaxErrors >= 0 && j.state.Refused > j.MaxErrors {
			return errTooManyRefused
		}
	}
}

var errTooManyRefused = errors.New("more lines were refused than --max-errors allows")

func (j *importJob) save() error {
	if j.file == nil {
		return nil
	}
	return saveImportState(j.file, &j.state)
}

// part is what is imported at once.
type part struct {
	lines   []partLine
	refused []account.RefusedLine // that no server needs to see
	last    int64                 // line
	digest  string                // of all lines up to it
}

// partLine is a line as the server takes it.
type partLine struct {
	number int64
	text   []byte
}

// notJSON says what is wrong with a line that is no JSON object.
const notJSON = "must be one JSON object in UTF-8"

// readPart reads the lines of the next part. A part without any is the end.
func (j *importJob) readPart() (*part, error) {
	p := &part{last: j.state.Line, digest: j.state.Input}
	for size := 0; len(p.lines) < maxPartLines && len(p.refused) < maxPartLines; {
		text, err := j.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return p, nil
		case errors.Is(err, errTooLong):
		case err != nil:
			return nil, fmt.Errorf("read the input after line %d: %w", j.lines.number, err)
		}
		isObject := utf8.Valid(text) && bytes.HasPrefix(text, []byte{'{'}) && json.Valid(text)
		if j.lines.number == 1 && err == nil && len(text) > 0 && !isObject {
			return nil, usagef("--file: line 1 is no JSON object. The file must have one a line: jq -c . " +
				"writes JSON so, and docs/migrating.md has CSV and others")
		}
		switch {
		case err == nil && len(text) == 0: // an empty line
		case err != nil:
			p.refuse(j.lines.number, err.Error())
		case !isObject:
			p.refuse(j.lines.number, notJSON)
		case size > 0 && size+len(text)+lineOverhead > maxPart:
			j.lines.unread()
			return p, nil
		default:
			size += len(text) + lineOverhead
			p.lines = append(p.lines, partLine{j.lines.number, bytes.Clone(text)})
		}
		p.last, p.digest = j.lines.number, j.lines.digest()
	}
	return p, nil
}

func (p *part) refuse(line int64, message string) {
	p.refused = append(p.refused, account.RefusedLine{Line: line,
		FieldError: account.FieldError{Field: "line", Message: message}})
}

// send has the server import a part, and notes the result.
func (j *importJob) send(p *part) error {
	var result struct {
		Created int64
		Refused []account.RefusedLine
		Lost    int64 `json:"factors_lost"`
	}
	if len(p.lines) > 0 {
		response, err := j.call(p.body(j.state.Import, j.DryRun))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(response, &result); err != nil {
			return fmt.Errorf("read response: %w", err)
		}
	}
	j.sent = true
	if j.DryRun {
		repeated := j.repeated(p, result.Refused)
		result.Created -= int64(len(repeated))
		result.Refused = append(result.Refused, repeated...)
	}
	refused := append(p.refused, result.Refused...)
	j.state.Created += result.Created
	j.state.Refused += int64(len(refused))
	j.state.Lost += result.Lost
	j.name(refused)
	return nil
}

// body returns the request for a part.
func (p *part) body(id string, dry bool) json.RawMessage {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"import":%q,"dry_run":%t,"users":[`, id, dry)
	for i, l := range p.lines {
		fmt.Fprintf(&b, `%s{"line":%d,"user":%s}`, map[bool]string{true: ","}[i > 0], l.number, l.text)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// call sends a part. It tries again when the server is away for a while: a part that is sent again is
// not done again. The first request must reach the server.
func (j *importJob) call(body json.RawMessage) (json.RawMessage, error) {
	began := time.Now()
	for wait := time.Second; ; wait = min(2*wait, 15*time.Second) {
		response, err := j.remote.call(http.MethodPost, pathUsers+"/import", body)
		if err == nil || !j.sent || !isTemporary(err) || j.p.ctx.Err() != nil ||
			time.Since(began) > importPatience {
			return response, err
		}
		j.clear()
		fmt.Fprintf(j.p.stderr, "gatehouse: %s; trying again\n", oneLine(printable(err.Error())))
		select {
		case <-j.p.ctx.Done():
			return nil, j.p.ctx.Err()
		case <-time.After(wait):
		}
	}
}

// repeated returns the lines of a dry run that repeat a value which must be unique. Nobody was created,
// so the server cannot know. It takes about 40 bytes of memory a value.
func (j *importJob) repeated(p *part, refused []account.RefusedLine) (all []account.RefusedLine) {
	wrong := map[int64]bool{}
	for _, r := range refused {
		wrong[r.Line] = true
	}
	for _, l := range p.lines {
		var u struct {
			ID       int64  `json:"id"`
			Service  string `json:"service_id"`
			Email    string `json:"email"`
			Phone    string `json:"phone_number"`
			Username string `json:"username"`
		}
		if wrong[l.number] || json.Unmarshal(l.text, &u) != nil {
			continue
		}
		phone, err := account.ParsePhone(u.Phone)
		if err != nil {
			phone = ""
		}
		id := strings.TrimPrefix(strconv.FormatInt(u.ID, 10), "0")
		for _, v := range [][2]string{{"id", id}, {"service_id", strings.ToLower(u.Service)},
			{"email", account.Fold(strings.TrimSpace(u.Email))}, {"phone_number", account.PhoneKey(phone)},
			{"username", account.Fold(strings.TrimSpace(u.Username))}} {
			sum := maphash.String(importSeed, v[0]+" "+v[1])
			if _, there := j.seen[sum]; there && v[1] != "" {
				all = append(all, account.RefusedLine{Line: l.number,
					FieldError: account.FieldError{Field: v[0], Message: "is that of an earlier line"}})
				break
			}
			j.seen[sum] = struct{}{}
		}
	}
	return all
}

var importSeed = maphash.MakeSeed()

// name prints the lines that are refused.
func (j *importJob) name(refused []account.RefusedLine) {
	if len(refused) > 0 {
		j.clear()
	}
	for _, r := range refused {
		what := r.FieldError.Error()
		if r.Field == "line" {
			what = r.Message
		}
		fmt.Fprintf(j.p.stderr, "line %d: %s\n", r.Line, printable(what))
	}
}

// progress shows on a terminal how far the import is.
func (j *importJob) progress() {
	if !isTerminal(j.p.stderr) {
		return
	}
	rate := float64(j.state.Line-j.from) / time.Since(j.began).Seconds()
	text := fmt.Sprintf("%d lines, %.0f/s, %d refused", j.state.Line, rate, j.state.Refused)
	fmt.Fprintf(j.p.stderr, "\r\x1b[K%s", fitted(text, columns(j.p.stderr)-1))
}

// clear removes the progress from a terminal.
func (j *importJob) clear() {
	if isTerminal(j.p.stderr) {
		fmt.Fprint(j.p.stderr, "\r\x1b[K")
	}
}

// report prints what was done and returns the error that has its exit code.
func (j *importJob) report(err error, note string) error {
	j.clear()
	s := j.state
	created := "created"
	if j.DryRun {
		created = "would be created"
	}
	if j.JSON {
		text, _ := json.Marshal(map[string]any{"lines": s.Line, "created": s.Created, "refused": s.Refused,
			"factors_lost": s.Lost, "dry_run": j.DryRun, "done": s.Done}) // numbers only
		if printed := printJSON(j.p.stdout, text); err == nil {
			err = printed
		}
	} else {
		took := time.Since(j.began).Round(100 * time.Millisecond)
		fmt.Fprintf(j.p.stdout, "%s%d lines: %d %s, %d refused, in %s\n", note, s.Line, s.Created, created,
			s.Refused, took)
		if s.Lost > 0 {
			fmt.Fprintf(j.p.stdout, "%d second factors are lost: they were sealed under another key file\n",
				s.Lost)
		}
	}
	switch {
	case errors.Is(err, errTooManyRefused):
		fmt.Fprintf(j.p.stderr, "gatehouse: %v\n", err)
		return &exitError{exitSomeFailed}
	case errors.Is(err, context.Canceled) && j.p.ctx.Err() != nil && j.file != nil:
		return errors.New("interrupted; the same command goes on from here")
	case errors.Is(err, context.Canceled) && j.p.ctx.Err() != nil:
		return errors.New("interrupted")
	case err == nil && s.Refused > 0:
		return &exitError{exitSomeFailed}
	}
	return err
}

// lineReader reads lines without their ends.
type lineReader struct {
	in     *bufio.Reader
	sum    hash.Hash // of all lines
	number int64     // of the last line
	line   []byte    // the last line
	again  bool      // next returns it again
}

// errTooLong is the error of a line that no part has room for.
var errTooLong = fmt.Errorf("is longer than %d bytes", maxPart-lineOverhead)

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 256<<10), sum: sha256.New()}
}

func (r *lineReader) digest() string { return hex.EncodeToString(r.sum.Sum(nil)) }

// unread lets next return the last line again.
func (r *lineReader) unread() { r.again = true }

// next returns the next line until it is called again, without space around it. The error is
// errTooLong, or io.EOF after the last line.
func (r *lineReader) next() (line []byte, err error) {
	if r.again {
		r.again = false
		return r.line, nil
	}
	r.line = r.line[:0]
	tooLong := false
	for {
		text, err := r.in.ReadSlice('\n')
		r.sum.Write(text)
		if !tooLong {
			r.line = append(r.line, text...)
		}
		tooLong = tooLong || len(r.line) > maxPart-lineOverhead
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(r.line) == 0:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		}
		break
	}
	r.number++
	r.line = bytes.TrimSpace(r.line)
	if tooLong {
		r.line = nil
		return nil, errTooLong
	}
	return r.line, nil
}
