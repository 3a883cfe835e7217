package bulk_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"gatehouse/actors/geo"
	"gatehouse/cmd/gatehouse/bulk"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files returns database files that know 8.8.8.0/24, 1.1.1.0/24 and 2001:4860::/32.
func files(t testing.TB) *mmdb.Mapped {
	t.Helper()
	dir := t.TempDir()
	city, asn := filepath.Join(dir, "city.mmdb"), filepath.Join(dir, "asn.mmdb")
	mmdbtest.WriteCity(t, city, map[string]geo.Location{
		"8.8.8.0/24":     {Country: "United States", CountryCode: "US", City: "Honolulu"},
		"1.1.1.0/24":     {Country: "Australia, \"Oz\"", CountryCode: "AU"},
		"2001:4860::/32": {Country: "Japan", CountryCode: "JP", City: "Tokyo"},
	})
	mmdbtest.WriteASN(t, asn, map[string]mmdbtest.AS{"8.8.8.0/24": {Number: 15169,
		Organization: "Google LLC"}})
	m, err := mmdb.Map(city, asn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// job is a run over a text.
type job struct {
	input  string
	layout bulk.Layout
	format bulk.Format
	fields string
	max    int64 // failed rows; 0 = any number
	rows   int   // of a chunk; 0 = many
}

// run runs a job with files, and returns what it writes.
func (j job) run(t testing.TB, m *mmdb.Mapped) (string, bulk.Position, error) {
	t.Helper()
	in, err := bulk.NewInput(strings.NewReader(j.input))
	if err != nil {
		return "", bulk.Position{}, err
	}
	var names []string
	if j.fields != "" {
		names = strings.Split(j.fields, ",")
	}
	plan, err := bulk.NewPlan(j.format, names, j.layout.Kind)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	config := bulk.Config{Input: in, Layout: j.layout, Plan: plan, Source: bulk.NewFiles(m, plan),
		Output: &out, Workers: 2, MaxRows: 1000, MaxErrors: -1}
	if j.max > 0 {
		config.MaxErrors = j.max
	}
	if j.rows > 0 {
		config.MaxRows = j.rows
	}
	end, err := bulk.Run(context.Background(), config)
	return out.String(), end, err
}

func TestFormats(t *testing.T) {
	m := files(t)
	csv := bulk.Layout{Kind: bulk.Commas, Columns: []string{"ip"}}
	two := bulk.Layout{Kind: bulk.Commas, Columns: []string{"b", "A"}}
	semicolons := bulk.Layout{Kind: bulk.Commas, Separator: ';', Columns: []string{"ip"}}
	lines, objects := bulk.Layout{Kind: bulk.Lines}, bulk.Layout{Kind: bulk.Objects, Field: "a.ip"}
	for name, c := range map[string]struct {
		job
		want string
	}{
		"lines as csv": {job{"8.8.8.8\n\n 1.1.1.1:53 \r\n[2001:4860::1]:443\nx\n10.0.0.1", lines, bulk.CSV,
			"country,as", 0, 0}, "query,country,as,error\n8.8.8.8,United States,AS15169 Google LLC,\n" +
			"1.1.1.1:53,\"Australia, \"\"Oz\"\"\",,\n[2001:4860::1]:443,Japan,,\nx,,,invalid_query\n" +
			"10.0.0.1,,,invalid_query\n"},
		"lines as ndjson": {job{"\xef\xbb\xbf8.8.8.8", lines, bulk.NDJSON, "country,ip,ipVersion", 0, 0},
			`{"query":"8.8.8.8","country":"United States","ip":"8.8.8.8","ipVersion":"IPv4"}` + "\n"},
		"whole answers": {job{"8.8.8.8\n9.9.9.9\n", lines, bulk.NDJSON, "", 0, 0},
			`{"ok":true,"query":"8.8.8.8","ip":"8.8.8.8","ipVersion":"IPv4","location":{"continent":null,` +
				`"country":"United States","countryCode":"US","regionName":null,"city":"Honolulu","zip":null,` +
				`"lat":null,"lon":null,"timezone":null,"utcOffsetSeconds":null,"currency":"USD"},"network":{` +
				`"isp":"Google LLC","org":"Google LLC","as":"AS15169 Google LLC","asname":"Google LLC",` +
				`"reverse":null},"flags":{"mobile":null,"proxy":null,"hosting":null}}` + "\n" +
				`{"ok":false,"query":"9.9.9.9","error":"no_location","message":` +
				`"The provider has no data about this address.","reason":"no_location"}` + "\n"},
		"prefix and port": {job{"8.8.8.0/24\n8.8.8.8:65536\n8.8.8.8:65535\n", lines, bulk.CSV, "message,city", 0, 0},
			"query,message,city,error\n8.8.8.0/24,This is a prefix: look up one of its addresses.,,invalid_query\n" +
				"8.8.8.8:65536,\"This is not an IPv4 address, an IPv6 address or a domain. Check its spelling.\",," +
				"invalid_query\n8.8.8.8:65535,,Honolulu,\n"},
		"duplicate keys": {job{`{"a":1,"a":{"ip":"x","ip":"8.8.8.8"}}`, objects, bulk.NDJSON, "city", 0, 0},
			`{"a":1,"a":{"ip":"x","ip":"8.8.8.8"},"lookup":{"city":"Honolulu"}}` + "\n"},
		"json": {job{"8.8.8.8\n\n1.1.1.1\n", lines, bulk.JSON, "countryCode", 0, 1},
			"[\n{\"query\":\"8.8.8.8\",\"countryCode\":\"US\"},\n{\"query\":\"1.1.1.1\",\"countryCode\":\"AU\"}\n]\n"},
		"no rows": {job{"\n", lines, bulk.JSON, "", 0, 0}, "[\n]\n"},
		"csv keeps rows": {job{"\xef\xbb\xbfid,ip,\"a\nb\"\r\n1,8.8.8.8,\"x, \"\"y\"\"\"\r\n2,\"1.1.1.1\",\r\n3\n" +
			"4,8.8.8.8,,\n\"5,8.8.8.8,\n6,8.8.8.8,z", csv, bulk.CSV, "countryCode,ip", 0, 0},
			"\xef\xbb\xbfid,ip,\"a\nb\",countryCode,lookup_ip,error\r\n1,8.8.8.8,\"x, \"\"y\"\"\",US,8.8.8.8,\r\n" +
				"2,\"1.1.1.1\",,AU,1.1.1.1,\r\n3,,,,,invalid_row\n4,8.8.8.8,,,,,invalid_row\n" +
				"\"\"\"5,8.8.8.8,\",,,,,invalid_row\n6,8.8.8.8,z,US,8.8.8.8,\n"},
		"csv as ndjson": {job{"\xef\xbb\xbfip,b\n8.8.8.8,\"1 \"\"2\"\"\"\n", csv, bulk.NDJSON, "city", 0, 0},
			`{"ip":"8.8.8.8","b":"1 \"2\"","lookup":{"city":"Honolulu"}}` + "\n"},
		"csv as tsv": {job{"\xef\xbb\xbfip,b\n8.8.8.8,\"1\t2\"\n", csv, bulk.TSV, "city", 0, 0},
			"ip\tb\tcity\terror\n8.8.8.8\t1 2\tHonolulu\t\n"},
		"csv with semicolons": {job{"id;ip\r\n1;8.8.8.8\r\n\"a;b,c\";1.1.1.1\r\n", semicolons, bulk.CSV,
			"country,as", 0, 0}, "id;ip;country;as;error\r\n1;8.8.8.8;United States;AS15169 Google LLC;\r\n" +
			"\"a;b,c\";1.1.1.1;\"Australia, \"\"Oz\"\"\";;\r\n"},
		"csv with semicolons as tsv": {job{"ip;b\n8.8.8.8;\"1;2\"\n", semicolons, bulk.TSV, "city", 0, 0},
			"ip\tb\tcity\terror\n8.8.8.8\t1;2\tHonolulu\t\n"},
		"tsv as csv": {job{"ip\tb\n8.8.8.8\t1;2\n", bulk.Layout{Kind: bulk.Tabs, Columns: []string{"ip"}}, bulk.CSV,
			"city", 0, 0}, "ip,b,city,error\n8.8.8.8,\"1;2\",Honolulu,\n"},
		"two columns": {job{"a,b,a_city\r\n8.8.8.8,1.1.1.1,x\r\n10.0.0.1\n9.9.9.9,8.8.8.8,,\n\"9,\n", two, bulk.CSV, "city,ip", 0, 2},
			"a,b,a_city,b_city,b_ip,b_error,lookup_a_city,a_ip,a_error\r\n8.8.8.8,1.1.1.1,x,,1.1.1.1,,Honolulu,8.8.8.8,\r\n" +
				"10.0.0.1,,,,,invalid_row,,,invalid_query\n9.9.9.9,8.8.8.8,,,,,invalid_row,,,invalid_row\n" +
				"\"\"\"9,\",,,,,invalid_row,,,invalid_row\n"},
		"two columns as ndjson": {job{"a,b\n8.8.8.8,1.1.1.1\n", two, bulk.NDJSON, "country=from", 0, 0},
			`{"a":"8.8.8.8","b":"1.1.1.1","lookup":{"b":{"from":"Australia, \"Oz\""},"a":{"from":"United States"}}}` + "\n"},
		"two columns with one name": {job{"a,a\n8.8.8.8,1.1.1.1\n", bulk.Layout{Kind: bulk.Commas, Columns: []string{"a", "2"}},
			bulk.CSV, "city", 0, 0}, "a,a,1_city,1_error,2_city,2_error\n8.8.8.8,1.1.1.1,Honolulu,,,\n"},
		"csv without a header": {job{"", bulk.Layout{Kind: bulk.Commas, Columns: []string{"2"}}, bulk.CSV, "city", 0, 0}, ""},
		"no header": {job{"\xef\xbb\xbfa,8.8.8.8\n", bulk.Layout{Kind: bulk.Commas, Columns: []string{"2"}, NoHeader: true},
			bulk.CSV, "city", 0, 0}, "\xef\xbb\xbfa,8.8.8.8,Honolulu,\n"},
		"tsv": {job{"IP\tb\n8.8.8.8\t\"x\n", bulk.Layout{Kind: bulk.Tabs, Columns: []string{"ip"}}, bulk.TSV,
			"city", 0, 0}, "IP\tb\tcity\terror\n8.8.8.8\t\"x\tHonolulu\t\n"},
		"objects": {job{`{"a":{"ip":"8.8.8.8"},"n":1.50}` + "\n{}\nno\n" + `{"lookup":1,"a":{"ip":"1.1.1.1"}}`,
			objects, bulk.NDJSON, "countryCode", 0, 0},
			`{"a":{"ip":"8.8.8.8"},"n":1.50,"lookup":{"countryCode":"US"}}` + "\n" +
				`{"lookup":{"countryCode":null,"error":"invalid_row"}}` + "\n" +
				`{"row":"no","lookup":{"countryCode":null,"error":"invalid_row"}}` + "\n" +
				`{"a":{"ip":"1.1.1.1"},"lookup":{"countryCode":"AU"}}` + "\n"},
		"objects with dots in names": {job{`{"a.ip":"8.8.8.8"}` + "\n" + `{"a":{"ip":"1.1.1.1"},"a.ip":"8.8.8.8"}`,
			objects, bulk.NDJSON, "countryCode", 0, 0}, `{"a.ip":"8.8.8.8","lookup":{"countryCode":"US"}}` + "\n" +
			`{"a":{"ip":"1.1.1.1"},"a.ip":"8.8.8.8","lookup":{"countryCode":"AU"}}` + "\n"},
		"objects as csv": {job{`{"a":{"ip":"8.8.8.8"}}`, objects, bulk.CSV, "countryCode", 0, 0},
			"query,countryCode,error\n8.8.8.8,US,\n"},
		"extract from an agent": {job{"1.1.1.1 - \"Chrome/8.0.0.0 Safari/537.36 Edg/8.0.0.0\" in/8.8.8.8 /8.0.0.0 " +
			"http://8.0.0.0/", bulk.Layout{Kind: bulk.Text}, bulk.CSV, "countryCode", 0, 0},
			"query,countryCode,error\n1.1.1.1,AU,\n8.8.8.8,US,\n8.0.0.0,,no_location\n8.0.0.0,,no_location\n"},
		"extract from other scripts": {job{"来自8.8.8.8的 “1.1.1.1”", bulk.Layout{Kind: bulk.Text}, bulk.CSV,
			"countryCode", 0, 0}, "query,countryCode,error\n8.8.8.8,US,\n1.1.1.1,AU,\n"},
		"extract": {job{"8.8.8.8 - - [10/Oct/2000:13:55:36] \"GET /1.2.3 v8.8.8.8.1\" from=1.1.1.1:80, " +
			"[2001:4860::1]:443 (8.8.8.8).\nnothing\n1.1.1.1", bulk.Layout{Kind: bulk.Text}, bulk.CSV,
			"countryCode", 0, 0}, "query,countryCode,error\n8.8.8.8,US,\n1.1.1.1,AU,\n2001:4860::1,JP,\n" +
			"8.8.8.8,US,\n1.1.1.1,AU,\n"},
		"details": {job{"8.8.8.8\n1.1.1.1\n8.8.8.9", lines, bulk.CSV,
			"location.city,prefix,asn,data.source", 0, 0}, "query,location.city,prefix,asn,data.source,error\n" +
			"8.8.8.8,Honolulu,8.8.8.0/24,15169,mmdb,\n1.1.1.1,,1.1.1.0/24,,mmdb,\n" +
			"8.8.8.9,Honolulu,8.8.8.0/24,15169,mmdb,\n"},
		"objects of fields": {job{"8.8.8.8", lines, bulk.CSV, "proxy, flags,city", 0, 0},
			"query,proxy,mobile,hosting,city,error\n8.8.8.8,,,,Honolulu,\n"},
		"the object of details": {job{"", lines, bulk.CSV, "data", 0, 0},
			"query,prefix,accuracyRadiusKm,asn,source,asOf,regionCode,continentCode,connectionType,asDomain," +
				"geonameId,confidence,isEU,isVPN,isTor,isProxy,isHosting,error\n"},
		"a field twice": {job{"8.8.8.8", lines, bulk.NDJSON, "country,city,country", 0, 0},
			`{"query":"8.8.8.8","country":"United States","city":"Honolulu"}` + "\n"},
	} {
		got, _, err := c.job.run(t, m)
		if err != nil || got != c.want {
			t.Errorf("%s: got error %v and\n%s\nwant none and\n%s", name, err, got, c.want)
		}
	}
}

func TestNewPlanRefusesUnknownFields(t *testing.T) {
	for _, name := range []string{"contry", "location.contry", "flags.country", "data.", "Country", ""} {
		_, err := bulk.NewPlan(bulk.CSV, []string{"city", name}, bulk.Lines)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) ||
			!strings.Contains(err.Error(), "countryCode, currency") {
			t.Errorf("got %v, want an error that names %q and the fields", err, name)
		}
	}
}

func TestHeaderErrors(t *testing.T) {
	m := files(t)
	for _, layout := range []bulk.Layout{
		{Kind: bulk.Commas, Columns: []string{"addr"}}, {Kind: bulk.Commas, Columns: []string{"3"}},
		{Kind: bulk.Commas, Columns: []string{"ip", "2"}},
		{Kind: bulk.Commas, Columns: []string{"0"}}, {Kind: bulk.Commas},
		{Kind: bulk.Commas, Columns: []string{"ip"}, NoHeader: true},
		{Kind: bulk.Commas, Columns: []string{"0"}, NoHeader: true},
	} {
		_, _, err := job{input: "id,ip\n1,8.8.8.8\n", layout: layout, format: bulk.CSV}.run(t, m)
		var header *bulk.HeaderError
		if !errors.As(err, &header) {
			t.Errorf("%+v: got error %v, want a HeaderError", layout, err)
		}
	}
}

// TestLinesThatEndWithCR has a table that would be one long header.
func TestLinesThatEndWithCR(t *testing.T) {
	for input, refused := range map[string]bool{"id,ip\r1,8.8.8.8\r": true, "id,ip\r1,8.8.8.8\r\n": true,
		"id,ip\r\n1,8.8.8.8\r\n": false, "\"i\r\nd\",ip\r\n1,8.8.8.8\r\n": false} {
		_, end, err := job{input: input, layout: bulk.Layout{Kind: bulk.Commas, Columns: []string{"2"}},
			format: bulk.CSV}.run(t, files(t))
		if got := err != nil && strings.Contains(err.Error(), "CR alone"); got != refused || !got && end.Rows != 1 {
			t.Errorf("%q: got error %v and %+v, want it refused: %t", input, err, end, refused)
		}
	}
}

func TestMaxErrorsEndsBehindTheRow(t *testing.T) {
	m := files(t)
	for _, rows := range []int{1, 2, 3, 100} {
		got, end, err := job{input: "8.8.8.8\n10.1.1.1\nx\ny\n9.9.9.9\n::1\n8.8.8.8\nz\n8.8.8.8\n", layout: bulk.Layout{Kind: bulk.Lines},
			format: bulk.CSV, fields: "city", max: 2, rows: rows}.run(t, m)
		want := "query,city,error\n8.8.8.8,Honolulu,\n10.1.1.1,,invalid_query\nx,,invalid_query\n" +
			"y,,invalid_query\n9.9.9.9,,no_location\n::1,,invalid_query\n8.8.8.8,Honolulu,\n" +
			"z,,invalid_query\n"
		if !errors.Is(err, bulk.ErrTooManyErrors) || got != want || end.Rows != 8 || end.Failed != 5 || end.Unknown != 1 ||
			end.Input != 43 {
			t.Errorf("%d rows a chunk: got error %v, %+v and\n%s\nwant\n%s", rows, err, end, got, want)
		}
	}
}

// TestMaxErrorsOfTwoColumns counts a row once, and looks at all of its columns.
func TestMaxErrorsOfTwoColumns(t *testing.T) {
	m := files(t)
	layout := bulk.Layout{Kind: bulk.Commas, Columns: []string{"1", "2"}, NoHeader: true}
	got, end, err := job{input: "8.8.8.8,9.9.9.9\nx,y\n10.0.0.1,9.9.9.9\n8.8.8.8,z\n8.8.8.8,8.8.8.8\n", layout: layout,
		format: bulk.CSV, fields: "city", max: 1}.run(t, m)
	if !errors.Is(err, bulk.ErrTooManyErrors) || end.Rows != 4 || end.Failed != 3 || end.Unknown != 1 ||
		!strings.HasSuffix(got, "\n8.8.8.8,z,Honolulu,,,invalid_query\n") {
		t.Errorf("got error %v, %+v and\n%s\nwant 4 rows, 3 failed, 1 unknown", err, end, got)
	}
}

// TestRandomBytes expects as many rows as there are lines that are not blank, whatever they hold.
func TestRandomBytes(t *testing.T) {
	m := files(t)
	var input bytes.Buffer
	want := 1
	for i := range 500 {
		fmt.Fprintf(&input, "8.8.8.%d\x00%c\xff\"%s\n", i%256, rune(i+' '), strings.Repeat("\r,\t", i%3))
		want++
	}
	for _, format := range []bulk.Format{bulk.CSV, bulk.TSV} {
		got, end, err := job{input: input.String(), layout: bulk.Layout{Kind: bulk.Lines}, format: format,
			fields: "country"}.run(t, m)
		if err != nil || end.Rows != 500 || end.Failed != 500 || format == bulk.TSV && strings.Count(got, "\n") != want {
			t.Errorf("%s: got error %v, %+v, %d lines, want %d", format, err, end, strings.Count(got, "\n"), want)
		}
	}
}

func TestLongRows(t *testing.T) {
	m := files(t)
	long := strings.Repeat("x", 3<<20)
	for name, c := range map[string]struct {
		job
		want string
	}{
		"line": {job{long + "\n8.8.8.8\n" + long, bulk.Layout{Kind: bulk.Lines}, bulk.CSV, "city", 0, 0},
			"query,city,error\n,,invalid_row\n8.8.8.8,Honolulu,\n,,invalid_row\n"},
		"quoted cell": {job{"ip,b\n8.8.8.8,\"" + strings.Repeat("x\n", 600<<10) + "\"\n8.8.8.8,c\n",
			bulk.Layout{Kind: bulk.Commas, Columns: []string{"ip"}}, bulk.CSV, "city", 0, 0}, ""},
	} {
		got, end, err := c.job.run(t, m)
		if err != nil || c.want != "" && got != c.want || !strings.Contains(got, "8.8.8.8") || end.Failed < 1 {
			t.Errorf("%s: got error %v, %+v and %.200s, want %s", name, err, end, got, c.want)
		}
	}
}

func TestCompressedInputNeedsMuchMemory(t *testing.T) {
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed, zstd.WithWindowSize(32<<20))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := bulk.NewInput(&packed); err == nil || !strings.Contains(err.Error(), "zstd -dc --long") {
		t.Errorf("got error %v, want one that says how to decompress it", err)
	}
}

