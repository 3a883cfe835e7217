package bulk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// Limits of a row group, which is in memory until it is written.
const (
	groupRows  = 1 << 17
	groupBytes = 64 << 20 // of the rows as CSV
)

// Parquet is an output in Parquet's format, of a Plan for CSV. It takes the rows that Run writes,
// and keeps at most a row group of them in memory. A file is complete only after Close: nothing
// reads it before.
type Parquet struct {
	out     io.Writer
	plan    *Plan
	layout  Layout // of the rows that Run writes
	answers int    // of each row
	columns []parquetColumn
	file    *parquet.GenericWriter[any]
	cells   [][]byte // of the row
	rows    int      // of the row group
	bytes   int
}

// parquetColumn is a column of the output.
type parquetColumn struct {
	name   string
	kind   parquetKind
	isCell bool // of the input: an empty text is no null
	values []parquet.Value
}

type parquetKind int

const (
	parquetText parquetKind = iota
	parquetNumber
	parquetInteger
	parquetFlag
	parquetDate
)

// parquetKinds are the kinds of the members of answers that are no texts.
var parquetKinds = map[string]parquetKind{
	"lat": parquetNumber, "lon": parquetNumber,
	"utcOffsetSeconds": parquetInteger, "accuracyRadiusKm": parquetInteger, "asn": parquetInteger,
	"geonameId": parquetInteger, "confidence": parquetInteger,
	"ok": parquetFlag, "mobile": parquetFlag, "proxy": parquetFlag, "hosting": parquetFlag,
	"isEU": parquetFlag, "isVPN": parquetFlag, "isTor": parquetFlag, "isProxy": parquetFlag,
	"isHosting": parquetFlag,
	"asOf":      parquetDate,
}

// NewParquet returns an output for the rows of a run with a plan for CSV and a layout.
func NewParquet(out io.Writer, plan *Plan, input Layout) *Parquet {
	rows := Layout{Kind: Commas}
	if input.Kind == Commas {
		rows.Separator = input.Separator
	}
	return &Parquet{out: out, plan: plan, layout: rows, answers: max(1, len(input.Columns))}
}

