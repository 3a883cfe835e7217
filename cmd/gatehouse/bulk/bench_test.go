package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/actors/geo"
	"gatehouse/cmd/gatehouse/bulk"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

// BenchmarkRows looks up rows of CSV in files, with records that were rendered before (known) and
// with records that each row sees for the first time (new). The output is CSV, or Parquet with the
// usual fields of CSV.
func BenchmarkRows(b *testing.B) {
	const networks = 1 << 16
	dir := b.TempDir()
	path := filepath.Join(dir, "city.mmdb")
	places := map[string]geo.Location{}
	for i := range networks {
		places[fmt.Sprintf("%d.%d.0.0/16", 20+i>>8&127, i&255)] = geo.Location{Country: "Germany",
			CountryCode: "DE", City: fmt.Sprintf("Town %d", i), RegionName: "Hesse", Lat: 50, Lon: 8,
			Timezone: "Europe/Berlin"}
	}
	mmdbtest.WriteCity(b, path, places)
	m, err := mmdb.Map(path)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	var rows strings.Builder
	fmt.Fprintln(&rows, "id,ip,page")
	const count = 1 << 15
	for i := range count {
		fmt.Fprintf(&rows, "%d,%d.%d.1.2,\"/page, %d\"\n", i, 20+i>>8&127, i&255, i)
	}
	for name, fields := range map[string][]string{"csv": nil, "few": {"country", "city"}, "parquet": nil} {
		plan, err := bulk.NewPlan(bulk.CSV, fields, bulk.Commas)
		if err != nil {
			b.Fatal(err)
		}
		known := bulk.NewFiles(m, plan)
		for _, isNew := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/new=%t", name, isNew), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					source := known
					if isNew {
						source = bulk.NewFiles(m, plan)
					}
					in, err := bulk.NewInput(strings.NewReader(rows.String()))
					if err != nil {
						b.Fatal(err)
					}
					layout := bulk.Layout{Kind: bulk.Commas, Columns: []string{"ip"}}
					output, end := io.Discard, func() error { return nil }
					if name == "parquet" {
						rows := bulk.NewParquet(io.Discard, plan, layout)
						output, end = rows, rows.Close
					}
					_, err = bulk.Run(context.Background(), bulk.Config{Input: in, Plan: plan, Source: source,
						Layout: layout, Output: output, Workers: 1, MaxRows: 1 << 20, MaxErrors: -1})
					if err = errors.Join(err, end()); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/row")
			})
		}
	}
}
