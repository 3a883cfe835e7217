package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gatehouse/cmd/gatehouse/bulk"
	"gatehouse/providers/mmdb"
)

type lookupCommand struct {
	Queries []string `arg:"" optional:"" name:"query" placeholder:"QUERY" help:"Addresses and domains, or - for stdin, which is also read if there are neither queries nor a file."`

	Files    []string `name:"file" short:"f" sep:"none" group:"input" placeholder:"FILE" help:"Read queries from this file; gzip and zstd are decompressed. Repeatable, and may be a pattern such as 'logs/*.gz'; the files are read in this order."`
	Columns  []string `name:"column" short:"c" sep:"none" group:"input" placeholder:"NAME|N" help:"The input is CSV or TSV, and this column has the queries: its name or its number from 1. CSV may have semicolons. Repeatable: then fields have the name of their column before theirs."`
	NoHeader bool     `name:"no-header" group:"input" help:"The first row of the CSV or TSV is data, and no header is written."`
	Field    string   `name:"field" group:"input" placeholder:"PATH" help:"The input has a JSON object a line, and this field has the query, such as client.ip."`
	Extract  bool     `name:"extract" group:"input" help:"Find every address in a text, such as an access log. The output has a row for each."`

	KeepLines bool   `name:"keep-lines" group:"input" help:"With --extract: write the line of each address as the field line."`
	Delimiter string `name:"delimiter" group:"input" placeholder:"CHARACTER" help:"What separates the cells of CSV, such as |, ; or \\t."`

	Fields    []string `name:"fields" group:"output" placeholder:"NAME,…" help:"Write these fields, such as country,city,as or data.prefix, or with other names, such as country=geo_country. Default: for JSON the whole result, for a table country, city and as, else country, countryCode, regionName, city, lat, lon, timezone, as, isp, mobile, proxy and hosting."`
	Format    choice   `name:"format" default:"auto" oneof:"auto json ndjson csv tsv table parquet" group:"output" placeholder:"FORMAT" help:"json, ndjson, csv, tsv, table or parquet. Default: table on a terminal, else that of the input, and ndjson for plain queries."`
	CSVSafe   bool     `name:"csv-safe" group:"output" help:"Write a single quote before cells that begin with =, +, - or @ and are no numbers: spreadsheets take them for formulas."`
	Output    string   `name:"output" short:"o" group:"output" placeholder:"FILE" help:"Write to this file instead of stdout."`
	Summarize bool     `name:"summarize" group:"output" help:"Instead of rows, print how many rows there are by country, network and flag; as JSON with --format json."`
	Quiet     bool     `name:"quiet" short:"q" group:"output" help:"Print no summary at the end."`

	Server     string       `name:"server" group:"source" placeholder:"URL" help:"Server to ask, a URL or unix:/path (default: GATEHOUSE_BASE_URL, else http://127.0.0.1:8080)."`
	APIKey     secretText   `name:"api-key" group:"source" placeholder:"KEY" help:"Key to send as X-Api-Key. Other users of this machine can see flags: use GATEHOUSE_API_KEY."`
	APIKeyFile string       `name:"api-key-file" group:"source" placeholder:"FILE" help:"File with that key (or GATEHOUSE_API_KEY_FILE)."`
	MMDB       []string     `name:"mmdb" group:"source" placeholder:"FILE,…" help:"Look up in these database files, such as City.mmdb,ASN.mmdb, and ask no server."`
	MMDBMap    mappingFile  `name:"mmdb-map" group:"source" placeholder:"FILE" help:"Where the records of these files have what is not recognized, as lines such as country_code: geo.cc. gatehouse mmdb show prints what is recognized."`
	Language   nameLanguage `name:"mmdb-language" default:"en" group:"source" placeholder:"LANGUAGE" help:"Language of names, where these files have it, such as de or pt-BR (${default})."`

	Resume     string   `name:"resume" group:"run" placeholder:"STATE" help:"Keep the position in this file. After an interruption, the same command goes on from there. Needs --file, and --output or >>."`
	FailFast   bool     `name:"fail-fast" group:"run" help:"Stop after the first row that fails."`
	MaxErrors  int64    `name:"max-errors" default:"-1" group:"run" placeholder:"N" help:"Stop when more than N rows have failed (default: never). Private and reserved addresses do not count."`
	FailuresOK bool     `name:"failures-ok" group:"run" help:"Exit with 0 instead of 3 when all rows are written and some failed."`
	NewData    bool     `name:"allow-new-data" group:"run" help:"Let --resume go on although the database files are others than before."`
	Patience   duration `name:"patience" default:"0s" min:"0s" max:"168h" group:"run" placeholder:"TIME" help:"Give up if the server has no answer for so long (default: 15m, and 5s for queries on the command line)."`
}

