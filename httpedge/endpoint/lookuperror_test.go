package endpoint_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/httpedge/endpoint"
)

func TestErrorsBecomeAnswers(t *testing.T) {
	messages := map[string]string{}
	for _, row := range []struct {
		err       geo.Error
		status    int
		wait      string // Retry-After
		waitInRow any    // retry_after of a bulk item
	}{
		{geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonEmpty}, 400, "", nil},
		{geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonMalformed}, 400, "", nil},
		{geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonHasScheme}, 400, "", nil},
		{geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonHasPath}, 400, "", nil},
		{geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonPrivateRange}, 400, "", nil},
		{geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonReservedRange}, 400, "", nil},
		{geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}, 400, "", nil},
		{geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonTooMany}, 400, "", nil},
		{geo.Error{Code: geo.CodeRateLimited, RetryAfter: 30 * time.Second}, 429, "30", 30.0},
		{geo.Error{Code: geo.CodeRateLimited, RetryAfter: 30*time.Second + 1}, 429, "31", 31.0},
		{geo.Error{Code: geo.CodeRateLimited, RetryAfter: time.Millisecond}, 429, "1", 1.0},
		{geo.Error{Code: geo.CodeRateLimited}, 429, "1", 1.0},
		{geo.Error{Code: geo.CodeRateLimited, RetryAfter: -time.Minute}, 429, "1", 1.0},
		{geo.Error{Code: geo.CodeOverloaded, RetryAfter: 2 * time.Second}, 503, "2", 2.0},
		{geo.Error{Code: geo.CodeOverloaded}, 503, "1", 1.0},
		{geo.Error{Code: geo.CodeProviderUnreachable}, 502, "", nil},
		{geo.Error{Code: geo.CodeProviderUnreachable, RetryAfter: 9500 * time.Millisecond}, 502, "10", 10.0},
	} {
		ctx := new(fasthttp.RequestCtx)
		endpoint.WriteLookupError(ctx, `a"b`, &row.err)
		var body, item map[string]any
		if err := json.Unmarshal(ctx.Response.Body(), &body); err != nil {
			t.Fatalf("got %s: %v", ctx.Response.Body(), err)
		}
		if err := json.Unmarshal(endpoint.AppendLookupError(nil, `a"b`, &row.err, true), &item); err != nil {
			t.Fatalf("got %s: %v", endpoint.AppendLookupError(nil, `a"b`, &row.err, true), err)
		}
		if got := ctx.Response.StatusCode(); got != row.status {
			t.Errorf("%v: got status %d, want %d", &row.err, got, row.status)
		}
		if got := string(ctx.Response.Header.Peek("Retry-After")); got != row.wait {
			t.Errorf("%v: got Retry-After %q, want %q", &row.err, got, row.wait)
		}
		if got := string(ctx.Response.Header.Peek("Cache-Control")); got != "no-store" {
			t.Errorf("%v: got Cache-Control %q, want no-store", &row.err, got)
		}
		if item["retry_after"] != row.waitInRow {
			t.Errorf("%v: got retry_after %v, want %v", &row.err, item["retry_after"], row.waitInRow)
		}
		delete(item, "retry_after")
		for name, want := range map[string]any{"ok": false, "query": `a"b`, "error": string(row.err.Code), "reason": string(row.err.Reason)} {
			if body[name] != want || item[name] != want {
				t.Errorf("%v: got %s %v and %v, want %v", &row.err, name, body[name], item[name], want)
			}
		}
		if len(body) != 5 || len(item) != 5 {
			t.Errorf("%v: got %v and %v, want ok, query, error, message, reason", &row.err, body, item)
		}
		messages[row.err.Error()] = body["message"].(string)
	}
	seen := map[string]string{}
	for err, message := range messages {
		if other, ok := seen[message]; ok || message == "" {
			t.Errorf("got message %s for %s and %s, want one each", strconv.Quote(message), err, other)
		}
		seen[message] = err
	}
}
