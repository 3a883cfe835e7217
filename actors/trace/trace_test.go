package trace_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/actors/trace"
)

const (
	parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	id     = "0af7651916cd43dd8448eb211c80319c"
)

// TestParse has the cases of W3C Trace Context section 3.2.
func TestParse(t *testing.T) {
	const rest = "-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, row := range []struct{ about, header, want string }{
		{"example of the standard", parent, parent},
		{"not sampled", parent[:54] + "0", parent[:54] + "0"},
		{"flags that are not known", parent[:53] + "ff", parent[:53] + "ff"},
		{"later version", "cc" + rest, parent},
		{"later version with more", "cc" + rest + "-what-comes", parent},
		{"later version with more and no hyphen", "cc" + rest + ".what", ""},
		{"version 00 with more", "00" + rest + "-what", ""},
		{"version ff", "ff" + rest, ""},
		{"version in upper case", "AB" + rest, ""},
		{"nothing", "", ""},
		{"too short", parent[:54], ""},
		{"trace id of zeros", "00-00000000000000000000000000000000-b7ad6b7169203331-01", ""},
		{"span id of zeros", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", ""},
		{"upper case", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", ""},
		{"other letters", "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", ""},
		{"line break", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\n-01", ""},
		{"other separators", "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01", ""},
		{"space before", " 0" + rest, ""},
	} {
		if got := trace.Parse([]byte(row.header)); got != row.want {
			t.Errorf("%s: got %q, want %q", row.about, got, row.want)
		}
	}
	if got := trace.ID(parent) + trace.ID(""); got != id {
		t.Errorf("got trace id %q, want %q", got, id)
	}
}

func TestMark(t *testing.T) {
	for _, row := range []struct{ traceparent, id, want string }{
		{"", "5f1c", "5f1c"}, {parent, "5f1c", parent + ".5f1c"},
	} {
		got := trace.Mark(row.traceparent, row.id)
		if got != row.want || trace.OfMark(got) != row.traceparent {
			t.Errorf("got %q in the trace %q, want %q", got, trace.OfMark(got), row.want)
		}
	}
	if got := trace.OfMark("5f.1c"); got != "" {
		t.Errorf("got the trace %q of another id, want none", got)
	}
}

// TestNoTracer: without a tracer, what a request causes belongs to the request's own trace.
func TestNoTracer(t *testing.T) {
	var none *trace.Tracer
	span := none.Start(parent, "x", trace.Server, time.Now())
	span.End(time.Now(), "y")
	ctx := trace.With(context.Background(), span.Traceparent())
	if got := trace.Of(ctx); got != parent {
		t.Errorf("got %q, want %q", got, parent)
	}
	if got := trace.With(ctx, ""); got != ctx {
		t.Error("got another context without a trace, want the same")
	}
}
