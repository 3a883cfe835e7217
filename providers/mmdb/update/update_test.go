package update

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// database returns a file that was built on a day of November 2026 and has so many networks.
func database(t *testing.T, day, networks int) []byte {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Test", BuildEpoch: time.Date(2026, 11, day,
		0, 0, 0, 0, time.UTC).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range networks {
		_, network, err := net.ParseCIDR(fmt.Sprintf("%d.0.0.0/8", 20+i))
		if err = errors.Join(err, tree.Insert(network, mmdbtype.Map{"asn": mmdbtype.Uint32(i)})); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if _, err := tree.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// packed returns a file in an archive.
func packed(t *testing.T, kind string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var errs []error
	switch kind {
	case "none":
		return data
	case "gzip":
		w := gzip.NewWriter(&out)
		_, err := w.Write(data)
		errs = append(errs, err, w.Close())
	case "zip":
		w := zip.NewWriter(&out)
		for _, name := range []string{"README.TXT", "IP2LOCATION.MMDB"} {
			f, err := w.Create(name)
			_, write := f.Write(data)
			errs = append(errs, err, write)
		}
		errs = append(errs, w.Close())
	case "tar.gz", "tar.gz without one":
		z := gzip.NewWriter(&out)
		w := tar.NewWriter(z)
		for _, name := range []string{"City_20261120/COPYRIGHT.txt", "City_20261120/City.mmdb"} {
			if kind != "tar.gz" && strings.HasSuffix(name, ".mmdb") {
				continue
			}
			errs = append(errs, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}))
			_, err := w.Write(data)
			errs = append(errs, err)
		}
		errs = append(errs, w.Close(), z.Close())
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const secret = "s3cret/key+"

// publisher is an emulator of a publisher, and of an object store on another host.
type emulator struct {
	t      *testing.T
	serve  http.HandlerFunc
	server *httptest.Server
	store  *httptest.Server
	stored []byte   // what the store has
	asked  []string // path and query of the requests, those of the store with a "store:" before
	dir    string
	file   string
	source Source
}

func emulate(t *testing.T, source Source) *emulator {
	t.Helper()
	dir := t.TempDir()
	e := &emulator{t: t, dir: dir, file: filepath.Join(dir, "City.mmdb"), source: source}
	e.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.asked = append(e.asked, r.URL.String())
		e.serve(w, r)
	}))
	e.store = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.asked = append(e.asked, "store:"+r.URL.String())
		text := fmt.Sprint(r.URL, r.Header)
		if strings.Contains(text, "s3cret") || r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("another host got the secret: %s", text)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write(e.stored)
	}))
	t.Cleanup(e.server.Close)
	t.Cleanup(e.store.Close)
	e.source.File = e.file
	for _, left := range []string{".City.mmdb.download-1", ".City.mmdb.update-2"} { // by one that was killed
		if err := os.WriteFile(filepath.Join(dir, left), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// run updates the file, and returns the outcome and the error.
func (e *emulator) run(force bool) (Outcome, string) {
	e.t.Helper()
	source := e.source
	if source.Edition != "" {
		source.Host = e.server.URL
	} else {
		source.URL = e.server.URL + source.URL
	}
	if err := source.check(); err != nil {
		e.t.Fatal(err)
	}
	u := New(Config{State: filepath.Join(e.dir, "state.json"), Interval: time.Hour, Sources: []Source{source}})
	u.pause = time.Microsecond
	results, err := u.Run(e.t.Context(), force)
	if err != nil || len(results) != 1 {
		e.t.Fatalf("got %v and error %v", results, err)
	}
	text := ""
	if results[0].Err != nil {
		text = results[0].Err.Error()
	}
	state, err := os.ReadFile(filepath.Join(e.dir, "state.json"))
	if err != nil || strings.Contains(text+string(state), "s3cret") {
		e.t.Errorf("got error %v and the secret in %q or %s", err, text, state)
	}
	if left, _ := filepath.Glob(filepath.Join(e.dir, ".City*")); left != nil {
		e.t.Errorf("got %v left", left)
	}
	return results[0].Outcome, text
}

// step is a run and what it must do.
type step struct {
	name  string
	serve http.HandlerFunc
	force bool
	want  Outcome
	err   string // a part of the error
	has   []byte // what the file must have then
	asked int    // requests; 0 = any number
}

const none = -1 // requests

// wantsNone returns a publisher that wants no requests for so many seconds.
func wantsNone(status int, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
	}
}

func (e *emulator) steps(steps ...step) {
	e.t.Helper()
	for _, s := range steps {
		e.serve, e.asked = s.serve, nil
		got, err := e.run(s.force)
		if got != s.want || !strings.Contains(err, s.err) || (s.err == "") != (err == "") ||
			s.asked != 0 && len(e.asked) != max(0, s.asked) {
			e.t.Errorf("%s: got %s, error %q and requests %q, want %s, %q and %d", s.name, got, err, e.asked, s.want,
				s.err, s.asked)
		}
		if has, _ := os.ReadFile(e.file); !bytes.Equal(has, s.has) {
			e.t.Errorf("%s: got another file of %d bytes, want %d", s.name, len(has), len(s.has))
		}
	}
}

// geoipupdate returns a publisher with geoipupdate's protocol, whose download is at the store.
func (e *emulator) geoipupdate(data []byte, sum, kind string) http.HandlerFunc {
	e.t.Helper()
	if sum == "" {
		is := md5.Sum(data)
		sum = hex.EncodeToString(is[:])
	}
	archive := packed(e.t, kind, data)
	return func(w http.ResponseWriter, r *http.Request) {
		account, key, _ := r.BasicAuth()
		switch {
		case account != "42" || key != secret:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"code":"AUTHORIZATION_INVALID","error":"Your key %s is wrong"}`, key)
		case r.URL.Path == "/geoip/updates/metadata" && r.URL.Query().Get("edition_id") == "GeoLite2-City":
			fmt.Fprintf(w, `{"databases":[{"edition_id":"GeoLite2-City","md5":%q,"date":"2026-11-20"}]}`, sum)
		case r.URL.RequestURI() == "/geoip/databases/GeoLite2-City/download?date=20261120&suffix=tar.gz":
			e.stored = archive
			http.Redirect(w, r, e.store.URL+"/presigned?X-Signature=1", http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

func TestGeoipupdate(t *testing.T) {
	e := emulate(t, Source{Edition: "GeoLite2-City", Account: "42", Secret: secret})
	first, second, older, smaller := database(t, 20, 90), database(t, 21, 91), database(t, 19, 92), database(t, 22, 89)
	sum := md5.Sum(first)
	limited := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	list := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	failing := 0
	loop := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"?again=1", http.StatusFound)
	}
	changed := e.geoipupdate(first, "", "tar.gz")
	changing := func(w http.ResponseWriter, r *http.Request) { // to second after the metadata
		changed(w, r)
		changed = e.geoipupdate(second, "", "tar.gz")
	}
	e.steps(
		step{"first", e.geoipupdate(first, "", "tar.gz"), false, Updated, "", first, 3},
		step{"same", e.geoipupdate(first, "", "tar.gz"), false, Unchanged, "", first, 1},
		step{"upper case", e.geoipupdate(first, strings.ToUpper(hex.EncodeToString(sum[:])), "tar.gz"), false,
			Unchanged, "", first, 1},
		step{"older", e.geoipupdate(older, "", "tar.gz"), false, Refused, "--force", first, 3},
		step{"smaller", e.geoipupdate(smaller, "", "tar.gz"), false, Refused, "and the present one", first, 3},
		step{"wrong checksum", e.geoipupdate(second, strings.Repeat("ab", 16), "tar.gz"), false, Failed, "checksum", first, 3},
		step{"no database", e.geoipupdate(second, "", "tar.gz without one"), false, Failed, "no file whose name", first, 3},
		step{"no edition", list(`{"databases":[]}`), false, Failed, "0 editions", first, 1},
		step{"two editions", list(`{"databases":[{"edition_id":"a"},{"edition_id":"b"}]}`), false, Failed, "2 editions", first, 1},
		step{"no JSON", list("<html>"), false, Failed, "no JSON", first, 1},
		step{"no permission", limited, false, Failed, "403", first, 1},
		step{"busy, then good", func(w http.ResponseWriter, r *http.Request) {
			if failing++; failing < 3 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			e.geoipupdate(second, "", "tar.gz")(w, r)
		}, false, Updated, "", second, 5},
		step{"older by force", e.geoipupdate(older, "", "tar.gz"), true, Updated, "", older, 3},
	)
	e.source.Secret = "wrong"
	e.steps(step{"refused account", e.geoipupdate(second, "", "tar.gz"), false, Failed, "check the account", older, 1})
	e = emulate(t, Source{Edition: "GeoLite2-City", Account: "42", Secret: secret})
	e.steps(
		step{"changed meanwhile", changing, false, Failed, "checksum", nil, 3},
		step{"a loop of redirects", loop, false, Failed, "redirects more than 10 times", nil, 11},
		step{"and then not", changing, false, Updated, "", second, 3},
		step{"503", wantsNone(http.StatusServiceUnavailable, ""), false, Failed, "503", second, 3},
		step{"503 with a time", wantsNone(http.StatusServiceUnavailable, "3600"), false, Limited, "", second, 1},
		step{"held", changing, false, Limited, "", second, none},
	)
	e = emulate(t, Source{Edition: "GeoLite2-City", Account: "42", Secret: secret})
	e.steps(step{"429 without a file", wantsNone(http.StatusTooManyRequests, ""), false, Failed, "allows no request", nil, 1})
	e = emulate(t, Source{Edition: "GeoLite2-City", Account: "42", Secret: secret})
	e.serve = list("no JSON")
	for i := range 31 {
		if got, _ := e.run(false); got != Failed || (len(e.asked) == i) != (i == 30) {
			t.Errorf("got %s and %d requests after %d runs, want at most 30 a day", got, len(e.asked), i+1)
		}
	}
}

func TestURL(t *testing.T) {
	first, second := database(t, 20, 9), database(t, 21, 10)
	for _, kind := range []string{"none", "gzip", "zip", "tar.gz"} {
		e := emulate(t, Source{URL: "/City"})
		etag := func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(packed(t, kind, first)))
		}
		e.steps(
			step{kind, etag, false, Updated, "", first, 1},
			step{kind + " not modified", etag, false, Unchanged, "", first, 1},
		)
		if err := os.Remove(e.file); err != nil {
			t.Fatal(err)
		}
		e.steps(
			step{kind + " removed", etag, false, Updated, "", first, 1},
			step{"cut off", func(w http.ResponseWriter, _ *http.Request) {
				text := packed(t, kind, second)
				w.Header().Set("Content-Length", fmt.Sprint(len(text)))
				_, _ = w.Write(text[:len(text)/2])
			}, false, Failed, "unexpected EOF", first, maxTries},
			step{"half a file", func(w http.ResponseWriter, _ *http.Request) {
				text := packed(t, kind, second)
				_, _ = w.Write(text[:len(text)*2/3])
			}, false, Failed, map[string]string{"none": "no database", "zip": "zip", "gzip": "EOF",
				"tar.gz": "EOF"}[kind], first, 1},
			step{"cut off, then whole", func(w http.ResponseWriter, _ *http.Request) {
				text := packed(t, kind, second)
				w.Header().Set("Content-Length", fmt.Sprint(len(text)))
				_, _ = w.Write(text[:len(text)*(len(e.asked)-1)]) // nothing, and then all
			}, false, Updated, "", second, 2},
		)
	}
}

func TestURLChanges(t *testing.T) {
	first, second := database(t, 20, 9), database(t, 21, 10)
	sum := sha256.Sum256(first)
	sums := fmt.Sprintf("%x  other.gz\n%x *City.mmdb.gz\n", sha256.Sum256(nil), sum)
	good := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			_, _ = io.WriteString(w, sums)
			return
		}
		w.Header().Set("ETag", `"1"`)
		_, _ = w.Write(packed(t, "gzip", first))
	}
	e := emulate(t, Source{URL: "/a/City.mmdb.gz", Checksum: ".sha256"})
	e.steps(
		step{"checksum of the database", good, false, Updated, "", first, 2},
		step{"same checksum", good, false, Unchanged, "", first, 1},
	)
	sums = fmt.Sprintf("%x", sha256.Sum256([]byte("x")))
	e.steps(step{"wrong checksum", good, false, Failed, "checksum", first, 2})

	now := time.Now().UTC()
	former := time.Date(now.Year(), now.Month(), 0, 0, 0, 0, 0, time.UTC).Format("2006-01")
	e = emulate(t, Source{URL: "/City-{YYYY}-{MM}.mmdb"})
	e.steps(step{"former month", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, former) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(first)
	}, false, Updated, "", first, 2}, step{"no month", http.NotFound, false, Failed, "404", first, 2})

	e = emulate(t, Source{URL: "/City.mmdb", MayShrink: 50})
	give := func(data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
	}
	shrunk := database(t, 22, 8)
	e.steps(
		step{"first", give(second), false, Updated, "", second, 1},
		step{"same bytes", give(second), false, Unchanged, "", second, 1},
		step{"may shrink", give(shrunk), false, Updated, "", shrunk, 1},
		step{"no database", give([]byte("<html>")), false, Failed, "no database", shrunk, 1},
		step{"429", wantsNone(http.StatusTooManyRequests, "3600"), false, Limited, "", shrunk, 1},
		step{"held", give(second), false, Limited, "", shrunk, none},
	)
	e = emulate(t, Source{URL: "/City.mmdb", Daily: 5})
	for i := range 6 {
		e.serve = give(first)
		if got, _ := e.run(true); (got == Limited) != (i == 5) {
			t.Errorf("got %s for request %d of at most 5 a day", got, i+1)
		}
	}
}

// TestSecretStaysWithItsHost expects the secret at each URL of its own host and at no other.
func TestSecretStaysWithItsHost(t *testing.T) {
	first := database(t, 20, 9)
	for name, source := range map[string]Source{
		"header": {URL: "/City", Header: "X-Api-Key", Prefix: "key "}, "query": {URL: "/City?file=a", Query: "token"},
		"path": {URL: "/d/{secret}/City"}, "authorization": {URL: "/City", Header: "Authorization", Prefix: "Bearer "},
	} {
		source.Secret = secret
		e := emulate(t, source)
		authorized := func(r *http.Request) bool {
			return r.Header.Get("X-Api-Key") == "key "+secret || r.URL.Query().Get("token") == secret ||
				strings.Contains(r.URL.Path, secret) || r.Header.Get("Authorization") == "Bearer "+secret
		}
		e.serve = func(w http.ResponseWriter, r *http.Request) {
			if !authorized(r) && name != "path" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if !strings.HasPrefix(r.URL.Path, "/moved") {
				http.Redirect(w, r, "/moved/City", http.StatusMovedPermanently)
				return
			}
			e.stored = first
			http.Redirect(w, r, e.store.URL+"/City?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		}
		if got, err := e.run(false); got != Updated || len(e.asked) != 3 {
			t.Errorf("%s: got %s, error %s and requests %v", name, got, err, e.asked)
		}
		e.serve = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, e.store.URL+"/"+strings.ReplaceAll(secret, "/", "%2F"), http.StatusFound)
		}
		if got, err := e.run(true); got != Failed || !strings.Contains(err, "another host with the secret") {
			t.Errorf("%s: got %s and error %s for a redirect with the secret in its path", name, got, err)
		}
		e.source.Checksum = e.store.URL + "/sum/{YYYY}/{MM}"
		e.stored = fmt.Appendf(nil, "%x", sha256.Sum256(first))
		e.serve, e.asked = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(first) }, nil
		got, err := e.run(true)
		if got != Unchanged || !regexp.MustCompile(`^store:/sum/20\d\d/[01]\d$`).MatchString(e.asked[0]) {
			t.Errorf("%s: got %s, error %s and requests %v for a checksum on another host", name, got, err, e.asked)
		}
		e.server.Close()
		if got, err := e.run(true); got != Failed || err == "" {
			t.Errorf("%s: got %s and error %s without a server", name, got, err)
		}
	}
}

// roundTrip is a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestStall has a publisher that does not respond, one that stops in the middle, and a good one.
func TestStall(t *testing.T) {
	first := database(t, 20, 9)
	for name, good := range map[string]int{"then good": 3, "never good": 4} {
		synctest.Test(t, func(t *testing.T) {
			file, tries := filepath.Join(t.TempDir(), "City.mmdb"), 0
			network := roundTrip(func(r *http.Request) (*http.Response, error) {
				response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}}
				var waits io.Reader
				switch tries++; {
				case tries == 1:
					<-r.Context().Done()
					return nil, r.Context().Err()
				case tries < good:
					waits = waiting{r.Context()}
				default:
					waits = bytes.NewReader(nil)
				}
				half := len(first) / 2
				response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(first[:half]), waits,
					bytes.NewReader(first[half:])))
				return response, nil
			})
			u := New(Config{State: file + ".state", Sources: []Source{{File: file, URL: "https://x.example/City"}},
				Transport: network})
			began := time.Now()
			results, err := u.Run(t.Context(), false)
			took := time.Since(began)
			if err != nil || tries != 3 || took < 2*time.Minute || took > 4*time.Minute {
				t.Fatalf("%s: got error %v, %d tries and %s, want 3 in two or three minutes", name, err, tries, took)
			}
			has, _ := os.ReadFile(file)
			switch r := results[0]; {
			case good == 3 && (r.Outcome != Updated || !bytes.Equal(has, first)):
				t.Errorf("%s: got %+v", name, r)
			case good > 3 && (r.Outcome != Failed || !strings.Contains(r.Err.Error(), "no byte came for 1m0s")):
				t.Errorf("%s: got %+v", name, r)
			}
		})
	}
}

// waiting is a body that does not go on.
type waiting struct{ ctx context.Context }

func (w waiting) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

// TestLimitsOfPublishers expects the limits of publishers for their URLs too, and a 429 to hold for
// all files of a host.
func TestLimitsOfPublishers(t *testing.T) {
	first := database(t, 20, 9)
	const permalink = "https://download.maxmind.com/app/geoip_download?edition_id=GeoLite2-%s&license_key={secret}&suffix=tar.gz"
	for name, c := range map[string]struct {
		urls []string
		want int // requests of 40 runs
	}{
		"GeoLite by URL": {[]string{fmt.Sprintf(permalink, "City"), fmt.Sprintf(permalink, "ASN")}, 30},
		"IP2Location":    {[]string{"https://www.ip2location.com/download?token={secret}"}, 5},
		"any":            {[]string{"https://x.example/{secret}"}, 40},
		"429":            {[]string{"https://x.example/429?{secret}", "https://x.example/{secret}"}, 1},
	} {
		dir, asked := t.TempDir(), 0
		config := Config{State: filepath.Join(dir, "state")}
		for i, url := range c.urls {
			config.Sources = append(config.Sources, Source{File: filepath.Join(dir, fmt.Sprintf("%d.mmdb", i)),
				URL: url, Secret: "abc"})
		}
		config.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{},
				Body: io.NopCloser(bytes.NewReader(first))}
			if strings.Contains(r.URL.Path, "429") {
				response.StatusCode = http.StatusTooManyRequests
			}
			return response, nil
		})
		u := New(config)
		for range 40 {
			if _, err := u.Run(t.Context(), true); err != nil {
				t.Fatal(err)
			}
		}
		if asked != c.want {
			t.Errorf("%s: got %d requests, want %d", name, asked, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	env := map[string]string{}
	get := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	fromFile := func(path string) (string, error) { return "from " + filepath.Base(path), nil }
	read := func(name, text string) (Config, error) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Read(path, get, fromFile)
	}
	c, err := read("GeoIP.conf", "# x\nAccountID 42\nLicenseKey abc\nEditionIDs GeoLite2-City GeoLite2-ASN\n"+
		"DatabaseDirectory /data\nHost updates.example.com\n")
	if err != nil || len(c.Sources) != 2 || c.Sources[1] != (Source{File: "/data/GeoLite2-ASN.mmdb",
		Edition: "GeoLite2-ASN", Account: "42", Secret: "abc", Host: "https://updates.example.com"}) {
		t.Errorf("got %+v and error %v", c, err)
	}
	c, err = read("update.yaml", "directory: /data\ninterval: 1h\nfiles:\n- {edition: GeoLite2-City, account: 42, secret-file: key}\n"+
		"- {file: a.mmdb, url: 'https://x.example/{MM}', header: 'Authorization: Bearer', secret: abc, daily: 5, may-shrink: 5}\n")
	if err != nil || c.Sources[0].Secret != "from key" || c.Sources[0].Host != defaultHost ||
		c.Sources[1].Header != "Authorization" || c.Sources[0].MayShrink != 0 || c.Sources[1].MayShrink != 5 || c.Sources[1].Prefix != "Bearer " || c.Interval != time.Hour {
		t.Errorf("got %+v and error %v", c, err)
	}
	for text, want := range map[string]string{
		"files: [{url: 'https://x/y'}]": "file: its name", "files: [{file: a}]": "either edition or url",
		"files: [{file: a, url: 'http://x.example/y'}]":                                            "needs https",
		"files: [{file: a, url: 'https://u:p@x.example/y'}]":                                       "not before the host",
		"files: [{file: a, url: 'https://x/y', secret: abc}]":                                      "where the secret goes",
		"files: [{file: a, url: 'https://x/y', query: token}]":                                     "need secret",
		"files: [{file: a, url: 'https://x/{secret}', secret: s, checksum: 'https://y/{secret}'}]": "host of the url",
		"files: [{edition: a}]":                                      "needs account",
		"files: [{file: a, ulr: x}]":                                 "line 1: ulr is not known",
		"interval: 1s\nfiles: [{file: a, url: 'https://x.example'}]": "interval", "": "empty", "files: []": "no files",
		"files: [{file: a, url: 'https://x'}, {file: a, url: 'https://x'}]": "twice",
	} {
		if _, err := read("update.yaml", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"AccountID 1\nUserId 1\n", "Verbose 1\n", "AccountID 1\n", "Proxy x\n"} {
		if _, err := read("GeoIP.conf", text); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
	env = map[string]string{"GEOIPUPDATE_ACCOUNT_ID": "43", "GEOIPUPDATE_LICENSE_KEY_FILE": "/run/key",
		"GEOIPUPDATE_EDITION_IDS": "GeoLite2-ASN", "GEOIPUPDATE_DB_DIR": "/db"}
	want := Source{File: "/db/GeoLite2-ASN.mmdb", Edition: "GeoLite2-ASN", Account: "43", Secret: "from key",
		Host: defaultHost}
	for _, read := range []func() (Config, error){
		func() (Config, error) { return Read("", get, fromFile) },
		func() (Config, error) { return read("GeoIP.conf", "AccountID 42\nLicenseKey abc\nEditionIDs x\n") },
	} {
		if c, err := read(); err != nil || len(c.Sources) != 1 || c.Sources[0] != want {
			t.Errorf("got %+v and error %v with variables, want %+v", c, err, want)
		}
	}
	env["GEOIPUPDATE_PROXY"] = "proxy.example"
	if _, err := Read("", get, fromFile); err == nil {
		t.Error("got no error for a proxy")
	}
}
