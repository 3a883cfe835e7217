package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"gatehouse/cmd/gatehouse/bulk"
	"gatehouse/providers/mmdb"
)

var errFull = errors.New("the disk is full")

// disk takes some writes, and then no more.
type disk struct {
	bytes.Buffer
	writes int
}

func (d *disk) Write(p []byte) (int, error) {
	if d.writes == 0 {
		return 0, errFull
	}
	d.writes--
	return d.Buffer.Write(p)
}

// TestRunGoesOn ends a run after each row, and expects the output of one that was not interrupted.
func TestRunGoesOn(t *testing.T) {
	m := files(t)
	const mark = "\ufeff"
	lines, csv := bulk.Layout{Kind: bulk.Lines}, bulk.Layout{Kind: bulk.Commas, Columns: []string{"ip"}}
	for name, j := range map[string]job{
		"lines": {input: mark + "8.8.8.8\n\nx\n" + strings.Repeat("y", 2<<20) + "\n1.1.1.1\n8.8.8.9",
			layout: lines, format: bulk.JSON},
		"csv": {input: mark + "ip,b\n8.8.8.8,\"1\n2\"\nx,\n\"y,\n1.1.1.1,3\n", layout: csv, format: bulk.CSV},
		"text": {input: "8.8.8.8 1.1.1.1\nno\n9.9.9.9 and 8.8.8.8\n",
			layout: bulk.Layout{Kind: bulk.Text}, format: bulk.NDJSON},
	} {
		j.fields = "city"
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := io.WriteString(z, j.input); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		for _, input := range []string{j.input, packed.String()} {
			path := filepath.Join(t.TempDir(), "input")
			if err := os.WriteFile(path, []byte(input), 0o600); err != nil {
				t.Fatal(err)
			}
			want := &disk{writes: 1000}
			whole, err := j.goOn(t, m, path, want, bulk.Position{})
			if err != nil {
				t.Fatal(err)
			}
			for writes := range 1000 - want.writes {
				got := &disk{writes: writes}
				end, err := j.goOn(t, m, path, got, bulk.Position{})
				if !errors.Is(err, errFull) {
					t.Fatalf("%s: got error %v after %d writes, want %v", name, err, writes, errFull)
				}
				got.Truncate(int(end.Output))
				got.writes = 1000
				end, err = j.goOn(t, m, path, got, end)
				if err != nil || got.String() != want.String() || end != whole {
					t.Errorf("%s, interrupted after %d writes: got error %v, %+v and\n%s\nwant %+v and\n%s", name,
						writes, err, end, got, whole, want)
				}
			}
		}
	}
}

// goOn runs a job over a file from a position, with one row a chunk.
func (j job) goOn(t *testing.T, m *mmdb.Mapped, path string, out io.Writer,
	from bulk.Position) (bulk.Position, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := bulk.NewInput(f)
	if err != nil {
		t.Fatal(fmt.Errorf("read input: %w", err))
	}
	plan, err := bulk.NewPlan(j.format, []string{j.fields}, j.layout.Kind)
	if err != nil {
		t.Fatal(err)
	}
	return bulk.Run(context.Background(), bulk.Config{Input: in, Layout: j.layout, Plan: plan,
		Source: bulk.NewFiles(m, plan), Output: out, Workers: 1, MaxRows: 1, MaxErrors: -1, From: from})
}
