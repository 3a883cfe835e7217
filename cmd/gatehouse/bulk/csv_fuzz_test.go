package bulk_test

import (
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/cmd/gatehouse/bulk"
)

// FuzzCSV compares the cells with those that encoding/csv reads, for input that it accepts. Any
// other input must end without a panic, and as CSV that holds as many rows.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"a,8.8.8.8\n", "\"a\nb\",\"\"\"\",c", "\"", "a\"b,\"c\" d\n\"e", ",,\n\n,", "\"a\"\r\n",
		"\"\"\"\"\"\n", "a,b\n\"c,d\ne,f\n"} {
		f.Add(seed)
	}
	m := files(f)
	f.Fuzz(func(t *testing.T, input string) {
		if strings.ContainsAny(input, "\r\t\v\f\x00\u0085\u00a0\ufeff") || !utf8.ValidString(input) || len(input) < 4 {
			return
		}
		layout := bulk.Layout{Kind: bulk.Commas, Columns: []string{"1"}, NoHeader: true}
		got, end, err := job{input: input, layout: layout, format: bulk.NDJSON, fields: "city"}.run(t, m)
		if err != nil {
			return // such as a wrong compressed file
		}
		reader := csv.NewReader(strings.NewReader(input))
		reader.FieldsPerRecord = -1
		records, err := reader.ReadAll()
		if err != nil {
			return
		}
		for line := range strings.Lines(got) {
			var row map[string]any
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatalf("%q: got %s, want JSON: %v", input, line, err)
			}
			for len(records) > 0 && len(records[0]) == 1 && strings.TrimSpace(records[0][0]) == "" &&
				row["1"] != records[0][0] {
				records = records[1:] // a blank row
			}
			if len(records) == 0 {
				t.Fatalf("%q: got another row %s, want no more", input, line)
			}
			for i, cell := range records[0] {
				if row[strconv.Itoa(i+1)] != cell {
					t.Errorf("%q: got %s, want cell %d to be %q", input, line, i+1, cell)
				}
			}
			if len(row) != len(records[0])+1 {
				t.Errorf("%q: got %s, want %d cells", input, line, len(records[0]))
			}
			records = records[1:]
		}
		for _, r := range records {
			if len(r) != 1 || strings.TrimSpace(r[0]) != "" {
				t.Errorf("%q: got %d rows, want another: %q", input, end.Rows, r)
			}
		}
	})
}
