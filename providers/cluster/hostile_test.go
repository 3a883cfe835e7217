//go:build !race

package cluster_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"gatehouse/actors/partition"
	"gatehouse/providers/cluster"
)

// stranger is a process with a certificate that speaks the library's protocol by itself.
type stranger struct {
	id   string
	cert tls.Certificate
}

// newStranger makes a certificate, and the row of a node with it.
func newStranger(tb testing.TB, r *rows, k *keys, address string) *stranger {
	tb.Helper()
	cert, hash, err := cluster.Issue(k.get(), time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	s := &stranger{id: strings.Repeat("5", 32), cert: cert}
	r.edit(s.id, func(n *partition.Node) {
		*n = partition.Node{ID: s.id, Name: "stranger", Address: address, Certificates: []string{hash},
			Speaks: 1, State: partition.Joining, Beat: 1, Seen: -1}
	})
	return s
}

func (s *stranger) config() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{s.cert}, MinVersion: tls.VersionTLS13,
		InsecureSkipVerify: true, NextProtos: []string{"h2"}}
}

// dial connects to a node.
func (s *stranger) dial(tb testing.TB, m *member) *grpc.ClientConn {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:///"+m.Address(),
		grpc.WithTransportCredentials(credentials.NewTLS(s.config())))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// stream opens a stream and greets, unless raw.
func (s *stranger) stream(tb testing.TB, m *member, greet bool, options ...grpc.CallOption) remote.Remoting_ReceiveClient {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	tb.Cleanup(cancel)
	stream, err := remote.NewRemotingClient(s.dial(tb, m)).Receive(ctx, options...)
	if err != nil {
		tb.Fatal(err)
	}
	if greet {
		if err := stream.Send(greeting()); err != nil {
			tb.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			tb.Fatal(err)
		}
	}
	return stream
}

func greeting() *remote.RemoteMessage {
	return &remote.RemoteMessage{MessageType: &remote.RemoteMessage_ConnectRequest{
		ConnectRequest: &remote.ConnectRequest{ConnectionType: &remote.ConnectRequest_ServerConnection{
			ServerConnection: &remote.ServerConnection{SystemId: "x", Address: "127.0.0.1:1"},
		}},
	}}
}

// batch returns a message with a frame, changed by f.
func batch(address string, frame []byte, f func(*remote.MessageBatch)) *remote.RemoteMessage {
	data, err := proto.Marshal(wrapperspb.Bytes(frame))
	if err != nil {
		panic(err)
	}
	b := &remote.MessageBatch{
		TypeNames: []string{cluster.FrameType},
		Targets:   []*actor.PID{actor.NewPID(address, cluster.TargetName)},
		Envelopes: []*remote.MessageEnvelope{{MessageData: data}},
	}
	if f != nil {
		f(b)
	}
	return &remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{MessageBatch: b}}
}

// works fails the test unless asks pass between two nodes.
func works(tb testing.TB, a, b *member) {
	tb.Helper()
	for _, pair := range [][2]*member{{a, b}, {b, a}} {
		if _, _, err := pair[0].Ask(service, other(tb, pair[0], pair[1]), nil, soon()); err != nil {
			tb.Errorf("got %v between the nodes", err)
		}
	}
}

// panics fails a test when an error is logged: what others send must not reach a panic.
type panics struct {
	slog.Handler
	t *testing.T
}

func (panics) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (p panics) Handle(_ context.Context, record slog.Record) error {
	p.t.Errorf("got %q logged", record.Message)
	return nil
}

