package oauthapi_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/cmd/stack/stacktest"
)

// TestFailuresOfClients: log, metrics, the client's record and the trail say whose requests fail.
func TestFailuresOfClients(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c, o := st.NewClient(t, nil), st.NewOperator(t)
	const gone = "6b3a4b1e-0c1d-4c63-9d0e-2f6f5f2c9a10"
	form := func(id, secret string) url.Values {
		return url.Values{"grant_type": {"authorization_code"}, "code": {"x"}, "client_id": {id},
			"client_secret": {secret}, "redirect_uri": {stacktest.RedirectURI}}
	}
	st.PostToken(t, form(c.ID, "wrong"))
	st.PostToken(t, form(c.ID, "wrong"))
	st.PostToken(t, url.Values{"client_id": {c.ID}}) // without a grant
	st.PostToken(t, form("nobody-we-know", "wrong"))
	st.PostToken(t, form(gone, "wrong"))
	authorize := url.Values{"response_type": {"code"}, "client_id": {c.ID},
		"redirect_uri": {"https://evil.example/"}}
	st.Get(t, "/oauth/authorize?"+authorize.Encode())
	var got []string
	for _, line := range st.Log.Records("request") {
		if line["error"] == nil {
			continue
		}
		id, _ := line["client_id"].(string)
		if unknown, ok := line["unknown_client_id"].(string); ok {
			id = "not " + unknown
		}
		if reason, _ := line["reason"].(string); reason == "" {
			t.Errorf("got %v, want a reason", line)
		}
		got = append(got, strings.Join([]string{line["route"].(string), line["error"].(string), id}, " "))
		if line["reference"] != line["request_id"] {
			t.Errorf("got %v, want the request's id as reference", line)
		}
	}
	want := []string{"/oauth/token invalid_client " + c.ID, "/oauth/token invalid_client " + c.ID,
		"/oauth/token invalid_request " + c.ID, "/oauth/token invalid_client ",
		"/oauth/token invalid_client not " + gone,
		"/oauth/authorize invalid_request " + c.ID}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got failed lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(st.Log.String(), "nobody-we-know") {
		t.Error("got the id of a client that is not known in the log, want none")
	}
	for _, sample := range []string{
		`gatehouse_oauth_failures_total{endpoint="token",error="invalid_client"} 4`,
		`gatehouse_oauth_failures_total{endpoint="authorize",error="invalid_request"} 1`,
	} {
		if !strings.Contains(st.MetricsText(t), sample) {
			t.Errorf("got no %s in the metrics, want it", sample)
		}
	}
	record := o.Do(200, "GET", "/clients/"+c.ID, "").Object(t)
	if record["failures"] != 4.0 || record["last_error"] != "invalid_request" ||
		record["last_failure_at"] == nil {
		t.Errorf("got %v, want four failures", record)
	}
	var events []audit.Event
	for end := time.Now().Add(stacktest.Patience); len(events) < 2 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var err error
		if events, err = st.Store.Events(t.Context(), audit.Filter{Action: audit.ClientFailed,
			ClientID: c.ID, Limit: 10}); err != nil {
			t.Fatal(err)
		}
	}
	counts := map[string]int{}
	for _, e := range events {
		counts[strings.Join(e.Details, " ")] += e.Count
		if e.Outcome != audit.Failed || e.Actor.Kind != audit.Client || e.Actor.ID != "" || e.From == "" {
			t.Errorf("got %+v, want a failure by somebody with the client's id, and the network", e)
		}
	}
	if counts["invalid_client"] != 2 || counts["invalid_request"] != 2 || len(events) != 2 {
		t.Errorf("got %v in %d rows, want 2 each in 2", counts, len(events))
	}
}
