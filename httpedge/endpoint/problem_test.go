package endpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/geo"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
)

func TestLookupErrors(t *testing.T) {
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
		{geo.Error{Code: geo.CodeProviderUnreachable}, 502, "", 1.0},
		{geo.Error{Code: geo.CodeProviderUnreachable, RetryAfter: 9500 * time.Millisecond}, 502,
			"10", 10.0},
	} {
		ctx := new(fasthttp.RequestCtx)
		endpoint.WriteLookup(ctx, `a"b`, &row.err)
		var body, item map[string]any
		if err := json.Unmarshal(ctx.Response.Body(), &body); err != nil {
			t.Fatalf("got %s: %v", ctx.Response.Body(), err)
		}
		if err := json.Unmarshal(endpoint.AppendItem(nil, `a"b`, &row.err), &item); err != nil {
			t.Fatalf("got %s: %v", endpoint.AppendItem(nil, `a"b`, &row.err), err)
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
			t.Errorf("%v: got retry_after %v, want %v", &row.err, item["retry_after"],
				row.waitInRow)
		}
		delete(item, "retry_after")
		for name, want := range map[string]any{"ok": false, "query": `a"b`,
			"error": string(row.err.Code), "reason": string(row.err.Reason)} {
			if body[name] != want || item[name] != want {
				t.Errorf("%v: got %s %v and %v, want %v", &row.err, name, body[name], item[name],
					want)
			}
		}
		if len(body) != 5 || len(item) != 5 {
			t.Errorf("%v: got %v and %v, want ok, query, error, message, reason", &row.err, body,
				item)
		}
		messages[row.err.Error()] = body["message"].(string)
	}
	seen := map[string]string{}
	for err, message := range messages {
		if other, ok := seen[message]; ok || message == "" {
			t.Errorf("got message %s for %s and %s, want one each", strconv.Quote(message), err,
				other)
		}
		seen[message] = err
	}
}

// TestProblemOf wraps every error, as the services do.
func TestProblemOf(t *testing.T) {
	invalid := account.FieldErrors{{Field: "email", Message: "is missing"},
		{Field: "name", Message: "is missing"}}
	for _, row := range []struct {
		err        error
		status     int
		code       string
		fields     int
		wait       time.Duration
		unexpected bool
	}{
		{invalid, 400, "invalid_request", 2, 0, false},
		{invalid[0], 400, "invalid_request", 1, 0, false},
		{&oauth.RegistrationError{Field: "name", Message: "is missing"}, 400, "invalid_request", 1,
			0, false},
		{&oauth.RegistrationError{Field: "secrets", Message: "there are two"}, 409, "conflict", 0,
			0, false},
		{account.ErrTaken, 409, "conflict", 0, 0, false},
		{oauth.ErrKeysInUse, 409, "conflict", 0, 0, false},
		{account.ErrNotFound, 404, "not_found", 0, 0, false},
		{oauth.ErrNotFound, 404, "not_found", 0, 0, false},
		{&people.ThrottledError{RetryAfter: 3 * time.Second}, 429, "rate_limit_exceeded", 0,
			3 * time.Second, false},
		{people.ErrWrongCredentials, 422, "", 0, 0, false},
		{people.ErrWrongCode, 422, "", 0, 0, false},
		{people.ErrCodeExpired, 422, "", 0, 0, false},
		{people.ErrDisabled, 403, "", 0, 0, false},
		{people.ErrProofNeeded, 403, "", 0, 0, false},
		{&oauth.Error{Code: oauth.InvalidClient}, 401, "invalid_client", 0, 0, false},
		{&oauth.Error{Code: oauth.TemporarilyUnavailable}, 503, "temporarily_unavailable", 0,
			time.Second, false},
		{&oauth.Error{Code: oauth.TemporarilyUnavailable, Throttled: true, RetryAfter: time.Minute},
			429, "temporarily_unavailable", 0, time.Minute, false},
		{&endpoint.Refusal{Verdict: token.TokenExpired}, 401, "token_expired", 0, 0, false},
		{&endpoint.Refusal{Verdict: token.RateLimited, Wait: time.Minute}, 429,
			"rate_limit_exceeded", 0, time.Minute, false},
		{&endpoint.Refusal{Verdict: token.InsufficientScope}, 403, "insufficient_scope", 0, 0,
			false},
		{&endpoint.Refusal{Verdict: token.UnapprovedScope}, 403, "unapproved_scope", 0, 0, false},
		{&endpoint.Refusal{Verdict: token.TryLater}, 503, "temporarily_unavailable", 0,
			time.Second, false},
		{&endpoint.Refusal{}, 401, "", 0, 0, false},
		{endpoint.ErrNotJSON, 415, "unsupported_media_type", 0, 0, false},
		{oauth.ErrBusy, 503, "temporarily_unavailable", 0, time.Second, false},
		{account.ErrBusy, 503, "temporarily_unavailable", 0, time.Second, false},
		{oauth.ErrUnknownOutcome, 503, "temporarily_unavailable", 0, time.Second, false},
		{context.DeadlineExceeded, 503, "temporarily_unavailable", 0, time.Second, false},
		{context.Canceled, 503, "temporarily_unavailable", 0, time.Second, false},
		{errors.New("disk full"), 503, "temporarily_unavailable", 0, time.Second, true},
	} {
		p := endpoint.ProblemOf(fmt.Errorf("save: %w", row.err))
		if p.Status != row.status || p.Code != row.code || len(p.Fields) != row.fields ||
			p.RetryAfter != row.wait || p.Unexpected != row.unexpected {
			t.Errorf("%v: got %+v, want %d %q, %d fields, %v, unexpected %v", row.err, p,
				row.status, row.code, row.fields, row.wait, row.unexpected)
		}
		if row.status == 404 && !endpoint.Failure(row.err).Unexpected {
			t.Errorf("%v: got a failure that is expected, want it logged", row.err)
		}
	}
}