func TestHostileMessagesEndTheStream(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a := start(t, r, k, func(c *cluster.Config) { c.Logger = slog.New(panics{slog.DiscardHandler, t}) })
	b := start(t, r, k)
	settled(t, a, b)
	s := newStranger(t, r, k, "127.0.0.1:1")
	defer r.keepAlive(s.id)()
	edit := func(f func(*remote.MessageBatch)) *remote.RemoteMessage {
		return batch(a.Address(), nil, f)
	}
	for _, row := range []struct {
		name  string
		greet bool
		m     *remote.RemoteMessage
	}{
		{"nothing", false, &remote.RemoteMessage{}},
		{"a batch before the greeting", false, edit(nil)},
		{"a greeting without a connection", false, &remote.RemoteMessage{
			MessageType: &remote.RemoteMessage_ConnectRequest{ConnectRequest: &remote.ConnectRequest{}}}},
		{"a greeting of a client", false, &remote.RemoteMessage{
			MessageType: &remote.RemoteMessage_ConnectRequest{ConnectRequest: &remote.ConnectRequest{
				ConnectionType: &remote.ConnectRequest_ClientConnection{}}}}},
		{"a second greeting", true, greeting()},
		{"nothing after the greeting", true, &remote.RemoteMessage{}},
		{"a disconnect request", true, &remote.RemoteMessage{
			MessageType: &remote.RemoteMessage_DisconnectRequest{DisconnectRequest: &remote.DisconnectRequest{}}}},
		{"an empty batch", true, &remote.RemoteMessage{
			MessageType: &remote.RemoteMessage_MessageBatch{MessageBatch: &remote.MessageBatch{}}}},
		{"an unknown type", true, edit(func(b *remote.MessageBatch) { b.TypeNames[0] = "no.such.Type" })},
		{"another type", true, edit(func(b *remote.MessageBatch) { b.TypeNames[0] = "actor.PoisonPill" })},
		{"a system message", true, edit(func(b *remote.MessageBatch) { b.TypeNames[0] = "actor.Terminated" })},
		{"no type", true, edit(func(b *remote.MessageBatch) { b.TypeNames = nil })},
		{"two types", true, edit(func(b *remote.MessageBatch) { b.TypeNames = append(b.TypeNames, "x") })},
		{"a wrong type index", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].TypeId = 1 })},
		{"a negative type index", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].TypeId = -1 })},
		{"a wrong target index", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].Target = 1 })},
		{"a negative target index", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].Target = -1 })},
		{"no target", true, edit(func(b *remote.MessageBatch) { b.Targets = nil })},
		{"another actor", true, edit(func(b *remote.MessageBatch) { b.Targets[0].Id = "activator" })},
		{"another address", true, edit(func(b *remote.MessageBatch) { b.Targets[0].Address = "127.0.0.1:9" })},
		{"a request", true, edit(func(b *remote.MessageBatch) { b.Targets[0].RequestId = 1 })},
		{"a request in the envelope", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].TargetRequestId = 1 })},
		{"a sender index", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].Sender = 1 })},
		{"a sender", true, edit(func(b *remote.MessageBatch) {
			b.Senders = []*actor.PID{actor.NewPID("127.0.0.1:9", "x")}
		})},
		{"a sender's request", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].SenderRequestId = 1 })},
		{"JSON", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].SerializerId = 1 })},
		{"an unknown serializer", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].SerializerId = 99 })},
		{"a header", true, edit(func(b *remote.MessageBatch) {
			b.Envelopes[0].MessageHeader = &remote.MessageHeader{
				HeaderData: map[string]string{"certificate": "00"}}
		})},
		{"two envelopes", true, edit(func(b *remote.MessageBatch) { b.Envelopes = append(b.Envelopes, b.Envelopes[0]) })},
		{"no envelope", true, edit(func(b *remote.MessageBatch) { b.Envelopes = nil })},
		{"malformed data", true, edit(func(b *remote.MessageBatch) { b.Envelopes[0].MessageData = []byte{0xff} })},
		{"too much", true, batch(a.Address(), make([]byte, cluster.MaxMessage), nil)},
	} {
		stream := s.stream(t, a, row.greet)
		if err := stream.Send(row.m); err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v", row.name, err)
		}
		if _, err := stream.Recv(); err == nil || status.Code(err) == codes.DeadlineExceeded {
			t.Errorf("%s: got %v, want the stream ended", row.name, err)
		}
	}
	works(t, a, b)
}

