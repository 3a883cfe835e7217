// Package update keeps database files up to date: by the protocol of geoipupdate, and from plain URLs.
//
// A file is replaced only by one that can be read, that is complete, and that is neither smaller nor
// older. No secret is in an error, in the state file or in a request to another host than the one it
// is for.
package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
)

// Result is what became of a file.
type Result struct {
	File    string    // its path
	Outcome Outcome   //
	Err     error     // with Failed and Refused
	Built   time.Time // of the file that is there now; zero = there is none
	Next    time.Time // with Limited: when the publisher may be asked again
}

// Outcome is what became of a file.
type Outcome string

// The outcomes.
const (
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged" // the publisher has no other one
	Limited   Outcome = "limited"   // the publisher allows no request at present
	Refused   Outcome = "refused"   // the new file is smaller or older
	Failed    Outcome = "failed"
)

// Updater updates the files of a Config. Only one at a time uses the state file.
type Updater struct {
	config Config
	client *http.Client
	pause  time.Duration // before the first repetition of a request
	stall  time.Duration // without a byte of a response
}

// New returns an Updater. A response has to begin within a minute, and to go on within a minute
// after each pause.
func New(config Config) *Updater {
	return &Updater{config: config, pause: time.Second, stall: stallTime, client: &http.Client{
		Transport: config.Transport, Timeout: time.Hour,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Run updates each file. With force, also by one that is smaller or older. Its error says that it could
// not begin.
func (u *Updater) Run(ctx context.Context, force bool) (results []Result, err error) {
	state, err := openState(u.config.State)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, state.close()) }()
	for i := range u.config.Sources {
		s := &u.config.Sources[i]
		j := &job{Updater: u, Source: s, state: state, force: force}
		results = append(results, j.result(j.run(ctx)))
		if err := state.save(); err != nil {
			return results, err
		}
	}
	return results, nil
}

// Keep updates the files until ctx ends, for the first time within a minute. Times are random, so that
// many servers do not ask at once. It calls report after each run.
func (u *Updater) Keep(ctx context.Context, report func([]Result, error)) {
	wait := rand.N(min(time.Minute, u.config.Interval))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		results, err := u.Run(ctx, false)
		if ctx.Err() != nil {
			return
		}
		report(results, err)
		wait = u.config.Interval*9/10 + rand.N(u.config.Interval/5)
	}
}

// job is the update of a file.
type job struct {
	*Updater
	*Source
	state *state
	force bool
}

// errUnchanged says that the publisher has no other file.
var errUnchanged = errors.New("unchanged")

// A refusal says why a new file does not replace the one that is there.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason + "; --force takes it nevertheless" }

// A limit says that the publisher allows no request before a time.
type limit struct{ until time.Time }

func (l *limit) Error() string {
	return "the publisher allows no request before " + l.until.UTC().Format(time.RFC3339)
}

// run gets the file, and replaces the one that is there.
func (j *job) run(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(j.File), 0o755); err != nil {
		return err
	}
	if err := j.removeLeft(); err != nil {
		return err
	}
	if j.Edition != "" {
		return j.edition(ctx)
	}
	err := j.download(ctx, time.Now())
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusNotFound && j.hasMonth() {
		now := time.Now().UTC()
		former := time.Date(now.Year(), now.Month(), 0, 0, 0, 0, 0, time.UTC)
		return j.download(ctx, former)
	}
	return err
}

// The temporary files of a job are beside its file, and begin with a dot, its name and one of these.
const (
	downloadPart = ".download-"
	updatePart   = ".update-"
)

// removeLeft removes the temporary files of an update that was killed. No other one is running.
func (j *job) removeLeft() error {
	all, err := os.ReadDir(filepath.Dir(j.File))
	for _, f := range all {
		for _, part := range []string{downloadPart, updatePart} {
			if strings.HasPrefix(f.Name(), "."+filepath.Base(j.File)+part) {
				err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(j.File), f.Name())))
			}
		}
	}
	return err
}

