package fetch_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/oauth"
	"gatehouse/providers/fetch"
)

// server is an https server on loopback, and a Fetcher that may reach it.
type server struct {
	*httptest.Server
	*fetch.Fetcher
	requests atomic.Int32
}

func newServer(t *testing.T, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			handle(w, r)
		}))
	t.Cleanup(s.Close)
	s.Fetcher = newFetcher(t, s.Server, netip.Addr.IsLoopback)
	return s
}

func newFetcher(t *testing.T, s *httptest.Server, allow func(netip.Addr) bool) *fetch.Fetcher {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	f, err := fetch.New(fetch.Config{Roots: roots, Allow: allow, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func respond(w http.ResponseWriter, kind, body string) {
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write([]byte(body)) // the client may have gone
}

func TestDocumentIsFetchedOnce(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "application/json" || r.Header.Get("Cookie") != "" {
			t.Errorf("got headers %v", r.Header)
		}
		respond(w, "application/json; charset=utf-8", `{"a":"`+r.URL.Path+`"}`)
	})
	charged := 0
	charge := func() error { charged++; return nil }
	for range 3 {
		body, err := s.Fetch(t.Context(), s.URL+"/x", 0, oauth.Payer{Charge: charge})
		if err != nil || string(body) != `{"a":"/x"}` {
			t.Fatalf("got %q, %v", body, err)
		}
	}
	if n := s.requests.Load(); n != 1 || charged != 1 {
		t.Errorf("got %d requests and %d charges, want 1 and 1", n, charged)
	}
}

func TestChargeRefuses(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		respond(w, "application/json", "{}")
	})
	used := errors.New("used up")
	by := oauth.Payer{Charge: func() error { return used }}
	if _, err := s.Fetch(t.Context(), s.URL, 0, by); err != used {
		t.Errorf("got %v, want %v", err, used)
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("got %d requests, want none", n)
	}
}

func TestResponsesThatAreRefused(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/good", http.StatusFound)
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		case "/html":
			respond(w, "text/html", "{}")
		case "/bare":
			w.Header()["Content-Type"] = nil
			respond(w, "", "{}")
		case "/large":
			respond(w, "application/json", strings.Repeat(" ", fetch.MaxBody+1))
		case "/cut":
			w.Header().Set("Content-Length", "100")
			respond(w, "application/json", "{")
		default:
			respond(w, "application/json", strings.Repeat(" ", fetch.MaxBody))
		}
	})
	for _, path := range []string{"/redirect", "/missing", "/html", "/bare", "/large", "/cut"} {
		for range 2 { // nothing is kept of a failure
			if body, err := s.Fetch(t.Context(), s.URL+path, 0, oauth.Payer{}); err == nil {
				t.Errorf("%s: got %q, want an error", path, body)
			} else if strings.Contains(err.Error(), s.URL) {
				t.Errorf("%s: got the URL in %q", path, err)
			}
		}
	}
	if n := s.requests.Load(); n != 12 {
		t.Errorf("got %d requests, want 12", n)
	}
	for _, path := range []string{"/good", "/jwks"} {
		if _, err := s.Fetch(t.Context(), s.URL+path, 0, oauth.Payer{}); err != nil {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		respond(w, "application/json", "{}")
	})
	f := newFetcher(t, s.Server, nil)
	host := strings.TrimPrefix(s.URL, "https://")
	_, port, _ := strings.Cut(host, ":")
	for _, address := range []string{
		s.URL, "https://localhost:" + port, "https://[::1]:" + port, "https://[::ffff:127.0.0.1]:" + port,
		"https://0.0.0.0:" + port, "https://2130706433:" + port, "https://127.1:" + port,
		"http://" + host, "https://user@" + host, "https://user:pass@" + host, s.URL + "/#a",
		"https://", "https:///x", "HTTPS://" + host, "file:///etc/passwd", "",
		"https://" + host + "/" + strings.Repeat("a", 2000),
	} {
		if _, err := f.Fetch(t.Context(), address, 0, oauth.Payer{}); err == nil {
			t.Errorf("%q: got no error", address)
		}
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("got %d requests, want none", n)
	}
}