func TestUnaryCallsAreRefused(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	settled(t, a, b)
	s := newStranger(t, r, k, "127.0.0.1:1")
	client := remote.NewRemotingClient(s.dial(t, a))
	if _, err := client.ListProcesses(t.Context(), &remote.ListProcessesRequest{}); err == nil {
		t.Error("got the processes listed")
	}
	if _, err := client.GetProcessDiagnostics(t.Context(), &remote.GetProcessDiagnosticsRequest{}); err == nil {
		t.Error("got diagnostics")
	}
	if err := s.dial(t, a).Invoke(t.Context(), "/other.Service/Call",
		&remote.ListProcessesRequest{}, &remote.ListProcessesResponse{}); err == nil {
		t.Error("got an unknown method called")
	}
	works(t, a, b)
}

// raw sends bytes as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (raw) Unmarshal([]byte, any) error   { return nil }
func (raw) Name() string                  { return "proto" }

func TestHostileBytesEndTheStream(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	settled(t, a, b)
	s := newStranger(t, r, k, "127.0.0.1:1")
	defer r.keepAlive(s.id)()
	whole, err := proto.Marshal(batch(a.Address(), make([]byte, 100), nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"garbage":   []byte("GET / HTTP/1.1\r\n\r\n"),
		"truncated": whole[:len(whole)/2],
	} {
		stream := s.stream(t, a, false, grpc.ForceCodec(raw{}))
		if err := stream.SendMsg(b); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(nil); err == nil || status.Code(err) == codes.DeadlineExceeded {
			t.Errorf("%s: got %v, want the stream ended", name, err)
		}
	}
	works(t, a, b)
}

func TestForgedFramesAreDropped(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	registry := prometheus.NewRegistry()
	a, b := start(t, r, k, func(c *cluster.Config) { c.Metrics = registry }), start(t, r, k)
	settled(t, a, b)
	s := newStranger(t, r, k, "127.0.0.1:1")
	defer r.keepAlive(s.id)()
	part := other(t, b, a)
	self := a.View().Self
	ask := func(f func(*partition.Frame)) []byte {
		frame := partition.Frame{Version: 1, From: s.id, To: self, Number: 1, Messages: []partition.Message{
			{Kind: partition.Ask, Number: 1, Service: service, Partition: part}}}
		if f != nil {
			f(&frame)
		}
		return partition.AppendFrame(nil, &frame)
	}
	whole := ask(nil)
	stream := s.stream(t, a, true)
	send := func(frame []byte) {
		t.Helper()
		if err := stream.Send(batch(a.Address(), frame, nil)); err != nil {
			t.Fatal(err)
		}
	}
	bad := [][]byte{
		ask(func(f *partition.Frame) { f.From = b.View().Self }),
		ask(func(f *partition.Frame) { f.From = self }),
		ask(func(f *partition.Frame) { f.From = "" }),
		ask(func(f *partition.Frame) { f.To = b.View().Self }),
		ask(func(f *partition.Frame) { f.To = "" }),
		ask(func(f *partition.Frame) { f.Version = partition.Version + 1 }),
		whole[:len(whole)-1], {}, []byte("garbage"),
	}
	for _, frame := range bad {
		send(frame)
	}
	eventually(t, func() string {
		if got := gather(t, registry)["gatehouse_cluster_refused_total{frame}"]; got != float64(len(bad)) {
			return fmt.Sprintf("got %v frames refused, want %d", got, len(bad))
		}
		return ""
	})
	if got := a.asked.Load(); got != 0 {
		t.Errorf("got %d asks of forged frames handled", got)
	}
	// A replayed frame, a partition that there is not, and replies that nobody waits for.
	send(whole)
	send(whole)
	send(ask(func(f *partition.Frame) { f.Messages[0].Partition = 1 << 20 }))
	send(ask(func(f *partition.Frame) {
		f.Number, f.Reply = 0, 99
		f.Messages = []partition.Message{
			{Kind: partition.Answer, Number: 1}, {Kind: partition.Answer, Number: -1},
			{Kind: partition.Answer, Number: 1 << 60}, {Kind: partition.Unsupported, Number: 5},
			{Kind: 200, Number: 7}, {Kind: partition.Cast, Service: 77},
		}
	}))
	eventually(t, func() string {
		if got := a.asked.Load(); got != 2 {
			return fmt.Sprintf("got %d asks handled, want 2", got)
		}
		return ""
	})
	works(t, a, b)
	// Once its row is gone, the stream ends.
	r.remove(s.id)
	eventually(t, func() string {
		if _, ok := a.View().Nodes[s.id]; ok {
			return "got the row still in the View"
		}
		return ""
	})
	eventually(t, func() string { // a reading of the transport's own counts for some seconds
		if err := stream.Send(batch(a.Address(), whole, nil)); err == nil {
			return "got frames accepted without a row"
		}
		return ""
	})
	if _, err := stream.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("got %v, want %v", err, codes.PermissionDenied)
	}
}