// result describes the end of a job.
func (j *job) result(err error) Result {
	r := Result{File: j.File, Outcome: Updated, Built: built(j.File)}
	var refused *refusal
	var limited *limit
	switch {
	case err == nil:
	case errors.Is(err, errUnchanged):
		r.Outcome = Unchanged
	case errors.As(err, &limited):
		r.Outcome, r.Next = Limited, limited.until
		if r.Built.IsZero() {
			r.Outcome, r.Err = Failed, err
		}
	case errors.As(err, &refused):
		r.Outcome, r.Err = Refused, err
	default:
		r.Outcome, r.Err = Failed, errors.New(j.redact(err.Error()))
	}
	return r
}

// built returns when the database was built; zero = it cannot be read.
func built(path string) time.Time {
	reader, err := maxminddb.Open(path)
	if err != nil {
		return time.Time{}
	}
	defer reader.Close()
	return reader.Metadata.BuildTime().UTC()
}

// download gets a file from its URL at a time, unless the publisher says that it has not changed.
func (j *job) download(ctx context.Context, at time.Time) error {
	address := j.filled(j.URL, at)
	known := j.state.known(j.File, address)
	var sum string
	if j.Checksum != "" {
		var err error
		if sum, err = j.checksum(ctx, address, at); err != nil {
			return fmt.Errorf("checksum: %w", err)
		}
		if known != nil && known.Checksum == sum && !j.force {
			return errUnchanged
		}
	}
	header := http.Header{}
	if known != nil && !j.force {
		setIf(header, "If-None-Match", known.ETag)
		if known.ETag == "" {
			setIf(header, "If-Modified-Since", known.LastModified)
		}
	}
	return j.take(ctx, address, header, sum)
}

func setIf(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}

// take downloads a file, and replaces the one that is there. sum is that of what is downloaded, or of
// the database in it; "" = not known.
func (j *job) take(ctx context.Context, address string, header http.Header, sum string) (err error) {
	raw, err := os.CreateTemp(filepath.Dir(j.File), "."+filepath.Base(j.File)+downloadPart+"*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, raw.Close(), os.Remove(raw.Name())) }()
	next, size := fetched{Address: hashOf(address), Checksum: sum}, int64(0)
	err = j.get(ctx, address, header, func(response *http.Response) (err error) {
		if response.StatusCode == http.StatusNotModified {
			return errUnchanged
		}
		next.ETag, next.LastModified = response.Header.Get("ETag"), response.Header.Get("Last-Modified")
		_, err = raw.Seek(0, io.SeekStart)
		if err = errors.Join(err, raw.Truncate(0)); err != nil {
			return err
		}
		size, err = io.Copy(raw, io.LimitReader(response.Body, maxSize+1))
		switch {
		case err != nil:
			return fmt.Errorf("download: %w", causeOf(err))
		case size > maxSize:
			return fmt.Errorf("the download has more than %d bytes", int64(maxSize))
		}
		return nil
	})
	if err != nil {
		return err
	}
	database, err := os.CreateTemp(filepath.Dir(j.File), "."+filepath.Base(j.File)+updatePart+"*")
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.Remove(database.Name()); !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	err = unpack(database, raw, size)
	if err == nil && sum != "" {
		err = checkSum(sum, raw, database)
	}
	// It is closed before it gets its name: Windows renames no open file.
	if err = errors.Join(err, database.Chmod(0o644), database.Sync(), database.Close()); err != nil {
		return err
	}
	replaced := j.replace(database.Name())
	if replaced != nil && !errors.Is(replaced, errUnchanged) {
		return replaced
	}
	if next.Size, next.Sum, err = describe(j.File); err != nil {
		return err
	}
	j.state.Files[j.File] = next
	return replaced
}

// replace puts a database in the place of the file, if it is another one.
func (j *job) replace(database string) error {
	size, sum, err := describe(database)
	if err != nil {
		return err
	}
	next, err := open(database)
	if err != nil {
		return err
	}
	if oldSize, oldSum, err := describe(j.File); err == nil {
		if oldSum == sum {
			return errUnchanged
		}
		old, err := open(j.File)
		if err == nil && !j.force {
			if err := j.compare(old, next, oldSize, size); err != nil {
				return err
			}
		}
	}
	if err := os.Rename(database, j.File); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(j.File))
}