// TestAddressIsCheckedAtEachConnection lets the rule change between two fetches, as the address of
// a name may.
func TestAddressIsCheckedAtEachConnection(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		respond(w, "application/json", "{}")
	})
	allowed := true
	f := newFetcher(t, s.Server, func(netip.Addr) bool { return allowed })
	if _, err := f.Fetch(t.Context(), s.URL+"/1", 0, oauth.Payer{}); err != nil {
		t.Fatal(err)
	}
	allowed = false
	if _, err := f.Fetch(t.Context(), s.URL+"/2", 0, oauth.Payer{}); err == nil {
		t.Error("got no error at the second connection")
	}
}

func TestOneRequestAtOnceAndHost(t *testing.T) {
	var now, most atomic.Int32
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		time.Sleep(time.Millisecond) // lets others come, if they can
		respond(w, "application/json", "{}")
	})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			path := s.URL + "/" + strings.Repeat("x", i%10)
			by := oauth.Payer{ID: strconv.Itoa(i)}
			if _, err := s.Fetch(t.Context(), path, 0, by); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 || s.requests.Load() != 10 {
		t.Errorf("got %d at once, %d in all, want 1 and 10", most.Load(), s.requests.Load())
	}
}

// TestStrangersLeaveRoom lets strangers and people name many servers that do not respond. Each class
// has its own slots, and its own turn at a host. Of operators' clients, each has its own.
func TestStrangersLeaveRoom(t *testing.T) {
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	slow := func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/fast") {
			arrived <- struct{}{}
			<-release
		}
		respond(w, "application/json", "{}")
	}
	s := newServer(t, slow)
	end := sync.OnceFunc(func() { close(release) })
	t.Cleanup(end)
	var all sync.WaitGroup
	begin := func(address string, by oauth.Payer) {
		t.Helper()
		ended := make(chan error, 1)
		all.Go(func() {
			_, err := s.Fetch(t.Context(), address, 0, by)
			ended <- err
		})
		select {
		case <-arrived:
		case err := <-ended:
			t.Fatalf("%+v at %s: got %v, want the request sent", by, address, err)
		}
	}
	begin(s.URL+"/stranger", oauth.Payer{ID: "a"})
	begin(s.URL+"/person", oauth.Payer{ID: "b", Class: oauth.People})
	begin(s.URL+"/client", oauth.Payer{ID: "c", Class: oauth.Operators})
	fast := func(class oauth.PayerClass) error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := s.Fetch(ctx, s.URL+"/fast"+strconv.Itoa(int(class)), 0, oauth.Payer{ID: "d", Class: class})
		return err
	}
	for class, want := range map[oauth.PayerClass]error{
		oauth.Strangers: oauth.ErrBusy, oauth.People: oauth.ErrBusy, oauth.Operators: nil,
	} {
		if err := fast(class); !errors.Is(err, want) {
			t.Errorf("class %d, at a host that is slow: got %v, want %v", class, err, want)
		}
	}
	for i := range 7 {
		other := httptest.NewTLSServer(http.HandlerFunc(slow))
		t.Cleanup(func() { end(); other.Close() })
		by := oauth.Payer{ID: strconv.Itoa(i / 4)}
		begin(other.URL, by)
		if i == 3 {
			if _, err := s.Fetch(t.Context(), s.URL+"/more", 0, by); !errors.Is(err, oauth.ErrBusy) {
				t.Errorf("got %v for one more of a payer, want %v", err, oauth.ErrBusy)
			}
		}
	}
	idle := httptest.NewTLSServer(http.HandlerFunc(slow))
	t.Cleanup(func() { end(); idle.Close() })
	for class, want := range map[oauth.PayerClass]error{oauth.Strangers: oauth.ErrBusy, oauth.People: nil} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := s.Fetch(ctx, idle.URL+"/fast"+strconv.Itoa(int(class)), 0, oauth.Payer{ID: "e", Class: class})
		if !errors.Is(err, want) {
			t.Errorf("class %d, at another host: got %v, want %v", class, err, want)
		}
	}
	end()
	all.Wait()
	if _, err := s.Fetch(t.Context(), idle.URL+"/other", 0, oauth.Payer{ID: "other"}); err != nil {
		t.Errorf("got %v after the others have ended", err)
	}
}