// exitSomeFailed says that a lookup wrote all rows, and some have an error.
const exitSomeFailed = 3

// Help is shown by gatehouse lookup --help.
func (*lookupCommand) Help() string {
	return "Looks up addresses and domains, one or millions. Rows keep their order. Columns are " +
		"appended to those of CSV and TSV; an object of NDJSON gets a member \"lookup\". A row that " +
		"fails has an error, and the others go on.\n\n" +
		"A query may have a port or brackets, as in 8.8.8.8:443 and [2001:db8::1]:443.\n\n" +
		"Exit codes: 0 no row failed, 1 the command could not run or was interrupted, " +
		"2 wrong usage, 3 some rows failed. A public address without data is unknown (no_location), " +
		"which is no failure.\n\nExamples:\n\n" +
		"    gatehouse lookup 8.8.8.8 example.com\n" +
		"    gatehouse lookup --file visitors.csv --column ip --fields country,city,as > out.csv\n" +
		"    gatehouse lookup --file flows.csv --column source --column target --fields country\n" +
		"    gatehouse lookup --file events.ndjson.gz --field client.ip --output out.ndjson --resume state\n" +
		"    gatehouse lookup --file access.log --extract --summarize\n" +
		"    gatehouse lookup --file visitors.csv --column ip --format parquet --output out.parquet\n" +
		"    gatehouse lookup --mmdb City.mmdb,ASN.mmdb --file addresses.txt --format csv"
}

// Run looks up the queries.
func (c *lookupCommand) Run(p *program) (err error) {
	if err := c.check(p); err != nil {
		return err
	}
	job := &lookupJob{lookupCommand: c, p: p, began: time.Now()}
	if err := job.open(0); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.input.Close()) }()
	for i := 1; i < len(c.Files); i++ { // before there is any output
		if err := c.checkFile(p, i); err != nil {
			return err
		}
	}
	output, closeOutput, err := c.openOutput(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeOutput()) }()
	job.output = output
	return job.run()
}