// compare returns a refusal if the next database is older or smaller than the one that is there.
func (j *job) compare(old, next contents, oldSize, size int64) error {
	least := func(n int64) int64 { return n - n*int64(j.MayShrink)/100 }
	switch {
	case next.built.Before(old.built):
		return &refusal{fmt.Sprintf("the new file was built at %s, before the present one of %s",
			next.built.Format(time.DateTime), old.built.Format(time.DateTime))}
	case size < least(oldSize):
		return &refusal{fmt.Sprintf("the new file has %d bytes, and the present one %d (may-shrink is %d percent)",
			size, oldSize, j.MayShrink)}
	case next.networks < least(old.networks):
		return &refusal{fmt.Sprintf("the new file has %d networks, and the present one %d (may-shrink is %d percent)",
			next.networks, old.networks, j.MayShrink)}
	}
	return nil
}

// contents are what a database has.
type contents struct {
	built    time.Time
	networks int64
}

// probed is about how many records of a database are read to see whether it is whole.
const probed = 100_000

// open reads a database. Its error says that there is no record or one that cannot be read. The
// reader's own check refuses files of publishers who leave out a description.
func open(path string) (c contents, err error) {
	reader, err := maxminddb.Open(path)
	if err != nil {
		return c, fmt.Errorf("it is no database: %w", err)
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	c.built = reader.Metadata.BuildTime().UTC()
	every := max(1, int64(reader.Metadata.NodeCount)/probed)
	for r := range reader.Networks() {
		err := r.Err()
		if c.networks++; err == nil && c.networks%every == 0 {
			var record any
			err = r.Decode(&record)
		}
		if err != nil {
			return c, fmt.Errorf("the database is damaged: %w", err)
		}
	}
	if c.networks == 0 {
		return c, errors.New("the database has no records")
	}
	return c, nil
}

// redact removes the secret from a text.
func (j *job) redact(text string) string {
	for _, secret := range j.secrets() {
		text = strings.ReplaceAll(text, secret, "…")
	}
	return text
}

// causeOf returns an error without the URL of the request.
func causeOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || !strings.Contains(err.Error(), "://") {
			return err
		}
		err = inner
	}
}

// hasMonth reports whether the URL has the month in it.
func (s *Source) hasMonth() bool { return strings.Contains(s.URL, "{MM}") }

// filled returns a URL of the source at a time.
func (s *Source) filled(form string, at time.Time) string {
	at = at.UTC()
	return strings.NewReplacer("{YYYY}", at.Format("2006"), "{MM}", at.Format("01"),
		"{secret}", s.Secret).Replace(form)
}

// publisher returns whose limit a request counts for, and how many requests a day that allows; 0 = any
// number. The account of a URL is in its secret, so those of one publisher count together.
func (s *Source) publisher() (name string, daily int) {
	host := s.home()
	if isOf(host, "maxmind.com") {
		host = "maxmind.com"
	}
	switch {
	case strings.HasPrefix(s.Edition, "GeoLite"), host == "maxmind.com" && strings.Contains(s.URL, "GeoLite"):
		return host + " " + s.Account, least(s.Daily, 30)
	case isOf(host, "ip2location.com"):
		return "ip2location.com " + filepath.Base(s.File), least(s.Daily, 5)
	case s.Edition != "":
		return host + " " + s.Account, s.Daily
	}
	return host + " " + filepath.Base(s.File), s.Daily
}

// isOf reports whether a host is of a domain.
func isOf(host, domain string) bool {
	host, _, _ = strings.Cut(host, ":")
	host = strings.ToLower(host)
	return host == domain || strings.HasSuffix(host, "."+domain)
}

// least returns the smaller one of two limits, of which the first may be 0 for none.
func least(a, b int) int {
	if a == 0 {
		return b
	}
	return min(a, b)
}
