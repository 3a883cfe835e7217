package bulk_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"gatehouse/cmd/gatehouse/bulk"
	"gatehouse/providers/mmdb"
)

// parquet runs a job with an output of Parquet, which close completes.
func (j job) parquet(t *testing.T, m *mmdb.Mapped) (out *bytes.Buffer, close func() error, err error) {
	t.Helper()
	in, err := bulk.NewInput(strings.NewReader(j.input))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := bulk.NewPlan(bulk.CSV, strings.Split(j.fields, ","), j.layout.Kind)
	if err != nil {
		t.Fatal(err)
	}
	plan.Comma = j.layout.Separator
	out = &bytes.Buffer{}
	rows := bulk.NewParquet(out, plan, j.layout)
	_, err = bulk.Run(context.Background(), bulk.Config{Input: in, Layout: j.layout, Plan: plan,
		Source: bulk.NewFiles(m, plan), Output: rows, Workers: 2, MaxRows: 1000, MaxErrors: -1})
	return out, rows.Close, err
}

// shownParquet returns the columns of a file with their types, and its rows.
func shownParquet(t *testing.T, text []byte) (columns, rows string) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Root().Columns() {
		columns += fmt.Sprintf("%s %s, ", c.Name(), c.Type())
	}
	reader := parquet.NewReader(f)
	defer reader.Close()
	for row := make([]parquet.Row, 1); ; {
		n, err := reader.ReadRows(row)
		if n == 1 && len(rows) < 1000 {
			rows += fmt.Sprintf("%v\n", []parquet.Value(row[0]))
		}
		if err == io.EOF {
			return columns, rows
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestParquet(t *testing.T) {
	day := func() string { return strconv.FormatInt(time.Now().Unix()/86400, 10) }
	built, m := day(), files(t)
	for built != day() { // midnight
		built, m = day(), files(t)
	}
	for name, c := range map[string]struct {
		job
		columns, rows string
	}{
		"lines": {job{"8.8.8.8\n9.9.9.9\nx", bulk.Layout{Kind: bulk.Lines}, "", "city,asn,lat,mobile,asOf,ok", 0, 0},
			"query STRING, city STRING, asn INT(64,true), lat DOUBLE, mobile BOOLEAN, asOf DATE, ok BOOLEAN, error STRING, ",
			"[8.8.8.8 Honolulu 15169 <null> <null> " + built + " true <null>]\n" +
				"[9.9.9.9 <null> <null> <null> <null> <null> false no_location]\n" +
				"[x <null> <null> <null> <null> <null> false invalid_query]\n"},
		"csv": {job{"\xef\xbb\xbfz col;\"a;\"\r\n8.8.8.8;\"x\n\"\"y\"\"\"\r\n1.1.1.1\n8.8.8.8;\xff\n8.8.8.8;;x\n\"8;\n",
			bulk.Layout{Kind: bulk.Commas, Separator: ';', Columns: []string{"1"}}, "", "country=land", 0, 0},
			"z col STRING, a; STRING, land STRING, error STRING, ",
			"[8.8.8.8 x\n\"y\" United States <null>]\n[1.1.1.1  Australia, \"Oz\" <null>]\n[8.8.8.8 � United States <null>]\n" +
				"[8.8.8.8 ;x <null> invalid_row]\n[\"8;  <null> invalid_row]\n"},
		"two columns": {job{"a\tb\n8.8.8.8\t1.1.1.1\n", bulk.Layout{Kind: bulk.Tabs, Columns: []string{"a", "b"}}, "", "city", 0, 0},
			"a STRING, b STRING, a_city STRING, a_error STRING, b_city STRING, b_error STRING, ",
			"[8.8.8.8 1.1.1.1 Honolulu <null> <null> <null>]\n"},
		"no rows": {job{"", bulk.Layout{Kind: bulk.Commas, Columns: []string{"a"}}, "", "city", 0, 0},
			"city STRING, error STRING, ", ""},
	} {
		out, complete, err := c.parquet(t, m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len())); err == nil {
			t.Errorf("%s: got a file before Close, want none that can be read", name)
		}
		if err := complete(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		columns, rows := shownParquet(t, out.Bytes())
		if columns != c.columns || !strings.HasPrefix(rows, c.rows) {
			t.Errorf("%s: got %s\n%s\nwant %s\n%s", name, columns, rows, c.columns, c.rows)
		}
	}
	twice := bulk.Layout{Kind: bulk.Commas, Columns: []string{"1"}}
	for header, want := range map[string]string{"ip,b,b": `2 and 3 have the name "b"`, "ip,,b": "column 2 has no name"} {
		_, _, err := job{input: header + "\n8.8.8.8,,\n", layout: twice, fields: "city"}.parquet(t, m)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", header, err, want)
		}
	}
}

// TestParquetRowGroups expects many rows in several row groups, of which one is in memory.
func TestParquetRowGroups(t *testing.T) {
	m := files(t)
	const rows = 300_000
	out, complete, err := job{input: strings.Repeat("8.8.8.8\n", rows), layout: bulk.Layout{Kind: bulk.Lines},
		fields: "city"}.parquet(t, m)
	if err != nil || complete() != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.RowGroups()); n != 3 || f.NumRows() != rows {
		t.Errorf("got %d row groups with %d rows, want 3 with %d", n, f.NumRows(), rows)
	}
}