func TestHandshakesOfStrangersAreRefused(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	registry := prometheus.NewRegistry()
	a, b := start(t, r, k, func(c *cluster.Config) { c.Metrics = registry }), start(t, r, k)
	settled(t, a, b)
	good := newStranger(t, r, k, "127.0.0.1:1")
	other, hash, err := cluster.Issue(newKeys(2).get(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	expired, expiredHash, err := cluster.Issue(k.get(), time.Now().Add(-25*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	nameless, _, err := cluster.Issue(k.get(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r.edit(good.id, func(n *partition.Node) { n.Certificates = append(n.Certificates, hash, expiredHash) })
	for _, row := range []struct {
		name string
		c    *tls.Config
		want bool
	}{
		{"the certificate of a row", good.config(), true},
		{"one of another authority", (&stranger{cert: other}).config(), false},
		{"an expired one", (&stranger{cert: expired}).config(), false},
		{"one that no row names", (&stranger{cert: nameless}).config(), false},
		{"none", &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, false},
		{"TLS 1.2", &tls.Config{InsecureSkipVerify: true, Certificates: good.config().Certificates,
			NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12}, false},
	} {
		// The server checks the certificate after the client is content.
		err := func() error {
			conn, err := tls.Dial("tcp", a.Address(), row.c)
			if err != nil {
				return err
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, err = conn.Read(make([]byte, 1)) // the settings of HTTP/2
			return err
		}()
		if err == nil != row.want {
			t.Errorf("%s: got %v, want it accepted: %v", row.name, err, row.want)
		}
	}
	eventually(t, func() string { // they are counted after the connection is closed
		values := gather(t, registry)
		certificate := values["gatehouse_cluster_refused_total{certificate}"]
		handshake := values["gatehouse_cluster_refused_total{handshake}"]
		if certificate != 1 || handshake != 4 {
			return fmt.Sprintf("got %v certificates and %v handshakes refused, want 1 and 4",
				certificate, handshake)
		}
		return ""
	})
	works(t, a, b)
}

func TestConnectionsWithoutHandshakeAreBounded(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	settled(t, a, b)
	closed := make(chan struct{}, 1000)
	const n = cluster.MaxHandshakesEach + 20
	for i := range n {
		conn, err := net.Dial("tcp", a.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			_, _ = conn.Write([]byte{22, 3, 1, 2, 0, 1}) // the beginning of a handshake
		}
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			closed <- struct{}{}
		}()
	}
	for range n - cluster.MaxHandshakesEach {
		<-closed
	}
	works(t, a, b)
	began := time.Now()
	for range cluster.MaxHandshakesEach {
		<-closed
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("got handshakes kept for %v", took)
	}
	// Garbage ends at once.
	conn, err := net.Dial("tcp", a.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
	if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	eventually(t, func() string {
		if open := a.Open(); open > 1 {
			return fmt.Sprintf("got %d connections counted, want that of the other node", open)
		}
		return ""
	})
	works(t, a, b)
}

// connection is one from an address.
type connection struct {
	net.Conn
	from   string
	closed bool
}

func (c *connection) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), 1))
}

func (c *connection) Close() error {
	c.closed = true
	return nil
}

func TestHandshakesInTheWay(t *testing.T) {
	t.Parallel()
	const each, all = cluster.MaxHandshakesEach, cluster.MaxHandshakes
	several := func(n int, format string) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return list
	}
	same := func(n int, from string) []string { return slices.Repeat([]string{from}, n) }
	for _, row := range []struct {
		name string
		open []string
		next string
		want int // the one that is closed; -1 = none
	}{
		{"the first", nil, "192.0.2.1", -1},
		{"one more than an address may have", same(each, "192.0.2.1"), "192.0.2.1", 0},
		{"one more than a /64 may have", several(each, "2001:db8::%x"), "2001:db8::99", 0},
		{"another /64", several(each, "2001:db8::%x"), "2001:db8:0:1::", -1},
		{"an IPv4 address as an IPv6 one", same(each, "192.0.2.1"), "::ffff:192.0.2.1", 0},
		{"one more in all", several(all, "192.0.2.%d"), "198.51.100.1", 0},
		{"one more in all, where an address has most",
			append(several(all-2, "192.0.2.%d"), same(2, "203.0.113.1")...), "198.51.100.1", all - 2},
		{"one more in all, where the node has most",
			append(same(each, "10.0.0.7"), several(all-each, "192.0.2.%d")...), "198.51.100.1", each},
		{"the node's when all are open", several(all, "192.0.2.%d"), "10.0.0.7", 0},
		{"one more than the node may have", same(each, "10.0.0.7"), "10.0.0.7", 0},
	} {
		s := cluster.Shaking{Node: netip.MustParseAddr("10.0.0.7")}
		var list []*connection
		var ends []func() bool
		for _, from := range append(slices.Clone(row.open), row.next) {
			c := &connection{from: from}
			list, ends = append(list, c), append(ends, s.Add(c))
		}
		for i, c := range list {
			if c.closed != (i == row.want) || ends[i]() == c.closed {
				t.Errorf("%s: got the connection %d closed: %v, want %d only", row.name, i, c.closed,
					row.want)
			}
		}
	}
}

// Who has many addresses and opens connections without an end keeps no node out.
func TestStrangersKeepNoNodeOut(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a := start(t, r, k)
	settled(t, a)
	s := newStranger(t, r, k, "127.0.0.1:1")
	defer r.keepAlive(s.id)()
	for i := range 2 * cluster.MaxHandshakes {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%16))}}
		conn, err := from.Dial("tcp", a.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	eventually(t, func() string {
		if open := a.Open(); open < cluster.MaxHandshakes {
			return fmt.Sprintf("got %d connections open", open)
		}
		return ""
	})
	for range 10 {
		conn, err := tls.Dial("tcp", a.Address(), s.config())
		if err != nil {
			t.Fatalf("got %v for a node while strangers shake hands", err)
		}
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1)); err != nil { // the settings of HTTP/2
			t.Fatalf("got %v for a node while strangers shake hands", err)
		}
	}
	b := start(t, r, k)
	eventually(t, func() string {
		if !b.Decides(time.Now()) {
			return "got a node that does not join"
		}
		return ""
	})
}