func TestCompressedInput(t *testing.T) {
	m := files(t)
	var zipped, packed bytes.Buffer
	z := gzip.NewWriter(&zipped)
	p, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60_000 {
		fmt.Fprintf(z, "8.8.%d.%d\n", i/256, i%256)
		fmt.Fprintf(p, "8.8.%d.%d\n", i/256, i%256)
	}
	if err := errors.Join(z.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	for name, input := range map[string]string{"gzip": zipped.String(), "zstd": packed.String()} {
		lines := job{input: input, layout: bulk.Layout{Kind: bulk.Lines}, format: bulk.CSV, fields: "city"}
		if _, end, err := lines.run(t, m); err != nil || end.Rows != 60_000 || end.Failed != 0 {
			t.Errorf("%s: got error %v and %+v, want 60000 rows", name, err, end)
		}
		lines.input = input[:len(input)/2]
		in, err := bulk.NewInput(strings.NewReader(lines.input))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(in)
		out, end, err := lines.run(t, m)
		if err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("half a %s: got error %v, want one that says so", name, err)
		}
		want := int64(bytes.Count(text, []byte{'\n'}))
		if got := int64(strings.Count(out, "\n")) - 1; want == 0 || got != want || end.Rows != want {
			t.Errorf("half a %s: got %d and %d rows, want the %d before its end", name, got, end.Rows, want)
		}
	}
}