// check returns an error about flags that do not go together.
func (c *lookupCommand) check(p *program) error {
	stdin := len(c.Queries) == 1 && c.Queries[0] == "-"
	if stdin {
		c.Queries = nil
	}
	if len(c.Files) == 1 && c.Files[0] == "-" {
		c.Files, stdin = nil, true
	}
	if err := c.findFiles(); err != nil {
		return err
	}
	hasFile := len(c.Files) > 0
	for _, query := range c.Queries {
		if info, err := os.Stat(query); err == nil && info.Mode().IsRegular() {
			return usagef("%s is a file: use --file %s, or -f", query, query)
		}
	}
	kinds := 0
	for _, given := range []bool{len(c.Columns) > 0 || c.NoHeader && c.Field == "" && !c.Extract,
		c.Field != "", c.Extract} {
		if given {
			kinds++
		}
	}
	if c.Delimiter == `\t` { // as awk and DuckDB take it
		c.Delimiter = "\t"
	}
	switch {
	case len(c.Queries) > 0 && hasFile, stdin && hasFile:
		return usagef("give either queries or --file or -, not several")
	case len(c.Queries) == 0 && !hasFile && !stdin && isTerminal(p.stdin):
		return usagef("give addresses or domains, --file FILE, or - to read stdin")
	case kinds > 1:
		return usagef("give one of --column, --field and --extract")
	case kinds > 0 && len(c.Queries) > 0:
		return usagef("--column, --field and --extract are for files and stdin")
	case c.NoHeader && len(c.Columns) == 0:
		return usagef("--no-header needs --column with a number")
	case len(c.MMDB) > 0 && (c.Server != "" || c.APIKey != "" || c.APIKeyFile != ""):
		return usagef("--mmdb asks no server: leave out --server and --api-key")
	case len(c.MMDB) == 0 && (c.MMDBMap.path != "" || c.Language != "en"):
		return usagef("--mmdb-map and --mmdb-language are for the files of --mmdb")
	case c.Summarize && (len(c.Fields) > 0 || c.Resume != ""):
		return usagef("--summarize goes neither with --fields nor with --resume")
	case c.Summarize && c.Format != "auto" && c.Format != "json" && c.Format != "table":
		return usagef("--summarize prints text, or JSON with --format json")
	case c.FailFast && c.MaxErrors > 0:
		return usagef("give either --fail-fast or --max-errors")
	case c.KeepLines && (!c.Extract || c.Summarize):
		return usagef("--keep-lines is for rows of --extract")
	case c.Delimiter != "" && len(c.Columns) == 0:
		return usagef("--delimiter needs --column")
	case c.Delimiter != "" && (len(c.Delimiter) > 1 || strings.Contains("\"\r\n", c.Delimiter) ||
		c.Delimiter[0] >= 0x80):
		return usagef("--delimiter must be one ASCII character, no quote and no line end")
	case c.Format == "parquet" && c.Resume != "":
		return usagef("--resume does not go with --format parquet, whose end describes all of the file: write" +
			" ndjson or csv, and convert it, as duckdb -c \"COPY (FROM 'FILE') TO 'FILE.parquet'\" does")
	case c.Format == "parquet" && (c.CSVSafe || c.NoHeader):
		return usagef("--csv-safe and --no-header do not go with --format parquet: its columns have names" +
			" and types")
	case c.NewData && c.Resume == "":
		return usagef("--allow-new-data is for --resume")
	case c.Resume != "" && !hasFile:
		return usagef("--resume needs --file: queries and stdin cannot be read again")
	case c.Resume != "" && c.Format == "table":
		return usagef("--resume does not go with --format table")
	}
	if c.FailFast {
		c.MaxErrors = 0
	}
	return nil
}

// findFiles replaces patterns by the files that they match, in the order of their names. A name of
// a file is no pattern.
func (c *lookupCommand) findFiles() error {
	var all []string
	for _, name := range c.Files {
		found := []string{name}
		if _, err := os.Lstat(name); err != nil && strings.ContainsAny(name, "*?[") {
			if found, err = filepath.Glob(name); err != nil || len(found) == 0 {
				return usagef("--file %q: no file matches this pattern", name)
			}
		}
		for _, file := range found {
			if slices.Contains(all, file) {
				return usagef("--file names %s more than once", file)
			}
			all = append(all, file)
		}
	}
	if len(all) > 1 && slices.Contains(all, "-") {
		return usagef("give either --file or -, not several")
	}
	c.Files = all
	return nil
}

// name returns the path of a file; "" = the input is none.
func (c *lookupCommand) name(number int) string {
	if number < len(c.Files) {
		return c.Files[number]
	}
	return ""
}

// checkFile returns an error about a file that is going to be read later.
func (c *lookupCommand) checkFile(p *program, number int) error {
	if info, err := os.Stat(c.name(number)); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // it can be read only once
	}
	in, input, err := c.openInput(p, number)
	if err != nil {
		return err
	}
	_, err = c.layout(in, c.name(number))
	return errors.Join(err, input.Close())
}

