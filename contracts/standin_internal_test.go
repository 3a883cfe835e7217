package contracts

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// TestStandIns replaces gtat_a, wherever a request can have an access token, and nothing else.
func TestStandIns(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, row := range []struct{ header, query, kind, body, want string }{
		{"Bearer gtat_a", "", "", "", "Bearer gtat_issued||"},
		{"Bearer  gtat_a", "", "", "", "Bearer  gtat_issued||"},
		{"gtat_a", "", "", "", "gtat_issued||"},
		{"Bearer gtat_ab", "", "", "", "Bearer gtat_ab||"},
		{"", "x=%zz&access_token=gtat_a", "", "", "|x=%zz&access_token=gtat_issued|"},
		{"", "", form, "x=+%2b&token=gtat%5Fa&gtat_a&x=gtat_ab", "||x=+%2b&token=gtat_issued&gtat_a&x=gtat_ab"},
		{"", "", "Application/X-WWW-Form-urlencoded ; charset=utf-8", "token=gtat_a",
			"||token=gtat_issued"},
		{"", "", form, strings.Repeat("x", maxForm) + "&token=gtat_a",
			"||" + strings.Repeat("x", maxForm) + "&token=gtat_a"},
		{"", "", "text/plain", "token=gtat_a", "||token=gtat_a"},
	} {
		r := httptest.NewRequest("POST", "/?"+row.query, strings.NewReader(row.body))
		r.Header.Set("Authorization", row.header)
		r.Header.Set("Content-Type", row.kind)
		stacktest.Must(t, (standIns{"gtat_a": "gtat_issued"}).replace(r))
		body, err := io.ReadAll(r.Body)
		stacktest.Must(t, err)
		got := r.Header.Get("Authorization") + "|" + r.URL.RawQuery + "|" + string(body)
		if got != row.want || r.ContentLength != int64(len(body)) {
			t.Errorf("%.99v: got %.99s with the length %d, want %.99s", row, got, r.ContentLength,
				row.want)
		}
	}
}
