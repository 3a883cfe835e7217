package stack_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/cmd/stack"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
	"gatehouse/providers/mmdb/update"
	"gatehouse/providers/ptr"
)

// nobody is a caller without an address.
func nobody() lookup.Origin { return lookup.Origin{} }

// filesOnly returns a service of offline files, which know 9.0.0.0/8, without listeners.
func filesOnly(t *testing.T, change func(*stack.Lookups)) *stack.Stack {
	t.Helper()
	path := filepath.Join(t.TempDir(), "city.mmdb")
	mmdbtest.WriteCity(t, path, map[string]geo.Location{"9.0.0.0/8": {City: "Boxford"}})
	c := stack.Defaults()
	c.Identity, c.Log, c.Lookups.Upstream.Tier = nil, new(bytes.Buffer), ""
	c.Lookups.Files, c.Lookups.Reverse = mmdb.Config{Files: []string{path}}, ptr.Config{}
	change(c.Lookups)
	s, err := stack.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// TestFilesAreKeptUpToDate expects a new file of a publisher in use, and its age and update counted.
func TestFilesAreKeptUpToDate(t *testing.T) {
	next := filepath.Join(t.TempDir(), "next.mmdb")
	publish := sync.OnceFunc(func() { // after the file in use: one that was built before it is not taken
		mmdbtest.WriteCity(t, next, map[string]geo.Location{"9.0.0.0/8": {City: "Newtown"}, "10.0.0.0/8": {City: "x"}})
	})
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		publish()
		http.ServeFile(w, r, next)
	}))
	defer publisher.Close()
	s := filesOnly(t, func(c *stack.Lookups) {
		c.Files.Check = 10 * time.Millisecond
		c.Update = &update.Config{Interval: time.Millisecond, State: filepath.Join(t.TempDir(), "state"),
			Sources: []update.Source{{File: c.Files.Files[0], URL: publisher.URL}}}
	})
	awaitCity(s, "Newtown")
	for seen := 0; seen < 2; { // it is counted after it is in use
		families, err := s.Metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		seen = 0
		for _, f := range families {
			for _, m := range f.Metric {
				if f.GetName() == "gatehouse_mmdb_built_timestamp_seconds" && m.GetGauge().GetValue() > 1e9 ||
					f.GetName() == "gatehouse_mmdb_updates_total" && m.GetCounter().GetValue() > 0 {
					seen++
				}
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// mirror returns a server of a file that speaks TLS and offers it to the callers of keys, a client
// that trusts its certificate, and the keys.
func mirror(t *testing.T, file string, callers int, change func(*stack.Config)) (
	s *stack.Stack, client *http.Client, keys []string) {
	t.Helper()
	// The certificate is the one of httptest, which its client trusts.
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	certificate := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	c := stack.Defaults()
	c.Identity, c.Log, c.Lookups.Upstream.Tier = nil, new(bytes.Buffer), ""
	c.Listen, c.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	c.Lookups.Files = mmdb.Config{Files: []string{file}, Check: 10 * time.Millisecond}
	c.Lookups.Reverse = ptr.Config{}
	c.CertFile = write("cert", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}))
	c.KeyFile = write("key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	lines := ""
	for i := range callers {
		name := fmt.Sprint("mirror-", i)
		key, line, err := stack.NewLookupKey(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += line + "\n"
		keys, c.Lookups.Share = append(keys, key), append(c.Lookups.Share, name)
	}
	c.Lookups.KeyFile = write("keys", []byte(lines))
	if change != nil {
		change(&c)
	}
	if s, err = stack.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		other.Client().CloseIdleConnections()
		stop()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Errorf("got %v, want the mirror to stop", err)
		}
	})
	return s, other.Client(), keys
}