// openInput opens the input with a number.
func (c *lookupCommand) openInput(p *program, number int) (*bulk.Input, io.Closer, error) {
	file := c.name(number)
	var r io.Reader = p.stdin
	var closer io.Closer = io.NopCloser(nil)
	switch {
	case len(c.Queries) > 0:
		r = strings.NewReader(strings.Join(c.Queries, "\n") + "\n")
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return nil, nil, err
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder", file)
		}
		if err == nil && c.Resume != "" && !info.Mode().IsRegular() {
			err = usagef("--resume needs a regular file: %s cannot be read again", file)
		}
		if err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		r, closer = f, f
	}
	in, err := bulk.NewInput(r)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read %s: %w", first(file, "input"), err), closer.Close())
	}
	return in, closer, nil
}

// layout says where the queries are.
func (c *lookupCommand) layout(in *bulk.Input, file string) (bulk.Layout, error) {
	name := strings.ToLower(file)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, packed)
	}
	extension := filepath.Ext(name)
	l := bulk.Layout{Kind: bulk.Lines, Columns: c.Columns, NoHeader: c.NoHeader, Field: c.Field,
		KeepLines: c.KeepLines}
	separator := in.Separator("\t,;")
	if extension == ".csv" {
		separator = in.Separator(",;\t")
	}
	switch {
	case c.Extract:
		l.Kind = bulk.Text
	case c.Field != "" && in.IsArray():
		return l, usagef("the input is an array of JSON: make it an object a line, as jq -c '.[]' does")
	case c.Field != "":
		l.Kind = bulk.Objects
	case len(c.Columns) > 0 && c.Delimiter != "" && c.Delimiter != "\t":
		l.Kind, l.Separator = bulk.Commas, c.Delimiter[0]
	case len(c.Columns) > 0 && (c.Delimiter != "" || extension == ".tsv" || extension == ".tab" || separator == '\t'):
		l.Kind = bulk.Tabs
	case len(c.Columns) > 0:
		l.Kind = bulk.Commas
		if separator == ';' {
			l.Separator = ';'
		}
	case extension == ".csv" || extension == ".tsv" || extension == ".tab":
		return l, usagef("--column must be given: the name or number of the column of %s that has"+
			" the queries", file)
	case extension == ".ndjson" || extension == ".jsonl" || extension == ".json":
		return l, usagef("--field must be given: the field of %s that has the queries", file)
	}
	return l, nil
}

// format returns the format of the output.
func (c *lookupCommand) format(l bulk.Layout, terminal bool) string {
	switch {
	case c.Format != "auto":
		return string(c.Format)
	case terminal:
		return "table"
	case l.Kind == bulk.Commas || l.Kind == bulk.Tabs:
		return string(l.Kind)
	}
	return string(bulk.NDJSON)
}

