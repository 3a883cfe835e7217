package mmdb_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"gatehouse/actors/geo"
	"gatehouse/providers/mmdb"
)

// names is a table of addresses by "ip4 example.com."; the entry "fail" is a failure.
type names map[string][]string

func (n names) resolve(_ context.Context, network, host string) ([]netip.Addr, error) {
	list, ok := n[network+" "+host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if list[0] == "fail" {
		return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
	}
	return addrs(list...), nil
}

func TestDomains(t *testing.T) {
	table := names{
		"ip4 both.example.com.":    {"2.125.160.1"},
		"ip6 both.example.com.":    {"2a02:ffc0::1"},
		"ip6 six.example.com.":     {"2a02:ffc0::1"},
		"ip4 second.example.com.":  {"10.0.0.1", "2.125.160.2"},
		"ip4 mixed.example.com.":   {"127.0.0.1"},
		"ip6 mixed.example.com.":   {"2a02:ffc0::2"},
		"ip4 mapped.example.com.":  {"::ffff:2.125.160.3"},
		"ip4 private.example.com.": {"10.0.0.1", "127.0.0.1"},
		"ip6 private.example.com.": {"::1", "fe80::1%eth0"},
		"ip6 linked.example.com.":  {"fe80::1%eth0"},
		"ip4 looped.example.com.":  {"127.0.0.1", "10.0.0.1"},
		"ip4 unknown.example.com.": {"9.9.9.9"},
		"ip4 down.example.com.":    {"fail"},
		"ip6 down6.example.com.":   {"fail"},
	}
	tests := []struct {
		domain, ip string
		code       geo.Code
		reason     geo.Reason
	}{
		{domain: "both.example.com", ip: "2.125.160.1"},
		{domain: "six.example.com", ip: "2a02:ffc0::1"},
		{domain: "second.example.com", ip: "2.125.160.2"},
		{domain: "mixed.example.com", ip: "2a02:ffc0::2"},
		{domain: "mapped.example.com", ip: "2.125.160.3"},
		{domain: "private.example.com", code: geo.CodeInvalidQuery, reason: geo.ReasonNotFound},
		{domain: "looped.example.com", code: geo.CodeInvalidQuery, reason: geo.ReasonNotFound},
		{domain: "linked.example.com", code: geo.CodeInvalidQuery, reason: geo.ReasonNotFound},
		{domain: "unknown.example.com", code: geo.CodeInvalidQuery, reason: geo.ReasonNoLocation},
		{domain: "absent.example.com", code: geo.CodeInvalidQuery, reason: geo.ReasonNotFound},
		{domain: "down.example.com", code: geo.CodeProviderUnreachable},
		{domain: "down6.example.com", code: geo.CodeProviderUnreachable},
	}
	city, asn := cityAndASN(t)
	p := open(t, mmdb.Config{Resolver: table.resolve}, city, asn)
	var batch []geo.Query
	for _, test := range tests {
		batch = append(batch, query(t, test.domain))
	}
	reply, err := p.Batch(context.Background(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range tests {
		for _, got := range []geo.Answer{single(t, p, test.domain), reply.Answers[i]} {
			if test.code != "" {
				wantError(t, got, test.code, test.reason)
			} else if got.Err != nil || got.Result.IP.String() != test.ip ||
				got.Result.Location.City != "Boxford" {
				t.Errorf("%s: got %+v, error %v, want %s in Boxford", test.domain, got.Result,
					got.Err, test.ip)
			}
		}
	}
}

func TestConcurrentNamesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		slow := func(ctx context.Context, network, host string) ([]netip.Addr, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(100 * time.Millisecond)
			return addrs("2.125.160.216"), nil
		}
		city, _ := cityAndASN(t)
		p := open(t, mmdb.Config{Resolver: slow}, city)
		defer p.Close()
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 80 {
			wg.Go(func() {
				if a := single(t, p, fmt.Sprintf("d%d.example.com", i)); a.Err != nil {
					t.Errorf("name %d: got %v, want its location", i, a.Err)
				}
			})
		}
		wg.Wait()
		if got := most.Load(); got != 32 {
			t.Errorf("concurrent names: got %d, want 32", got)
		}
		if got := time.Since(begin); got != 300*time.Millisecond {
			t.Errorf("80 names of 100 ms: got %v, want 300ms", got)
		}
	})
}

func TestUnresponsiveNameLeavesTimeForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := func(ctx context.Context, network, host string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		city, _ := cityAndASN(t)
		p := open(t, mmdb.Config{Resolver: dead}, city)
		defer p.Close()
		batch := []geo.Query{query(t, "dead.example.com"), query(t, "2.125.160.1")}
		for _, deadline := range []time.Duration{time.Second, 3 * time.Second} {
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			begin := time.Now()
			reply, err := p.Batch(ctx, batch)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			wantError(t, reply.Answers[0], geo.CodeProviderUnreachable, "")
			if got := reply.Answers[1]; got.Err != nil {
				t.Errorf("the address in the batch: got %v, want no error", got.Err)
			}
			if got, want := time.Since(begin), min(deadline, 2*time.Second); got != want {
				t.Errorf("with a deadline of %v: took %v, want %v", deadline, got, want)
			}
		}
	})
}

func TestConcurrentNamesAreLimitedOverAllCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		dead := func(ctx context.Context, network, host string) ([]netip.Addr, error) {
			asked.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		city, _ := cityAndASN(t)
		p := open(t, mmdb.Config{Resolver: dead}, city)
		defer p.Close()
		for range 100 {
			go func() {
				wantError(t, single(t, p, "dead.example.com"), geo.CodeProviderUnreachable, "")
			}()
		}
		synctest.Wait()
		if got := asked.Load(); got != 32 {
			t.Errorf("concurrent names: got %d, want 32", got)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
	})
}

// One caller's slow names leave room for those of others.
func TestSlowNamesOfOneCallerLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := func(ctx context.Context, _, host string) ([]netip.Addr, error) {
			if host == "dead.example.com." {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return addrs("2.125.160.216"), nil
		}
		city, _ := cityAndASN(t)
		p := open(t, mmdb.Config{Resolver: resolver}, city)
		defer p.Close()
		ask := func(caller, domain string) geo.Answer {
			ctx := geo.WithCaller(context.Background(), netip.MustParsePrefix(caller))
			reply, err := p.Single(ctx, query(t, domain))
			if err != nil {
				t.Fatal(err)
			}
			return reply.Answers[0]
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				wantError(t, ask("192.0.2.1/32", "dead.example.com"), geo.CodeProviderUnreachable,
					"")
			})
		}
		synctest.Wait()
		begin := time.Now()
		if got := ask("198.51.100.1/32", "live.example.com"); got.Err != nil {
			t.Errorf("got %v for another caller, want a result", got.Err)
		}
		if got := time.Since(begin); got != 0 {
			t.Errorf("got a wait of %v for another caller, want none", got)
		}
		wg.Wait()
	})
}

// serveDNS runs a DNS server on loopback and returns a resolver that uses it.
func serveDNS(t *testing.T, handler dns.HandlerFunc) *net.Resolver {
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
		if err := errors.Join(server.Shutdown(), <-ended); err != nil {
			t.Errorf("name server: %v", err)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestDNSResponses(t *testing.T) {
	records := map[string]string{
		"four.example.com. A":   "four.example.com. 60 IN A 2.125.160.1",
		"six.example.com. AAAA": "six.example.com. 60 IN AAAA 2a02:ffc0::1",
	}
	resolver := serveDNS(t, func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.RecursionAvailable = true
		question := r.Question[0]
		if text, ok := records[question.Name+" "+dns.TypeToString[question.Qtype]]; ok {
			record, err := dns.NewRR(text)
			if err != nil {
				t.Error(err)
			}
			m.Answer = append(m.Answer, record)
		}
		switch question.Name {
		case "absent.example.com.":
			m.Rcode = dns.RcodeNameError
		case "broken.example.com.":
			m.Rcode = dns.RcodeServerFailure
		case "four.example.com.", "six.example.com.", "bare.example.com.":
		default:
			t.Errorf("asked for %s, want no search domain", question.Name)
		}
		if err := w.WriteMsg(m); err != nil {
			t.Error(err)
		}
	})
	city, _ := cityAndASN(t)
	p := open(t, mmdb.Config{Resolver: resolver.LookupNetIP}, city)
	wantCity(t, p, "four.example.com", "Boxford")
	wantCity(t, p, "six.example.com", "Boxford")
	wantError(t, single(t, p, "absent.example.com"), geo.CodeInvalidQuery, geo.ReasonNotFound)
	wantError(t, single(t, p, "bare.example.com"), geo.CodeInvalidQuery, geo.ReasonNotFound)
	wantError(t, single(t, p, "broken.example.com"), geo.CodeProviderUnreachable, "")
}