// TestTimeIsLeftAfterTheTurn has a request wait for a turn for nearly as long as it may. It has the
// other half of its time for itself.
func TestTimeIsLeftAfterTheTurn(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		wait := 800 * time.Millisecond
		if r.URL.Path == "/long" {
			wait = time.Hour
		}
		select {
		case <-r.Context().Done():
		case <-time.After(wait):
		}
		respond(w, "application/json", "{}")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for i := range 2 {
		go func() { _, _ = s.Fetch(ctx, s.URL+"/"+strconv.Itoa(i), 0, oauth.Payer{ID: strconv.Itoa(i)}) }()
		time.Sleep(10 * time.Millisecond)
	}
	own, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if _, err := s.Fetch(own, s.URL+"/own", 0, oauth.Payer{ID: "own"}); err != nil {
		t.Errorf("got %v, want the document after the turns of two others", err)
	}
	began := time.Now()
	go func() { _, _ = s.Fetch(t.Context(), s.URL+"/long", 0, oauth.Payer{ID: "long"}) }()
	time.Sleep(10 * time.Millisecond)
	own, cancel = context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := s.Fetch(own, s.URL+"/after", 0, oauth.Payer{ID: "own"})
	if took := time.Since(began); !errors.Is(err, oauth.ErrBusy) || took > 1500*time.Millisecond {
		t.Errorf("got %v after %v, want no turn after half of the time", err, took)
	}
}

func TestURLsThatAreChecked(t *testing.T) {
	f, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for address, ok := range map[string]bool{
		"https://10.0.0.5/jwks": false, "https://169.254.169.254/jwks": false, "https://[fd00::1]/": false,
		"https://[::ffff:192.168.0.1]:8443/": false, "https://localhost/": false, "https://keys/": false,
		"https://keys.corp.internal/": false, "https://127.1/": false, "https://2130706433/": false,
		"https://0x7f000001/": false, "https://keys.example.com/jwks": true, "https://8.8.8.8/jwks": true,
		"https://[2606:4700::1]/": true, "https://keys.example.com./": true,
	} {
		if err := f.CheckURL(t.Context(), address, false); (err == nil) != ok {
			t.Errorf("%s: got %v, want it accepted: %t", address, err, ok)
		}
	}
	if err := f.CheckURL(t.Context(), "https://localhost/", true); err == nil ||
		!strings.Contains(err.Error(), "public") {
		t.Errorf("got %v for a name of loopback, want the reason", err)
	}
}

// TestServersOfOperators checks what may be reached of servers that operators name.
func TestServersOfOperators(t *testing.T) {
	for address, ok := range map[string]bool{
		"169.254.169.254": false, "fe80::1": false, "::ffff:169.254.169.254": false, "0.0.0.0": false,
		"::": false, "224.0.0.1": false, "fd00:ec2::254": false, "100.100.100.200": false,
		"64:ff9b::a9fe:a9fe": false,
		"127.0.0.1":          true, "10.1.2.3": true, "8.8.8.8": true, "fd00::1": true,
	} {
		if got := oauth.IsServer(netip.MustParseAddr(address)); got != ok {
			t.Errorf("%s: got %t, want %t", address, got, ok)
		}
	}
	dial := fetch.Dialer(oauth.IsServer)
	if c, err := dial(t.Context(), "tcp", "169.254.169.254:80"); err == nil ||
		!strings.Contains(err.Error(), "may not be reached") {
		t.Errorf("got %v, %v, want no connection to a link-local address", c, err)
	}
}

// TestSlowServer waits for the whole time that a fetch may take.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		respond(w, "application/json", "{")
		_ = http.NewResponseController(w).Flush() // the client may have gone
		<-release
	})
	defer close(release)
	if _, err := s.Fetch(t.Context(), s.URL, 0, oauth.Payer{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}
