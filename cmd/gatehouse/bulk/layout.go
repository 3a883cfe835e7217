package bulk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"gatehouse/actors/geo"
)

// Kind is how an input holds queries.
type Kind string

// The kinds of input.
const (
	Lines   Kind = "lines"   // one a line
	Commas  Kind = "csv"     // in a column of CSV (RFC 4180), also with semicolons
	Tabs    Kind = "tsv"     // in a column of TSV, which has no quotes
	Objects Kind = "ndjson"  // in a field of an object a line
	Text    Kind = "extract" // anywhere in a text
)

// Layout says where the rows of an input have their queries.
type Layout struct {
	Kind      Kind
	Separator byte     // of the cells of CSV; 0 = a comma
	Columns   []string // names or numbers, from 1; none = the only one
	NoHeader  bool     // the first row of CSV or TSV is data; other inputs get no header written
	KeepLines bool     // each row of a text has its line as a field
	Field     string   // path of the field of an object, with dots, or its name

	names   []string // of the columns, from the header; nil = none
	columns []int    // indexes of Columns
	labels  []string // of Columns, which tell their answers apart; nil = there is one answer a row
	path    []string
}

// answers returns how many lookups each row has.
func (l *Layout) answers() int { return max(1, len(l.labels)) }

// comma returns what separates cells; 0 = there are none.
func (l *Layout) comma() byte {
	switch l.Kind {
	case Commas:
		return cmp.Or(l.Separator, ',')
	case Tabs:
		return '\t'
	}
	return 0
}

// quotes returns the comma if cells may be quoted.
func (l *Layout) quotes() byte {
	if l.Kind == Commas {
		return l.comma()
	}
	return 0
}

// A HeaderError says that a column of the queries is not known.
type HeaderError struct{ message string }

func (e *HeaderError) Error() string { return e.message }

// begin reads the header, and finds the columns and the field.
func (l *Layout) begin(s *splitter) (header []byte, err error) {
	l.path = strings.Split(l.Field, ".")
	if l.comma() == 0 {
		return nil, nil
	}
	if l.NoHeader {
		return nil, l.find()
	}
	var c chunk
	rows := s.maxRows
	s.maxRows = 1
	err = s.next(&c)
	s.maxRows = rows
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	case c.bad != nil:
		return nil, fmt.Errorf("the header cannot be read: %s", c.bad[0].message)
	}
	header = bytes.Clone(c.row(0))
	if line := bytes.TrimRight(header, "\r\n"); bytes.ContainsRune(line, '\r') &&
		!bytes.ContainsRune(line, '\n') {
		return nil, errors.New(`its lines end with CR alone: convert them, as tr '\r' '\n' does`)
	}
	for cells := l.cellsOf(header); cells.next(); {
		l.names = append(l.names, string(cells.text()))
	}
	return header, l.find()
}

// find finds the columns.
func (l *Layout) find() error {
	l.columns, l.labels = nil, nil
	for _, column := range l.Columns {
		i, err := l.index(column)
		if err != nil {
			return err
		}
		if slices.Contains(l.columns, i) {
			return &HeaderError{fmt.Sprintf("%q is a column that is given already", column)}
		}
		l.columns = append(l.columns, i)
	}
	switch {
	case len(l.Columns) == 0 && len(l.names) == 1:
		l.columns = []int{0}
	case len(l.Columns) == 0:
		return l.unknown("")
	case len(l.Columns) > 1:
		l.label()
	}
	return nil
}

// index returns the index of a column by its name, or else by its number.
func (l *Layout) index(column string) (int, error) {
	if i := slices.Index(l.names, column); i >= 0 {
		return i, nil
	}
	for i, name := range l.names {
		if strings.EqualFold(strings.TrimSpace(name), column) {
			return i, nil
		}
	}
	n, err := strconv.Atoi(column)
	if err != nil || n < 1 || n > len(l.names) && !l.NoHeader {
		return 0, l.unknown(column)
	}
	return n - 1, nil
}