// awaitCity waits until a service finds a city.
func awaitCity(s *stack.Stack, city string) {
	for {
		found := s.Lookups.Lookup("9.1.1.1", nobody, time.Now())
		if found.Err == nil && bytes.Contains(found.AppendJSON(nil, "9.1.1.1"), []byte(city)) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestMirrorOfTwoServers has a mirror that keeps its file up to date from a publisher, and two
// servers that do so from the mirror over https. New files of the publisher come into use at both.
func TestMirrorOfTwoServers(t *testing.T) {
	dir := t.TempDir()
	file, next := filepath.Join(dir, "city.mmdb"), filepath.Join(dir, "next")
	publish := func(networks ...string) {
		places := map[string]geo.Location{}
		for i, network := range networks {
			places[network] = geo.Location{City: fmt.Sprintf("Town %d of %d", i, len(networks))}
		}
		mmdbtest.WriteCity(t, next+".new", places)
		if err := os.Rename(next+".new", next); err != nil {
			t.Fatal(err)
		}
	}
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(next)
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", fmt.Sprintf("\"%x\"", sha256.Sum256(text)))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}))
	defer publisher.Close()
	mmdbtest.WriteCity(t, file, map[string]geo.Location{"9.0.0.0/8": {City: "Boxford"}})
	config := func(file, url string) *update.Config {
		return &update.Config{Interval: 10 * time.Millisecond, State: file + ".state",
			Sources: []update.Source{{File: file, URL: url, MayShrink: 100}}}
	}
	middle, client, keys := mirror(t, file, 1, func(c *stack.Config) {
		c.Lookups.Update = config(file, publisher.URL)
	})
	var servers []*stack.Stack
	for range 2 {
		servers = append(servers, filesOnly(t, func(c *stack.Lookups) {
			c.Files.Check = 10 * time.Millisecond
			c.Update = config(c.Files.Files[0], middle.URL+"/api/mmdb/city.mmdb")
			source := &c.Update.Sources[0]
			source.Header, source.Secret, c.Update.Transport = "X-Api-Key", keys[0], client.Transport
		}))
	}
	publish("9.0.0.0/8") // built after the files that the servers have
	for _, s := range append(servers, middle) {
		awaitCity(s, "Town 0 of 1")
	}
	publish("9.0.0.0/8", "11.0.0.0/8")
	for _, s := range append(servers, middle) {
		awaitCity(s, "Town 0 of 2")
	}
}

// TestMirrorIsBusy expects 503 for a third download at once with a key, and for a 17th with any.
func TestMirrorIsBusy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "city.mmdb")
	large := mmdbtype.String(strings.Repeat("x", 16<<20)) // more than connections hold
	mmdbtest.Write(t, file, "City", map[string]mmdbtype.Map{"9.0.0.0/8": {"city": mmdbtype.String("a"), "x": large}})
	s, client, keys := mirror(t, file, 9, func(c *stack.Config) {
		c.WriteTimeout, c.MaxConnectionsPerAddress = time.Hour, c.MaxConnections
	})
	get := func(key string) *http.Response {
		request, err := http.NewRequest(http.MethodGet, s.URL+"/api/mmdb/city.mmdb", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Api-Key", key)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	var open []*http.Response
	for i, key := range keys[:8] {
		for range 2 {
			response := get(key)
			if open = append(open, response); response.StatusCode != http.StatusOK {
				t.Fatalf("got %s for download %d", response.Status, len(open))
			}
		}
		if i > 0 {
			continue
		}
		if refused := get(key); refused.StatusCode != http.StatusServiceUnavailable ||
			refused.Header.Get("Retry-After") != "60" || refused.Header.Get("ETag") != "" {
			t.Errorf("got %s and %v for a third download with a key, want 503", refused.Status, refused.Header)
		}
	}
	if refused := get(keys[8]); refused.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %s for download 17, want 503", refused.Status)
	}
	if err := open[0].Body.Close(); err != nil {
		t.Error(err)
	}
	for refused := get(keys[8]); refused.StatusCode != http.StatusOK; refused = get(keys[8]) {
		time.Sleep(10 * time.Millisecond)
	}
}

// TestResolverThatHangs looks up addresses and domains whose names no server resolves.
func TestResolverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := filesOnly(t, func(c *stack.Lookups) {
			c.Files.Resolver = func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		var texts []string
		for i := range 50 {
			texts = append(texts, fmt.Sprintf("9.0.0.%d", i))
			if i%2 == 0 {
				texts[i] = fmt.Sprintf("host-%d.example.com", i)
			}
		}
		began, done := time.Now(), make(chan []geo.Outcome)
		go func() {
			outcomes := make([]geo.Outcome, len(texts))
			s.Lookups.LookupAll(texts, nobody, began, outcomes)
			done <- outcomes
		}()
		synctest.Wait()
		if o := s.Lookups.Lookup("9.9.9.9", nobody, began); o.Err != nil || time.Since(began) > 0 {
			t.Errorf("another address: got %v after %v, want its result at once", o.Err, time.Since(began))
		}
		for i, o := range <-done {
			switch isAddress := i%2 == 1; {
			case isAddress && o.Err != nil:
				t.Errorf("%s: got %v", texts[i], o.Err)
			case !isAddress && (o.Err == nil || o.Err.Code != geo.CodeProviderUnreachable &&
				o.Err.Code != geo.CodeOverloaded):
				t.Errorf("%s: got %v, want it to fail alone", texts[i], o.Err)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("got the response after %v, want the lookup timeout at most", took)
		}
	})
}