func TestRotationWhileFramesFlow(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	for _, m := range []*member{a, b} {
		m.PresentAfter(2 * time.Second)
	}
	settled(t, a, b)
	works(t, a, b)
	stops := []func() (int, []error){load(a, time.Millisecond), load(b, time.Millisecond)}
	for _, seeds := range [][]byte{{2, 1}, {2}, {3, 2}} {
		before := slices.Concat(a.Streams(), b.Streams())
		k.set(seeds...)
		if len(seeds) == 1 {
			time.Sleep(2 * time.Second) // nothing changes
			continue
		}
		eventually(t, func() string {
			now := slices.Concat(a.Streams(), b.Streams())
			for _, sum := range now {
				if slices.Contains(before, sum) {
					return "got a stream with a certificate of the former authority"
				}
			}
			if len(now) != 2 {
				return fmt.Sprintf("got %d streams, want 2", len(now))
			}
			return ""
		})
	}
	for _, stop := range stops {
		if asked, failed := stop(); len(failed) > 0 || asked < 100 {
			t.Errorf("got %d of %d asks failed, the first with %v", len(failed), asked, failed[:1])
		}
	}
	works(t, a, b)
}

func TestCopiedAddressStallsNobody(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	settled(t, a, b)
	// A node that says it is where b is, as after a copied file of settings.
	c := start(t, r, k, func(c *cluster.Config) { c.Advertise = b.Address() })
	eventually(t, func() string {
		if len(a.View().Nodes) != 3 || c.View().Self == "" {
			return "got no row of the third node"
		}
		return ""
	})
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		works(t, a, b)
	}
	if state := a.View().Nodes[c.View().Self].State; state != partition.Joining {
		t.Errorf("got the node with another's address %s, want %s", state, partition.Joining)
	}
	if got := c.asked.Load(); got != 0 {
		t.Errorf("got %d asks at the node with another's address", got)
	}
	c.Stop()
	settled(t, a, b)
}