func (l *Layout) unknown(column string) error {
	if l.NoHeader {
		return &HeaderError{fmt.Sprintf("%q: without a header, the column is a number from 1", column)}
	}
	return &HeaderError{fmt.Sprintf("%q: the columns are %s", column, strings.Join(l.names, ", "))}
}

// label sets the labels of the columns: their names, or their numbers if two have one name.
func (l *Layout) label() {
	for _, i := range l.columns {
		label := strconv.Itoa(i + 1)
		if i < len(l.names) && l.names[i] != "" {
			label = l.names[i]
		}
		l.labels = append(l.labels, label)
	}
	names := slices.Compact(slices.Sorted(slices.Values(l.labels)))
	if len(names) == len(l.labels) {
		return
	}
	for k, i := range l.columns {
		l.labels[k] = strconv.Itoa(i + 1)
	}
}

// cells goes through the cells of a row.
type cells struct {
	row    []byte // without its line end
	comma  byte
	quotes bool
	cell   []byte // as it stands in the row
	pos    int    // of the next cell
}

// cellsOf returns the cells of a row.
func (l *Layout) cellsOf(row []byte) cells {
	return cells{row: trimLineEnd(row), comma: l.comma(), quotes: l.Kind == Commas}
}

func trimLineEnd(row []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(row, []byte{'\n'}), []byte{'\r'})
}

func (c *cells) next() bool {
	if c.pos > len(c.row) {
		return false
	}
	end := 0
	if c.quotes && c.pos < len(c.row) && c.row[c.pos] == '"' {
		end = quotedCell(c.row, c.pos)
	}
	if end == 0 {
		if end = bytes.IndexByte(c.row[c.pos:], c.comma); end < 0 {
			end = len(c.row)
		} else {
			end += c.pos
		}
	}
	c.cell = c.row[c.pos:end]
	c.pos = end + 1
	return true
}

// text returns the cell without its quotes.
func (c *cells) text() []byte {
	if !c.quotes || len(c.cell) < 2 || c.cell[0] != '"' {
		return c.cell
	}
	inner := c.cell[1 : len(c.cell)-1]
	if bytes.IndexByte(inner, '"') < 0 {
		return inner
	}
	return bytes.ReplaceAll(inner, []byte(`""`), []byte(`"`))
}

// count returns the number of cells.
func (c cells) count() int {
	if !c.quotes || bytes.IndexByte(c.row, '"') < 0 {
		return bytes.Count(c.row, []byte{c.comma}) + 1
	}
	n := 0
	for c.next() {
		n++
	}
	return n
}

// lookup is the lookup of one query. Those of a row with several columns stand one after the other,
// as many for each row. Others become a row of the output each; a row of a text may have several.
type lookup struct {
	in      int    // number of the row in the chunk
	row     []byte // as it is written again; nil for lines and texts
	query   []byte
	line    []byte  // of a text
	record  *Record // of a problem, which needs no answer; nil = none
	index   int     // of the query among those of the chunk
	missing int     // cells fewer than in the header
}

// reader finds the queries of rows. Each worker has its own.
type reader struct {
	*Layout
	plan   *Plan
	parser fastjson.Parser
	arena  []byte // for texts that do not stand in the chunk
	found  [][]byte
}

// lookups appends the lookups of c. Blank rows have none.
func (r *reader) lookups(dst []lookup, c *chunk) []lookup {
	r.arena = nil
	for i := range c.ends {
		row := c.row(i)
		if p := c.bad[i]; p != nil {
			dst = r.repeated(dst, r.unreadable(i, row, p))
			continue
		}
		if len(bytes.TrimSpace(row)) == 0 {
			continue
		}
		switch r.Kind {
		case Text:
			r.found = extract(r.found[:0], row)
			for _, query := range r.found {
				dst = append(dst, lookup{in: i, query: query, line: trimLineEnd(row)})
			}
		case Lines:
			dst = append(dst, lookup{in: i, query: bytes.TrimSpace(row)})
		case Objects:
			dst = append(dst, r.object(i, row))
		default:
			dst = r.delimited(dst, i, row)
		}
	}
	return dst
}