func TestInputThatIsNoText(t *testing.T) {
	for input, want := range map[string]string{
		"\xff\xfe8\x00.\x00": "UTF-16", "\xfe\xff\x008\x00.": "UTF-16", "PK\x03\x04\x14": "ZIP",
		"BZh91AY&SY\x80": "bzip2", "\xfd7zXZ\x00\x00": "xz", "PAR1\x15\x04": "Parquet",
	} {
		if _, err := bulk.NewInput(strings.NewReader(input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one that names %s", input, err, want)
		}
	}
}

func TestSeparator(t *testing.T) {
	for input, want := range map[string]string{"": ",,", "ip": ",,", "a,b;c": ",,", "a;b\nc,d": ";;",
		"a\tb,c;d": "\t,", "a\tb\n": "\t\t"} {
		in, err := bulk.NewInput(strings.NewReader(input))
		if err != nil {
			t.Fatal(err)
		}
		got := string([]byte{in.Separator("\t,;"), in.Separator(",;\t")})
		if got != want {
			t.Errorf("%q: got %q, want %q", input, got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	m := files(t)
	in, err := bulk.NewInput(strings.NewReader("8.8.8.8\n1.1.1.1\n8.8.8.8\n10.0.0.1\nx\n9.9.9.9\nx\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := bulk.NewSummary()
	plan := s.Plan()
	_, err = bulk.Run(context.Background(), bulk.Config{Input: in, Layout: bulk.Layout{Kind: bulk.Lines},
		Plan: plan, Source: bulk.NewFiles(m, plan), Output: &bytes.Buffer{}, Workers: 1, MaxRows: 3,
		MaxErrors: -1})
	var out bytes.Buffer
	if err = errors.Join(err, s.WriteJSON(&out)); err != nil {
		t.Fatal(err)
	}
	want := `{"rows":7,"failed":3,"countries":[{"name":"US","rows":2},{"name":"","rows":1},{"name":"AU","rows":1}],` +
		`"as":[{"name":"","rows":2},{"name":"AS15169 Google LLC","rows":2}],` +
		`"flags":{"hosting":0,"mobile":0,"proxy":0},"errors":[{"name":"invalid_query",` +
		`"reason":"malformed","rows":2},` +
		`{"name":"invalid_query","reason":"private_range","rows":1}]}` + "\n"
	if out.String() != want {
		t.Errorf("got %s, want %s", &out, want)
	}
	out.Reset()
	if err := s.WriteText(&out, strings.ToUpper); err != nil || !strings.Contains(out.String(), "GOOGLE LLC") ||
		!strings.Contains(out.String(), "\nINVALID_QUERY MALFORMED      2     28.6 %\n") {
		t.Errorf("got error %v and %s, want clean names", err, &out)
	}
}

// TestRewrittenFile expects an error instead of a crash or of wrong answers once a mapped file is
// rewritten in place. One that was replaced by renaming stays in use.
func TestRewrittenFile(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		want   error
	}{
		"truncated": {func(path string) error { return os.Truncate(path, 0) }, mmdb.ErrRewritten},
		"rewritten": {func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
			mmdb.ErrRewritten},
		"renamed": {func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		}, nil},
		"removed": {os.Remove, nil},
	} {
		path := filepath.Join(t.TempDir(), "city.mmdb")
		mmdbtest.WriteCity(t, path, map[string]geo.Location{"8.8.8.0/24": {City: "Honolulu"}})
		m, err := mmdb.Map(path)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := bulk.NewPlan(bulk.CSV, []string{"city"}, bulk.Lines)
		if err = errors.Join(err, c.change(path)); err != nil {
			t.Fatal(err)
		}
		in, err := bulk.NewInput(strings.NewReader("8.8.8.8\n"))
		if err != nil {
			t.Fatal(err)
		}
		end, err := bulk.Run(context.Background(), bulk.Config{Input: in, Output: io.Discard,
			Layout: bulk.Layout{Kind: bulk.Lines}, Plan: plan, Source: bulk.NewFiles(m, plan),
			Workers: 1, MaxRows: 1, MaxErrors: -1})
		if !errors.Is(err, c.want) || (err == nil) != (end.Rows == 1) || end.Failed > 0 {
			t.Errorf("%s: got %+v and error %v, want %v", name, end, err, c.want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFieldsAreThoseOfJSON compares each field as a cell, which is taken from the result itself,
// with the same field as JSON.
func TestFieldsAreThoseOfJSON(t *testing.T) {
	m := files(t)
	lines := bulk.Layout{Kind: bulk.Lines}
	names := []string{"continent", "country", "countryCode", "regionName", "city", "zip", "lat", "lon",
		"timezone", "utcOffsetSeconds", "currency", "isp", "org", "as", "asname", "reverse", "mobile",
		"proxy", "hosting"}
	for _, name := range names {
		for _, path := range []string{name, "source," + name} { // with JSON for the second
			cell, _, err := job{input: "8.8.8.8\n", layout: lines, format: bulk.TSV, fields: path}.run(t, m)
			if err != nil {
				t.Fatal(err)
			}
			object, _, err := job{input: "8.8.8.8\n", layout: lines, format: bulk.NDJSON, fields: name}.run(t, m)
			if err != nil {
				t.Fatal(err)
			}
			cells := strings.Split(strings.TrimSuffix(cell, "\n"), "\t")
			got := cells[len(cells)-2]
			if got == "" && strings.Contains(object, fmt.Sprintf("%q:null}", name)) {
				continue
			}
			if !strings.Contains(object, fmt.Sprintf("%q:%s}", name, got)) &&
				!strings.Contains(object, fmt.Sprintf("%q:%q}", name, got)) {
				t.Errorf("%s: got cell %q and JSON %s, want the same", name, got, object)
			}
		}
	}
}

// numbered is a Source that notes the numbers of its queries.
type numbered struct {
	*bulk.Files
	mu      sync.Mutex
	numbers map[string]int64
}

func (s *numbered) Answer(ctx context.Context, number int64, queries []geo.Query,
	answers []bulk.Answer) (int, error) {
	s.mu.Lock()
	for _, q := range queries {
		s.numbers[q.String()] = number
	}
	s.mu.Unlock()
	return s.Files.Answer(ctx, number, queries, answers)
}

// TestSourceKnowsTheOrder expects that queries have smaller numbers than those behind them,
// whichever worker is the first to ask.
func TestSourceKnowsTheOrder(t *testing.T) {
	m := files(t)
	var input strings.Builder
	for i := range 250 {
		fmt.Fprintf(&input, "8.8.8.%d\n", i)
	}
	in, err := bulk.NewInput(strings.NewReader(input.String()))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := bulk.NewPlan(bulk.NDJSON, []string{"city"}, bulk.Lines)
	if err != nil {
		t.Fatal(err)
	}
	source := &numbered{Files: bulk.NewFiles(m, plan), numbers: map[string]int64{}}
	if _, err := bulk.Run(context.Background(), bulk.Config{Input: in, Plan: plan, Source: source,
		Layout: bulk.Layout{Kind: bulk.Lines}, Output: io.Discard, Workers: 32, MaxRows: 1,
		MaxErrors: -1}); err != nil {
		t.Fatal(err)
	}
	for i := range 249 {
		one, next := fmt.Sprintf("8.8.8.%d", i), fmt.Sprintf("8.8.8.%d", i+1)
		if source.numbers[one] >= source.numbers[next] {
			t.Errorf("got number %d for %s and %d for %s", source.numbers[one], one, source.numbers[next], next)
		}
	}
}

// TestSlowInput expects each row before the next one is there.
func TestSlowInput(t *testing.T) {
	m := files(t)
	input, output := io.Pipe()
	rows, written := io.Pipe()
	done := make(chan error, 1)
	plan, err := bulk.NewPlan(bulk.NDJSON, []string{"city"}, bulk.Lines)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		in, err := bulk.NewInput(input)
		if err == nil {
			_, err = bulk.Run(context.Background(), bulk.Config{Input: in, Layout: bulk.Layout{Kind: bulk.Lines},
				Plan: plan, Source: bulk.NewFiles(m, plan), Output: written, Workers: 2, MaxRows: 1000, MaxErrors: -1})
		}
		done <- errors.Join(err, written.Close())
	}()
	lines := bufio.NewReader(rows)
	for range 3 {
		if _, err := io.WriteString(output, "8.8.8.8\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got, "Honolulu") {
			t.Fatalf("got %s and error %v, want a row", got, err)
		}
	}
	if err := output.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("got %s and error %v, want the end", rest, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