// hostileServer is a server at the address of a row.
type hostileServer struct {
	remote.UnimplementedRemotingServer
	receive func(remote.Remoting_ReceiveServer) error
	streams atomic.Int64
}

func (s *hostileServer) Receive(stream remote.Remoting_ReceiveServer) error {
	s.streams.Add(1)
	return s.receive(stream)
}

func TestHostileServers(t *testing.T) {
	t.Parallel()
	response := &remote.RemoteMessage{MessageType: &remote.RemoteMessage_ConnectResponse{
		ConnectResponse: &remote.ConnectResponse{}}}
	for _, row := range []struct {
		name    string
		receive func(remote.Remoting_ReceiveServer) error
	}{
		{"ends the stream", func(remote.Remoting_ReceiveServer) error { return nil }},
		{"fails", func(remote.Remoting_ReceiveServer) error { return errCut }},
		{"greets and ends", func(s remote.Remoting_ReceiveServer) error { return s.Send(response) }},
		{"replies something else", func(s remote.Remoting_ReceiveServer) error {
			_ = s.Send(greeting())
			<-s.Context().Done()
			return nil
		}},
		{"does not stop sending", func(s remote.Remoting_ReceiveServer) error {
			for s.Send(response) == nil {
			}
			return nil
		}},
		{"sends too much", func(s remote.Remoting_ReceiveServer) error {
			_ = s.Send(batch("x", make([]byte, 1<<20), nil))
			<-s.Context().Done()
			return nil
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, k := newRows(), newKeys(1)
			a, b := start(t, r, k), start(t, r, k)
			settled(t, a, b)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := newStranger(t, r, k, l.Addr().String())
			defer r.keepAlive(s.id)()
			config := s.config()
			config.ClientAuth = tls.RequireAnyClientCert
			server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
			hostile := &hostileServer{receive: row.receive}
			remote.RegisterRemotingServer(server, hostile)
			go server.Serve(l)
			defer server.Stop()
			eventually(t, func() string {
				a.Cast(7, []byte("news"))
				if n := hostile.streams.Load(); n < 3 && row.name != "replies something else" &&
					row.name != "does not stop sending" && row.name != "sends too much" || n == 0 {
					return fmt.Sprintf("got %d streams to the server, want it tried again", n)
				}
				return ""
			})
			works(t, a, b)
		})
	}
}

func TestServerWithAnotherCertificateGetsNothing(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	settled(t, a, b)
	// The certificates of nodes at other addresses, of another authority, and of no row.
	s := newStranger(t, r, k, "127.0.0.1:1")
	wrong, wrongHash, err := cluster.Issue(newKeys(2).get(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	nameless, _, err := cluster.Issue(k.get(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for name, cert := range map[string]tls.Certificate{
		"of another address": s.cert, "of another authority": wrong, "of no row": nameless,
	} {
		number++
		l, err := tls.Listen("tcp", "127.0.0.1:0", (&stranger{cert: cert}).config())
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("%032x", number)
		r.edit(id, func(n *partition.Node) {
			*n = partition.Node{ID: id, Address: l.Addr().String(), Certificates: []string{wrongHash},
				Speaks: 1, State: partition.Joining, Beat: 1, Seen: -1}
		})
		alive := r.keepAlive(id)
		read := make(chan error, 1000)
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				_, err = conn.Read(make([]byte, 1))
				_ = conn.Close()
				read <- err
			}
		})
		for tried := 0; tried < 2; {
			a.Cast(7, nil)
			select {
			case err := <-read:
				tried++
				if err == nil {
					t.Errorf("certificate %s: got bytes sent to the server", name)
				}
			case <-time.After(10 * time.Millisecond):
			}
		}
		_ = l.Close()
		serving.Wait()
		alive()
		r.remove(id)
	}
	works(t, a, b)
}