// repeated appends a lookup for each answer that a row has.
func (r *reader) repeated(dst []lookup, l lookup) []lookup {
	for range r.answers() {
		dst = append(dst, l)
	}
	return dst
}

// unreadable returns a row without cells. Its text becomes the first one.
func (r *reader) unreadable(i int, row []byte, p *problem) lookup {
	l := lookup{in: i, record: r.plan.failure(*p), missing: max(0, len(r.names)-1)}
	switch r.Kind {
	case Commas:
		l.row = append(appendQuotedCell(nil, view(trimLineEnd(row))), lineEnd(row)...)
	case Objects:
		l.row = append(geo.AppendQuoted([]byte(`{"row":`), view(bytes.TrimSpace(row))), '}')
	}
	return l
}

func (r *reader) delimited(dst []lookup, i int, row []byte) []lookup {
	l := lookup{in: i, row: row}
	if r.names != nil {
		all := r.cellsOf(row)
		n := all.count()
		if n > len(r.names) {
			l.record = r.plan.failure(*badCells)
			return r.repeated(dst, l)
		}
		l.missing = len(r.names) - n
	}
	for _, column := range r.columns {
		one := l
		if cell, ok := r.cell(row, column); ok {
			one.query = cell
		} else {
			one.record = r.plan.failure(*noColumn)
		}
		dst = append(dst, one)
	}
	return dst
}

// cell returns the text of a cell of a row, by its index.
func (r *reader) cell(row []byte, column int) (text []byte, ok bool) {
	all := r.cellsOf(row)
	for range column + 1 {
		if !all.next() {
			return nil, false
		}
	}
	return all.text(), true
}

// result is the member of an object that has the answer.
const result = "lookup"

func (r *reader) object(i int, row []byte) lookup {
	l := lookup{in: i, row: bytes.TrimSpace(row)}
	v, err := r.parser.ParseBytes(l.row)
	if err != nil || v.Type() != fastjson.TypeObject {
		return r.unreadable(i, row, badJSON)
	}
	if v.Exists(result) {
		v.Del(result)
		l.row = v.MarshalTo(nil)
	}
	text := last(v, r.path...)
	if text == nil {
		text = last(v, r.Field) // a name with dots
	}
	if text == nil || text.Type() != fastjson.TypeString {
		l.record = r.plan.failure(*noField)
		return l
	}
	from := len(r.arena)
	r.arena = append(r.arena, text.GetStringBytes()...)
	l.query = r.arena[from:]
	return l
}

// last returns the member at a path: of members with one name, the last.
func last(v *fastjson.Value, path ...string) *fastjson.Value {
	for _, name := range path {
		object := v.GetObject()
		if v == nil || object == nil {
			return nil
		}
		v = nil
		object.Visit(func(key []byte, member *fastjson.Value) {
			if string(key) == name {
				v = member
			}
		})
	}
	return v
}

// writer renders rows.
type writer struct {
	*Layout
	plan *Plan
}

// header appends the header of the output.
func (w *writer) header(dst, header []byte) []byte {
	if w.plan.format.isJSON() || w.NoHeader {
		return dst
	}
	if w.comma() != 0 && header == nil {
		return dst // the input is empty
	}
	from := len(dst)
	if w.comma() != 0 {
		dst = w.cells(dst, header, 0)
	}
	taken := map[string]bool{}
	if w.KeepLines {
		dst = w.name(append(dst, w.outComma()), taken, "line")
	}
	for _, name := range w.names {
		taken[name] = true
	}
	for i := range w.answers() {
		prefix := ""
		if w.labels != nil {
			prefix = w.labels[i] + "_"
		}
		for _, f := range w.plan.fields {
			dst = w.name(append(dst, w.outComma()), taken, prefix+f.name)
		}
		dst = w.name(append(dst, w.outComma()), taken, prefix+"error")
	}
	return append(w.withoutComma(dst, from), lineEnd(header)...)
}

