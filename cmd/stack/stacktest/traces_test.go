package stacktest_test

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/trace"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/ipapi"
)

// traced is a collector of spans, an upstream and a client's server in one. It keeps what it gets.
type traced struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	spans map[string][]*spans.Span // by the node that sent them
	text  strings.Builder          // all that the collector got, as JSON
	asked map[string][]string      // trace contexts of other requests, by the first part of the path
}

func newTraced(t *testing.T) *traced {
	s := &traced{t: t, spans: map[string][]*spans.Span{}, asked: map[string][]string{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.SetKeepAlivesEnabled(false) // a stack checks that no goroutine remains
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *traced) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/v1/traces" {
		s.take(r)
		return
	}
	path := strings.Split(r.URL.Path, "/")
	s.asked[path[1]] = append(s.asked[path[1]], r.Header.Get("Traceparent"))
	switch path[1] {
	case "json":
		fmt.Fprintf(w, `{"status":"success","query":%q}`, path[2])
	case "batch":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.t.Error(err)
		}
		var answers []string
		for q := range strings.SplitSeq(strings.Trim(string(body), "[]"), ",") {
			answers = append(answers, `{"status":"success","query":`+q+`}`)
		}
		fmt.Fprintf(w, "[%s]", strings.Join(answers, ","))
	}
}

// take decodes what an OTLP exporter has sent.
func (s *traced) take(r *http.Request) {
	unzipped, err := gzip.NewReader(r.Body)
	if err != nil {
		s.t.Error(err)
		return
	}
	body, err := io.ReadAll(unzipped)
	var m collector.ExportTraceServiceRequest
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" ||
		proto.Unmarshal(body, &m) != nil {
		s.t.Errorf("got %s of %d bytes, %v, want spans", r.Header.Get("Content-Type"), len(body), err)
	}
	s.text.WriteString(protojson.Format(&m))
	for _, resource := range m.ResourceSpans {
		node := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.instance.id" {
				node = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			s.spans[node] = append(s.spans[node], scope.Spans...)
		}
	}
}

// traces is an Option: the service sends its spans to s, and asks s for lookups.
func (s *traced) traces(c *stack.Config) {
	c.Traces.Endpoint, c.Traces.Ratio = s.URL, 1
	c.Lookups.Upstream = ipapi.Config{Tier: ipapi.Sim, Base: s.URL}
}

// withTrace sends a trace context along with each request.
type withTrace struct {
	*http.Transport
	traceparent string
}

func (w withTrace) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", w.traceparent)
	return w.Transport.RoundTrip(r)
}

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	traceparent = "00-" + traceID + "-b7ad6b7169203331-01"
)