// openOutput opens and locks the output. It does not empty a file that an earlier command wrote.
func (c *lookupCommand) openOutput(p *program) (io.Writer, func() error, error) {
	if c.Output == "" || c.Output == "-" {
		if c.Resume != "" && !isRegular(p.stdout) {
			return nil, nil, usagef("--resume needs --output FILE, or >> FILE: stdout is not a file")
		}
		var err error
		if isRegular(p.stdout) {
			err = c.lockOutput(p, p.stdout.(*os.File))
		}
		return p.stdout, func() error { return nil }, err
	}
	if info, err := os.Stat(c.Output); err == nil && c.Resume != "" && info.Size() > 0 {
		if state, err := os.Stat(c.Resume); errors.Is(err, fs.ErrNotExist) || err == nil && state.Size() == 0 {
			return nil, nil, fmt.Errorf("%s is not empty, but the state %s does not exist: remove "+
				"the output or choose another", c.Output, c.Resume)
		}
	}
	f, err := os.OpenFile(c.Output, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case isRegular(f):
		if err = c.lockOutput(p, f); err == nil && c.Resume == "" {
			err = f.Truncate(0)
		}
	case c.Resume != "":
		err = usagef("--resume needs a regular file as its output")
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, f.Close, nil
}

// lockOutput locks a regular file until it is closed, unless it is an input.
func (c *lookupCommand) lockOutput(p *program, f *os.File) error {
	output, err := f.Stat()
	if err != nil {
		return err
	}
	inputs := c.Files
	if len(c.Queries) == 0 && len(inputs) == 0 && isRegular(p.stdin) {
		inputs = []string{"/dev/stdin"}
	}
	for _, file := range inputs {
		if input, err := os.Stat(file); err == nil && os.SameFile(input, output) {
			return usagef("--output must not be the input")
		}
	}
	return bulk.Lock(f, "output")
}

func isRegular(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// lookupJob is a lookup whose files are open.
type lookupJob struct {
	*lookupCommand
	p      *program
	in     *bulk.Input
	input  io.Closer
	layout bulk.Layout
	output io.Writer
	began  time.Time

	complete func() error // writes the end of an output that has one; nil = it has none
}

// open opens the input with a number.
func (j *lookupJob) open(number int) (err error) {
	if j.in, j.input, err = j.openInput(j.p, number); err != nil {
		return err
	}
	if j.layout, err = j.lookupCommand.layout(j.in, j.name(number)); err != nil {
		return errors.Join(err, j.input.Close())
	}
	return nil
}

func (j *lookupJob) run() error {
	format := j.format(j.layout, isTerminal(j.output))
	config := bulk.Config{Output: j.output, Counts: &bulk.Counts{}, MaxErrors: j.MaxErrors,
		Header: new(string)}
	summary := bulk.NewSummary()
	if j.Summarize {
		config.Plan = summary.Plan()
	} else if err := j.plan(&config, format); err != nil {
		return err
	}
	closeSource, err := j.source(&config)
	if err != nil {
		return err
	}
	defer closeSource()
	state, err := j.state(&config, format)
	if err != nil {
		return err
	}
	if state != nil {
		defer state.Close()
		config.Header = state.Header()
	}
	from, end, worked := config.From, config.From, false
	for number := range max(1, len(j.Files)) {
		if number > 0 {
			if err = errors.Join(j.input.Close(), j.open(number)); err != nil {
				j.input = io.NopCloser(nil)
				break
			}
		}
		var done bool
		if end, done, err = j.runInput(config, state, number, end); err != nil {
			break
		}
		worked = worked || !done
	}
	var header *bulk.HeaderError
	switch {
	case errors.As(err, &header):
		return usagef("%v", err)
	case err == nil && state != nil && !worked && state.Done():
		return j.report(end, 0, 0, nil, "already done: ")
	case err == nil && state != nil:
		err = state.Finish()
	case err == nil && j.Summarize:
		err = j.summarize(summary)
	case err == nil && j.complete != nil:
		err = j.complete()
	case j.complete != nil:
		fmt.Fprintln(j.p.stderr, "gatehouse: the Parquet file has no end: no program can read it")
	}
	return j.report(end, from.Rows, time.Since(j.began), err, "")
}

// runInput looks up the rows of the input with a number that are not done.
func (j *lookupJob) runInput(config bulk.Config, state *bulk.State, number int,
	from bulk.Position) (end bulk.Position, done bool, err error) {
	config.Input, config.Name, config.Layout, config.From = j.in, j.name(number), j.layout, from
	config.From.Input, config.From.Whole = 0, bulk.Mark{}
	config.More = number+1 < len(j.Files)
	if state != nil {
		if config.From, done, err = state.Begin(j.name(number), j.in); err != nil {
			return from, false, fmt.Errorf("--resume: %w", err)
		}
		if done && (config.More || state.Done()) {
			return config.From, true, nil
		}
		config.Checkpoint = func(at bulk.Position) error { return state.Save(at, false) }
	}
	stop := func() {}
	if isTerminal(j.p.stderr) && (j.Summarize || !isTerminal(j.output)) { // not between rows
		stop = showProgress(j.p, &config)
	}
	end, err = bulk.Run(j.p.ctx, config)
	stop()
	var header *bulk.HeaderError
	switch {
	case errors.As(err, &header) && len(j.Files) > 0:
		err = fmt.Errorf("--column: %s: %w", j.name(number), header)
	case errors.As(err, &header):
		err = fmt.Errorf("--column: %w", header)
	case err == nil && state != nil:
		err = state.Save(end, true)
	}
	return end, false, err
}

// plan sets the plan of the rows that are written, and makes a table of them.
func (j *lookupJob) plan(config *bulk.Config, format string) (err error) {
	shape, fields := bulk.Format(format), j.Fields
	if format == "table" {
		config.Output, shape = tableWriter{j.output}, bulk.TSV
		if len(fields) == 0 {
			fields = []string{"country", "city", "as"} // for 80 columns
		}
	}
	if format == "parquet" {
		if isTerminal(j.output) {
			return usagef("--format parquet is not for a terminal: give --output FILE")
		}
		shape = bulk.CSV
	}
	if config.Plan, err = bulk.NewPlan(shape, fields, j.layout.Kind); err != nil {
		return usagef("--fields: %v", err)
	}
	config.Plan.Safe, config.Plan.Comma = j.CSVSafe, j.layout.Separator
	switch {
	case format == "parquet":
		rows := bulk.NewParquet(j.output, config.Plan, j.layout)
		config.Output, j.complete = rows, rows.Close
	case format != "table" && isTerminal(j.output):
		config.Output = terminalWriter{j.output}
	}
	return nil
}

// source opens what answers.
func (j *lookupJob) source(config *bulk.Config) (closeSource func(), err error) {
	if len(j.MMDB) > 0 {
		files, err := mmdb.Options{
			Mapping: j.MMDBMap.mapping, Language: string(j.Language),
		}.Map(j.MMDB...)
		if err != nil {
			return nil, usagef("--mmdb: %v", err)
		}
		debug.SetGCPercent(40) // the heap is small: memory counts more than time
		config.Source = bulk.NewFiles(files, config.Plan)
		config.Workers, config.MaxRows = runtime.GOMAXPROCS(0), 1<<20
		return func() { _ = files.Close() }, nil // the process ends
	}
	address := first(j.Server, j.p.environment["GATEHOUSE_BASE_URL"], "http://127.0.0.1:8080")
	s, err := newSite("server", address, nil)
	if err != nil {
		return nil, err
	}
	transport := s.client.Transport.(*http.Transport)
	transport.MaxIdleConnsPerHost, transport.Proxy = 64, http.ProxyFromEnvironment
	patience := j.Patience.Duration
	switch {
	case patience > 0:
	case len(j.Queries) > 0:
		patience = 5 * time.Second
	default:
		patience = 15 * time.Minute
	}
	key, err := j.apiKey()
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, usagef("the API key has a character that is none of a key, such as a line end")
	}
	config.Source = bulk.NewServer(bulk.ServerConfig{
		URL: s.url, Client: s.client, Plan: config.Plan, Patience: patience, Key: key,
		Waiting: outageNotice(j.p.stderr),
	})
	config.Workers, config.MaxRows = bulk.MaxInFlight, bulk.MaxBatch
	return transport.CloseIdleConnections, nil
}

// apiKey returns the key of the flag or its file, else of the environment; "" = none.
func (j *lookupJob) apiKey() (string, error) {
	env := j.p.environment
	key, file := string(j.APIKey), j.APIKeyFile
	if key == "" && file == "" {
		key, file = env["GATEHOUSE_API_KEY"], env["GATEHOUSE_API_KEY_FILE"]
	}
	switch {
	case file == "":
		return key, nil
	case key != "":
		return "", usagef("give either the API key or the file with it, not both")
	}
	key, err := readSecret(file, "", env[credentialsFolder])
	if err != nil {
		return "", usagef("--api-key-file %q: %v", file, err)
	}
	return key, nil
}

// state opens the state of --resume; nil = none.
func (j *lookupJob) state(config *bulk.Config, format string) (*bulk.State, error) {
	if j.Resume == "" {
		return nil, nil
	}
	command := map[string]string{
		"--output": j.Output, "--column": strings.Join(j.Columns, "\n"), "--field": j.Field,
		"--no-header": strconv.FormatBool(j.NoHeader), "--extract": strconv.FormatBool(j.Extract),
		"--keep-lines": strconv.FormatBool(j.KeepLines), "--delimiter": j.Delimiter,
		"--csv-safe": strconv.FormatBool(j.CSVSafe), "--mmdb-language": string(j.Language),
		"--fields": strings.Join(j.Fields, ","), "--format": format,
	}
	data := "a server"
	if files, ok := config.Source.(*bulk.Files); ok {
		data = files.Data()
	}
	if j.MMDBMap.mapping != nil { // the file may be edited
		sum := sha256.Sum256([]byte(j.MMDBMap.mapping.String()))
		data += fmt.Sprintf(", mapped as %x", sum[:8])
	}
	state, err := bulk.OpenState(j.Resume, command, data, j.NewData, j.output.(*os.File))
	if err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	if err := state.CheckNames(j.Files); err != nil {
		return nil, errors.Join(fmt.Errorf("--resume: %w", err), state.Close())
	}
	config.From = state.Position()
	return state, nil
}

func (j *lookupJob) summarize(s *bulk.Summary) error {
	if j.Format == "json" {
		return s.WriteJSON(j.output)
	}
	return s.WriteText(j.output, printable)
}

// report prints what was done and returns the error that has its exit code. Rows before from were
// done by an earlier command.
func (j *lookupJob) report(end bulk.Position, from int64, took time.Duration, err error,
	note string) error {
	if errors.Is(err, syscall.EPIPE) {
		return &exitError{exitFailed} // nobody reads on
	}
	if !j.Quiet && (len(j.Queries) == 0 || err != nil) {
		rows, rate := "rows", ""
		if end.Rows == 1 {
			rows = "row"
		}
		if took >= time.Second {
			rate = fmt.Sprintf(", %.0f rows/s", float64(end.Rows-from)/took.Seconds())
		}
		if end.Unknown > 0 {
			rate = fmt.Sprintf(", %d unknown", end.Unknown) + rate
		}
		fmt.Fprintf(j.p.stderr, "%s%d %s, %d failed%s\n", note, end.Rows, rows, end.Failed, rate)
	}
	switch {
	case errors.Is(err, bulk.ErrTooManyErrors):
		fmt.Fprintf(j.p.stderr, "gatehouse: %v\n", err)
		return &exitError{exitSomeFailed}
	case errors.Is(err, context.Canceled) && j.p.ctx.Err() != nil:
		if j.Resume != "" {
			return errors.New("interrupted; the same command goes on from here")
		}
		return errors.New("interrupted")
	case err != nil:
		return err
	case end.Failed > 0 && !j.FailuresOK:
		return &exitError{exitSomeFailed}
	}
	return nil
}

// exitError ends the program with a code. What is to be said was said.
type exitError struct{ code int }

func (e *exitError) Error() string { return "exit code " + strconv.Itoa(e.code) }

// terminalWriter escapes the characters of whole rows that a terminal obeys, as JSON does.
type terminalWriter struct{ io.Writer }

func (w terminalWriter) Write(rows []byte) (int, error) {
	var text strings.Builder
	for _, r := range string(rows) {
		if r == '\n' || r == '\t' || printable(string(r)) == string(r) {
			text.WriteRune(r)
		} else {
			fmt.Fprintf(&text, "\\u%04x", r)
		}
	}
	_, err := io.WriteString(w.Writer, text.String())
	return len(rows), err
}

// tableWriter aligns the columns of TSV that is written in whole rows.
type tableWriter struct{ io.Writer }

func (w tableWriter) Write(rows []byte) (int, error) {
	table := newTable(w.Writer)
	for line := range strings.Lines(string(rows)) {
		cells := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		for i := range cells {
			cells[i] = first(printable(cells[i]), "-")
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return len(rows), table.Flush()
}