// name appends the name of a column, which must differ from those of the input.
func (w *writer) name(dst []byte, taken map[string]bool, name string) []byte {
	for taken[name] {
		name = "lookup_" + name
	}
	taken[name] = true
	return w.plan.appendCell(dst, name)
}

func (w *writer) outComma() byte {
	switch {
	case w.plan.format == TSV:
		return '\t'
	case w.Kind == Commas:
		return w.comma()
	}
	return ','
}

func lineEnd(row []byte) string {
	if bytes.HasSuffix(row, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// row appends a row of the output. all are the lookups of the row.
func (w *writer) row(dst []byte, all []lookup, answer func(*lookup) Answer) []byte {
	l := &all[0]
	if w.plan.format.isJSON() {
		if w.plan.format == JSON {
			dst = append(dst, ",\n"...)
		}
		dst = w.object(dst, all, answer)
		if w.plan.format == NDJSON {
			dst = append(dst, '\n')
		}
		return dst
	}
	from := len(dst)
	if w.comma() != 0 {
		dst = w.cells(dst, l.row, l.missing)
	}
	if w.KeepLines {
		dst = w.plan.appendCell(append(dst, w.outComma()), view(l.line))
	}
	for i := range all {
		dst = w.plan.appendCells(dst, w.outComma(), all[i].query, answer(&all[i]))
	}
	return append(w.withoutComma(dst, from), lineEnd(l.row)...)
}

// withoutComma removes the comma at the beginning of a row that has no cells of the input.
func (w *writer) withoutComma(dst []byte, from int) []byte {
	if w.comma() != 0 {
		return dst
	}
	return slices.Delete(dst, from, from+1)
}

// keepsCells reports whether the output has the form of the input.
func (w *writer) keepsCells() bool {
	return !w.plan.format.isJSON() && w.comma() == w.outComma() && !w.plan.Safe
}

// cells appends the cells of a row, byte for byte if the output has the input's form.
func (w *writer) cells(dst, row []byte, missing int) []byte {
	if w.keepsCells() {
		dst = append(dst, trimLineEnd(row)...)
	} else {
		first := true
		for all := w.cellsOf(row); all.next(); first = false {
			if !first {
				dst = append(dst, w.outComma())
			}
			dst = w.plan.appendCell(dst, view(all.text()))
		}
	}
	for range missing {
		dst = append(dst, w.outComma())
	}
	return dst
}

// object appends the row as an object with the answer, or with one for each column.
func (w *writer) object(dst []byte, lookups []lookup, answer func(*lookup) Answer) []byte {
	l := &lookups[0]
	switch {
	case w.Kind == Objects:
		dst = append(dst, bytes.TrimSpace(l.row[:len(l.row)-1])...)
	case w.comma() != 0:
		dst = append(dst, '{')
		i := 0
		for all := w.cellsOf(l.row); all.next(); i++ {
			name := strconv.Itoa(i + 1)
			if i < len(w.names) {
				name = w.names[i]
			}
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(geo.AppendQuoted(dst, name), ':')
			dst = geo.AppendQuoted(dst, view(all.text()))
		}
	case w.KeepLines:
		dst = geo.AppendQuoted(append(dst, `{"line":`...), view(l.line))
	default:
		return w.plan.appendObject(dst, l.query, answer(l))
	}
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(geo.AppendQuoted(dst, result), ':')
	if w.labels == nil {
		return append(w.plan.appendObject(dst, l.query, answer(l)), '}')
	}
	for i := range lookups {
		comma := byte(',')
		if i == 0 {
			comma = '{'
		}
		dst = append(geo.AppendQuoted(append(dst, comma), w.labels[i]), ':')
		dst = w.plan.appendObject(dst, lookups[i].query, answer(&lookups[i]))
	}
	return append(dst, "}}"...)
}