// TestOneTrace signs a person in, looks up addresses, resets the password and signs the person out:
// all is in one trace, from the proxy to the upstream, to messages and to the client's server, also
// over several nodes. The spans have nothing personal and no secret.
func TestOneTrace(t *testing.T) {
	others := newTraced(t)
	st := stacktest.NewReachable(t, stacktest.BehindProxy, others.traces)
	st.Client.Transport = withTrace{st.Client.Transport.(*http.Transport), traceparent}
	r := &row{st.IdentityStack, t, "198.51.100.77"}
	c := r.relyingParty(func(c *oauth.Client) { c.Options.BackchannelLogoutURI = others.URL + "/logout" })
	u := r.person()
	b := r.browser()
	signIn := b.login(c, u)
	for i := range 20 {
		b.open("GET", fmt.Sprintf("/api/lookup?q=203.0.112.%d", i+1), nil)
	}
	b.send(b.open("GET", "/reset", nil), "email", u.Email)
	code := st.Mail.Next(t, u.Email)
	notice := st.Mail.Notice(t, u.Email, account.NewBrowser)
	b.logout("id_token_hint", signIn.raw, "post_logout_redirect_uri", afterLogout)
	for what, sent := range map[string]string{"a code": code.Trace, "a notice": notice.Trace} {
		if trace.ID(sent) != traceID || sent == traceparent {
			t.Errorf("got %s in the trace %q, want a span of %s", what, sent, traceID)
		}
	}
	for what, least := range map[string]int{"json": 20, "logout": 1} {
		for _, sent := range others.await(what, least) {
			if trace.ID(sent) != traceID || sent == traceparent {
				t.Errorf("%s: got the trace %q, want a span of %s", what, sent, traceID)
			}
		}
	}
	want := []string{"GET /oauth/authorize", "POST /login", "POST /oauth/token", "GET /api/lookup",
		"ask the upstream", "POST /reset", "GET /oauth/logout"}
	if stacktest.Nodes(t) > 1 {
		want = append(want, "look up for another node")
	}
	if names := others.awaitNames(t, want...); len(names) != stacktest.Nodes(t) {
		t.Errorf("got spans of %d nodes, want %d", len(names), stacktest.Nodes(t))
	}
	others.mu.Lock()
	defer others.mu.Unlock()
	text := others.text.String()
	for _, secret := range []string{"203.0.112", "127.0.0.1", "198.51.100", u.Email, u.Name, c.ID,
		c.Secret, "state=", stacktest.Password, code.Code, signIn.access, signIn.raw, "Go-http-client",
		b.Client.Jar.Cookies(nil)[0].Value} {
		if strings.Contains(text, secret) {
			t.Errorf("got %s in a span, want nothing of a request", secret)
		}
	}
	for _, line := range st.Log.Records("request") {
		if line["trace_id"] != traceID && line["route"] != "/readyz" {
			t.Errorf("got %v, want trace_id %s", line, traceID)
		}
	}
}

// await returns the trace contexts of the requests to a path, when there are some.
func (s *traced) await(path string, least int) []string {
	for {
		s.mu.Lock()
		got := slices.Clone(s.asked[path])
		s.mu.Unlock()
		if len(got) >= least {
			return got
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatalf("got %d requests to %s, want %d", len(got), path, least)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// awaitNames waits for spans of all these names, each within the trace. It returns the names by the
// node that sent them.
func (s *traced) awaitNames(t *testing.T, want ...string) map[string][]string {
	for {
		names, missing := map[string][]string{}, slices.Clone(want)
		s.mu.Lock()
		for node, all := range s.spans {
			for _, span := range all {
				if hex.EncodeToString(span.TraceId) == traceID {
					names[node] = append(names[node], span.Name)
					missing = slices.DeleteFunc(missing, func(name string) bool { return name == span.Name })
				}
			}
		}
		s.mu.Unlock()
		if len(missing) == 0 {
			return names
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("got %v, want also %v", names, missing)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestTraceOfStranger: only a trusted proxy says which trace a request belongs to. Without a
// collector, its trace is logged and passed on as it is.
func TestTraceOfStranger(t *testing.T) {
	for _, row := range []struct {
		about  string
		option stacktest.Option
		header []string
		want   string
	}{
		{"a trusted proxy", stacktest.BehindProxy, []string{traceparent}, traceparent},
		{"a trusted proxy that sends nothing valid", stacktest.BehindProxy, []string{traceparent + "0"}, ""},
		{"a trusted proxy that sends two", stacktest.BehindProxy, []string{traceparent, traceparent}, ""},
		{"a stranger", func(*stack.Config) {}, []string{traceparent}, ""},
	} {
		others := newTraced(t)
		st := stacktest.New(t, row.option, others.traces, func(c *stack.Config) {
			c.Traces.Endpoint = ""
		})
		request, err := http.NewRequestWithContext(t.Context(), "GET", st.URL+"/api/lookup?q=203.0.112.1", nil)
		stacktest.Must(t, err)
		request.Header["Traceparent"] = row.header
		response, err := st.Client.Do(request)
		stacktest.Must(t, err)
		response.Body.Close()
		got := others.await("json", 1)
		line := st.Log.Records("request")[0]
		logged, _ := line["trace_id"].(string)
		if response.StatusCode != 200 || got[0] != row.want || logged != trace.ID(row.want) {
			t.Errorf("%s: got %d, %q at the upstream and %q in the log, want %q", row.about,
				response.StatusCode, got, logged, row.want)
		}
	}
}
