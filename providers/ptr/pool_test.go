package ptr_test

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"gatehouse/providers/ptr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startDNS runs a DNS server over UDP on loopback and returns its address.
func startDNS(t testing.TB, handler dns.HandlerFunc) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	server := &dns.Server{PacketConn: conn, Handler: handler, NotifyStartedFunc: func() {
		close(started)
	}}
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Errorf("stop the DNS server: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("DNS server: %v", err)
		}
	})
	return conn.LocalAddr().String()
}

// respond responds to the question of r with rcode and a PTR record for each of names.
func respond(t testing.TB, w dns.ResponseWriter, r *dns.Msg, rcode int, names ...string) {
	m := new(dns.Msg).SetRcode(r, rcode)
	m.RecursionAvailable = true
	for _, name := range names {
		header := dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypePTR,
			Class: dns.ClassINET, Ttl: 60}
		m.Answer = append(m.Answer, &dns.PTR{Hdr: header, Ptr: name})
	}
	if err := w.WriteMsg(m); err != nil {
		t.Errorf("respond to %v: %v", r.Question, err)
	}
}

func newPool(t testing.TB, config ptr.Config) *ptr.Pool {
	t.Helper()
	p, err := ptr.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// resolve waits for the name of addr.
func resolve(t testing.TB, p *ptr.Pool, addr string) string {
	t.Helper()
	names := make(chan string, 2)
	p.Resolve(netip.MustParseAddr(addr), func(name string) { names <- name })
	select {
	case name := <-names:
		return name
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s: done was not called", addr)
		return ""
	}
}

func TestNames(t *testing.T) {
	zone := map[string]struct {
		rcode int
		names []string
	}{
		"1.2.0.192.in-addr.arpa.": {names: []string{"host.example.net."}},
		"2.2.0.192.in-addr.arpa.": {names: []string{"Mixed_Case-1.EXAMPLE.net."}},
		"3.2.0.192.in-addr.arpa.": {names: []string{"first.example.", "second.example."}},
		"4.2.0.192.in-addr.arpa.": {rcode: dns.RcodeNameError},
		"5.2.0.192.in-addr.arpa.": {},
		"6.2.0.192.in-addr.arpa.": {rcode: dns.RcodeServerFailure},
		"7.2.0.192.in-addr.arpa.": {names: []string{`<script>alert\(1\)</script>.example.`}},
		"8.2.0.192.in-addr.arpa.": {names: []string{`line\010break.example.`, `nul\000.example.`,
			"good.example."}},
		"9.2.0.192.in-addr.arpa.": {names: []string{"198.51.100.7."}},
		"0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.": {names: []string{"six.example."}},
	}
	server := startDNS(t, func(w dns.ResponseWriter, r *dns.Msg) {
		record, ok := zone[r.Question[0].Name]
		if !ok || r.Question[0].Qtype != dns.TypePTR {
			t.Errorf("got question %v", r.Question)
		}
		respond(t, w, r, record.rcode, record.names...)
	})
	p := newPool(t, ptr.Config{Server: server})
	for _, row := range []struct{ about, addr, want string }{
		{"one name", "192.0.2.1", "host.example.net"},
		{"capitals", "192.0.2.2", "mixed_case-1.example.net"},
		{"the first of several", "192.0.2.3", "first.example"},
		{"no such name", "192.0.2.4", ""},
		{"no record", "192.0.2.5", ""},
		{"server failure", "192.0.2.6", ""},
		{"markup", "192.0.2.7", ""},
		{"the first valid one", "192.0.2.8", "good.example"},
		{"an address as name", "192.0.2.9", ""},
		{"IPv6", "2001:db8::10", "six.example"},
		{"IPv4-mapped", "::ffff:192.0.2.1", "host.example.net"},
	} {
		if got := resolve(t, p, row.addr); got != row.want {
			t.Errorf("%s: got %q, want %q", row.about, got, row.want)
		}
	}
	want := ptr.Stats{Resolved: 8, Failed: 3}
	if got := p.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestInvalidAddressHasNoName(t *testing.T) {
	p := newPool(t, ptr.Config{Server: "127.0.0.1:53"})
	names := make(chan string, 1)
	p.Resolve(netip.Addr{}, func(name string) { names <- name })
	if got := <-names; got != "" {
		t.Errorf("got %q, want none", got)
	}
}

func TestSystemResolvers(t *testing.T) {
	p := newPool(t, ptr.Config{Server: ptr.System})
	resolve(t, p, "127.0.0.1") // the name depends on the machine: mostly "localhost"
}

func TestSilentServerTimesOut(t *testing.T) {
	server := startDNS(t, func(dns.ResponseWriter, *dns.Msg) {})
	p := newPool(t, ptr.Config{Server: server, Timeout: 50 * time.Millisecond})
	start := time.Now()
	if got := resolve(t, p, "192.0.2.1"); got != "" {
		t.Errorf("got %q, want none", got)
	}
	if waited := time.Since(start); waited < 50*time.Millisecond {
		t.Errorf("waited %v, want about 50ms", waited)
	}
	if got, want := p.Stats(), (ptr.Stats{Failed: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// heldDNS runs a DNS server that does not respond until release. It sends each name to asked.
func heldDNS(t testing.TB) (server string, asked chan string, release func()) {
	asked = make(chan string, 4096)
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	server = startDNS(t, func(w dns.ResponseWriter, r *dns.Msg) {
		asked <- r.Question[0].Name
		<-released
		respond(t, w, r, dns.RcodeSuccess, "late.example.")
	})
	t.Cleanup(release) // runs before the server is stopped
	return server, asked, release
}

func TestConcurrentLookupsAreLimited(t *testing.T) {
	server, asked, release := heldDNS(t)
	p := newPool(t, ptr.Config{Server: server, Concurrency: 3, Timeout: 10 * time.Second})
	names := make(chan string, 8)
	for i := range 5 {
		p.Resolve(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), func(name string) { names <- name })
	}
	for range 3 {
		<-asked
	}
	if got, want := p.Stats(), (ptr.Stats{InFlight: 3, Queued: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(asked) != 0 {
		t.Errorf("got %d queries beyond 3", len(asked))
	}
	release()
	for range 5 {
		if got := <-names; got != "late.example" {
			t.Errorf("got %q, want late.example", got)
		}
	}
	if got, want := p.Stats(), (ptr.Stats{Resolved: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFullQueueDropsAtOnce(t *testing.T) {
	server, asked, _ := heldDNS(t)
	p := newPool(t, ptr.Config{Server: server, Concurrency: 1, Timeout: 10 * time.Second})
	var calls atomic.Int64
	count := func(string) { calls.Add(1) }
	addr := netip.MustParseAddr("192.0.2.1")
	p.Resolve(addr, count)
	<-asked
	for range ptr.QueueSize {
		p.Resolve(addr, count)
	}
	if got := calls.Load(); got != 0 {
		t.Fatalf("got %d calls of done, want none yet", got)
	}
	dropped := "not called"
	p.Resolve(addr, func(name string) { dropped = name })
	if dropped != "" {
		t.Errorf("full queue: got name %q, want none", dropped)
	}
	want := ptr.Stats{InFlight: 1, Queued: ptr.QueueSize, Dropped: 1}
	if got := p.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	p.Close()
	if got := calls.Load(); got != 1+ptr.QueueSize {
		t.Errorf("got %d calls of done after Close, want %d", got, 1+ptr.QueueSize)
	}
}

func TestCloseDuringLookups(t *testing.T) {
	server, asked, _ := heldDNS(t)
	p := newPool(t, ptr.Config{Server: server, Concurrency: 2, Timeout: time.Minute})
	names := make(chan string, 8)
	done := func(name string) { names <- name }
	for i := range 4 {
		p.Resolve(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), done)
	}
	<-asked
	<-asked
	start := time.Now()
	p.Close()
	if waited := time.Since(start); waited > time.Minute/2 {
		t.Errorf("Close took %v", waited)
	}
	p.Resolve(netip.MustParseAddr("192.0.2.9"), done)
	if len(names) != 5 {
		t.Fatalf("got %d calls of done, want 5", len(names))
	}
	for range 5 {
		if got := <-names; got != "" {
			t.Errorf("got %q, want none", got)
		}
	}
	if got, want := p.Stats(), (ptr.Stats{Failed: 2, Dropped: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEveryDoneIsCalledOnce(t *testing.T) {
	server := startDNS(t, func(w dns.ResponseWriter, r *dns.Msg) {
		respond(t, w, r, dns.RcodeSuccess, "host.example.")
	})
	p := newPool(t, ptr.Config{Server: server, Concurrency: 4})
	const callers, each = 8, 100
	var calls [callers * each]atomic.Int32
	var all sync.WaitGroup
	half := make(chan struct{}, callers)
	for c := range callers {
		all.Go(func() {
			for i := range each {
				if i == each/2 {
					half <- struct{}{}
				}
				n := c*each + i
				p.Resolve(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), func(string) {
					calls[n].Add(1)
				})
			}
		})
	}
	<-half
	p.Close()
	all.Wait()
	for n := range calls {
		if got := calls[n].Load(); got != 1 {
			t.Fatalf("done %d: got %d calls, want 1", n, got)
		}
	}
	s := p.Stats()
	if got := s.Resolved + s.Failed + s.Dropped; got != callers*each || s.InFlight != 0 ||
		s.Queued != 0 {
		t.Errorf("got %+v, want a sum of %d, none in flight or queued", s, callers*each)
	}
}

func TestNewRejects(t *testing.T) {
	for _, config := range []ptr.Config{
		{}, {Server: "off"}, {Server: "192.0.2.1"}, {Server: ":53"}, {Server: "192.0.2.1:0"}, {Server: "192.0.2.1:65536"},
		{Server: "192.0.2.1:domain"}, {Server: ptr.System, Concurrency: -1}, {Server: ptr.System, Timeout: -1},
	} {
		if p, err := ptr.New(config); err == nil {
			p.Close()
			t.Errorf("%+v: got no error", config)
		}
	}
}