// Write takes whole rows. The first one is the header.
func (p *Parquet) Write(rows []byte) (int, error) {
	rest := rows
	if p.file == nil && len(rest) > 0 {
		n, _ := quotedRow(rest, p.layout.comma(), true)
		if err := p.begin(bytes.TrimPrefix(rest[:n], magicUTF8)); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	for len(rest) > 0 {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 || bytes.IndexByte(rest[:n], '"') >= 0 {
			n, _ = quotedRow(rest, p.layout.comma(), true)
		}
		if err := p.row(rest[:n]); err != nil {
			return 0, err
		}
		p.rows, p.bytes, rest = p.rows+1, p.bytes+n, rest[n:]
	}
	return len(rows), p.flush()
}

// begin makes the columns of a header: cells of the input, and then the fields of each answer.
func (p *Parquet) begin(header []byte) error {
	for cells := p.layout.cellsOf(header); header != nil && cells.next(); {
		p.columns = append(p.columns, parquetColumn{name: string(cells.text()), isCell: true})
	}
	kinds := p.kinds()
	if header == nil { // the input is empty
		for _, f := range p.plan.fields {
			p.columns = append(p.columns, parquetColumn{name: f.name})
		}
		p.columns, kinds = append(p.columns, parquetColumn{name: "error"}), kinds[:len(p.plan.fields)+1]
	}
	fields := p.columns[len(p.columns)-len(kinds):]
	for i, kind := range kinds {
		fields[i].kind, fields[i].isCell = kind, false
	}
	root := parquetRoot{}
	for i, c := range p.columns {
		same := slices.IndexFunc(p.columns, func(o parquetColumn) bool { return o.name == c.name })
		switch {
		case c.name == "":
			return &HeaderError{fmt.Sprintf("column %d has no name, which Parquet needs", i+1)}
		case same < i:
			return &HeaderError{fmt.Sprintf("columns %d and %d have the name %q: Parquet needs different ones",
				same+1, i+1, c.name)}
		}
		root.fields = append(root.fields, parquetField{c.node(), string(valid([]byte(c.name)))})
	}
	config := parquet.DefaultWriterConfig()
	config.Schema = parquet.NewSchema("lookups", root)
	config.CreatedBy = "gatehouse"
	config.DictionaryMaxBytes = 1 << 20 // of each column
	p.file = parquet.NewGenericWriter[any](p.out, config)
	return nil
}

// kinds returns the kinds of the columns at the end that are fields.
func (p *Parquet) kinds() (all []parquetKind) {
	for range p.answers {
		for _, f := range p.plan.fields {
			all = append(all, parquetKinds[f.path[len(f.path)-1]])
		}
		all = append(all, parquetText) // the error
	}
	return all
}

// node returns the column's part of the schema.
func (c *parquetColumn) node() parquet.Node {
	var node parquet.Node
	switch c.kind {
	case parquetNumber:
		node = parquet.Leaf(parquet.DoubleType)
	case parquetInteger:
		node = parquet.Int(64)
	case parquetFlag:
		node = parquet.Leaf(parquet.BooleanType)
	case parquetDate:
		node = parquet.Date()
	default:
		node = parquet.String()
		if !c.isCell {
			node = parquet.Encoded(node, &parquet.RLEDictionary)
		}
	}
	node = parquet.Compressed(node, &parquet.Snappy)
	if c.isCell {
		return parquet.Required(node)
	}
	return parquet.Optional(node)
}

// parquetRoot is a group whose fields keep their order.
type parquetRoot struct {
	parquet.Group
	fields []parquet.Field
}

func (r parquetRoot) Fields() []parquet.Field { return r.fields }

// GoType is not that of the fields: Go has no fields with such names as columns may have.
func (r parquetRoot) GoType() reflect.Type { return reflect.TypeFor[map[string]any]() }

type parquetField struct {
	parquet.Node
	name string
}

func (f parquetField) Name() string { return f.name }

func (f parquetField) Value(base reflect.Value) reflect.Value {
	return base.MapIndex(reflect.ValueOf(f.name))
}

// row adds the values of a row to the columns.
func (p *Parquet) row(row []byte) error {
	p.cells = p.cells[:0]
	for cells := p.layout.cellsOf(row); cells.next(); {
		p.cells = append(p.cells, cells.text())
	}
	if extra := len(p.cells) - len(p.columns); extra > 0 {
		p.cells = p.joined(extra)
	}
	if len(p.cells) < len(p.columns) {
		return fmt.Errorf("a row has %d cells, and there are %d columns", len(p.cells), len(p.columns))
	}
	for i, cell := range p.cells {
		c := &p.columns[i]
		v, err := c.value(cell)
		if err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
		level := 0
		if !c.isCell && !v.IsNull() {
			level = 1
		}
		c.values = append(c.values, v.Level(0, level, i))
	}
	return nil
}

// joined returns the cells of a row that has more than the header. The last one of the input gets
// the texts of the others.
func (p *Parquet) joined(extra int) [][]byte {
	last := slices.IndexFunc(p.columns, func(c parquetColumn) bool { return !c.isCell }) - 1
	rest := bytes.Join(p.cells[last:last+extra+1], []byte{p.layout.comma()})
	return slices.Replace(p.cells, last, last+extra+1, rest)
}

// value returns the value of a cell. It shares memory with the cell.
func (c *parquetColumn) value(cell []byte) (v parquet.Value, err error) {
	if len(cell) == 0 && !c.isCell {
		return parquet.NullValue(), nil
	}
	switch c.kind {
	case parquetNumber:
		var f float64
		f, err = strconv.ParseFloat(view(cell), 64)
		return parquet.DoubleValue(f), err
	case parquetInteger:
		var n int64
		n, err = strconv.ParseInt(view(cell), 10, 64)
		return parquet.Int64Value(n), err
	case parquetFlag:
		return parquet.BooleanValue(string(cell) == "true"), nil
	case parquetDate:
		var day time.Time
		day, err = time.Parse(time.DateOnly, view(cell))
		return parquet.Int32Value(int32(day.Unix() / (24 * 60 * 60))), err
	}
	return parquet.ByteArrayValue(valid(cell)), nil
}

// valid returns a text as UTF-8, which Parquet needs.
func valid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

// flush gives the values to the file, and ends a row group that is large enough.
func (p *Parquet) flush() error {
	if p.file == nil {
		return nil
	}
	for i, w := range p.file.ColumnWriters() {
		c := &p.columns[i]
		if _, err := w.WriteRowValues(c.values); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
		clear(c.values)
		c.values = c.values[:0]
	}
	if p.rows < groupRows && p.bytes < groupBytes {
		return nil
	}
	p.rows, p.bytes = 0, 0
	return p.file.Flush()
}

// Close completes the file.
func (p *Parquet) Close() (err error) {
	if p.file == nil {
		err = p.begin(nil)
	}
	if err = cmp.Or(err, p.flush()); err != nil {
		return err
	}
	return errors.Join(p.file.Close())
}
