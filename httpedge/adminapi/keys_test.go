package adminapi_test

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// listedKey is a key in the response of GET /keys.
type listedKey struct {
	purpose string
	number  int
	current bool
}

// keys lists the keys.
func keys(o *stacktest.Operator) []listedKey {
	o.T.Helper()
	var all []listedKey
	list, _ := o.Do(200, "GET", "/keys", "").Object(o.T)["keys"].([]any)
	for _, item := range list {
		key, _ := item.(map[string]any)
		purpose, _ := key["purpose"].(string)
		number, _ := key["number"].(float64)
		created, _ := key["created_at"].(string)
		made, err := time.Parse(time.RFC3339, created)
		if file, _ := key["key_file"].(string); file == "" || err != nil ||
			time.Since(made) > time.Hour || len(key) != map[bool]int{false: 5, true: 6}[key["starts_at"] != nil] {
			o.T.Errorf("got %v, want a key made by this test with the name of its key file", key)
		}
		all = append(all, listedKey{purpose, int(number), key["expires_at"] == nil})
	}
	return all
}

// wantKeys checks the list of keys, which ends with the first key of factors and those that
// sign.
func wantKeys(o *stacktest.Operator, what string, want ...listedKey) {
	o.T.Helper()
	want = append(want, listedKey{"factors", 1, true}, listedKey{"rs256", 1, true},
		listedKey{"es256", 1, true})
	if got := keys(o); !slices.Equal(got, want) {
		o.T.Errorf("%s: got keys %v, want %v", what, got, want)
	}
}

// TestOperatorRotatesKeys: the token that asks was sealed with the key before, and goes on working
// like all others.
func TestOperatorRotatesKeys(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	o := st.NewOperator(t)
	before := st.Tokens.Keys(oauth.TokenKeys)
	o.Do(200, "HEAD", "/keys", "")
	wantKeys(o, "at first", listedKey{"tokens", 1, true}, listedKey{"forms", 1, true},
		listedKey{"browsers", 1, true}, listedKey{"cluster", 1, true})
	record := o.Do(200, "POST", "/keys/rotate", "").Object(t)
	made, err := time.Parse(time.RFC3339, record["created_at"].(string))
	again, err2 := time.Parse(time.RFC3339, record["rotate_again_at"].(string))
	if err != nil || err2 != nil || time.Since(made) > time.Minute ||
		again.Sub(made) < time.Hour || record["purpose"] != "tokens" {
		t.Errorf("got %v, want a key made now, and the next one an hour later", record)
	}
	after := st.Tokens.Keys(oauth.TokenKeys)
	if len(after) != 2 || after[1].Secret != before[0].Secret || after[0].Secret == before[0].Secret {
		t.Errorf("got %v, want a new key and the one before", after)
	}
	wantKeys(o, "rotated", listedKey{"tokens", 2, true}, listedKey{"tokens", 1, false},
		listedKey{"forms", 1, true}, listedKey{"browsers", 1, true}, listedKey{"cluster", 1, true})
	o.Do(409, "POST", "/keys/rotate", "").Refused(t, "conflict")
	o.Do(409, "POST", "/keys/rotate", `{"purpose":"tokens","now":false}`).Refused(t, "conflict")
	fresh := st.NewOperator(t)
	if _, number, ok := oauth.PeekAccessToken(fresh.Token); !ok || number != after[0].Number {
		t.Errorf("got a token of key %d, want the new key %d", number, after[0].Number)
	}
	fresh.Do(200, "GET", "/clients", "")
	d.Covers("GET /admin/v1/keys 200", "HEAD /admin/v1/keys 200",
		"POST /admin/v1/keys/rotate 200", "POST /admin/v1/keys/rotate 409")
}

func TestRotationOfKeysRefuses(t *testing.T) {
	o := stacktest.NewIdentity(t).NewOperator(t)
	for _, test := range []struct {
		body   string
		fields []string
	}{
		{`{"force":true}`, []string{"force"}},
		{`{"purpose":"cookies"}`, []string{"purpose"}},
		{`{"purpose":""}`, []string{"purpose"}},
		{`{"purpose":null}`, []string{"purpose"}},
		{`{"purpose":7,"now":"yes"}`, []string{"purpose", "now"}},
		{`{"now":null}`, []string{"now"}},
	} {
		o.Do(400, "POST", "/keys/rotate", test.body).Refused(t, "invalid_request", test.fields...)
	}
	o.Do(400, "POST", "/keys/rotate", "[]").Refused(t, "invalid_request")
	wantKeys(o, "refused", listedKey{"tokens", 1, true}, listedKey{"forms", 1, true},
		listedKey{"browsers", 1, true}, listedKey{"cluster", 1, true})
}

// TestPurposesRotateApart rotates the keys of all purposes but tokens and those that sign.
func TestPurposesRotateApart(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	tokens := st.Tokens.Keys(oauth.TokenKeys)
	for _, purpose := range []string{"forms", "browsers", "cluster"} {
		body := `{"purpose":"` + purpose + `"}`
		if got := o.Do(200, "POST", "/keys/rotate", body).Object(t)["purpose"]; got != purpose {
			t.Errorf("got purpose %v, want %s", got, purpose)
		}
		o.Do(409, "POST", "/keys/rotate", body).Refused(t, "conflict")
	}
	wantKeys(o, "rotated", listedKey{"tokens", 1, true}, listedKey{"forms", 2, true},
		listedKey{"forms", 1, false}, listedKey{"browsers", 2, true},
		listedKey{"browsers", 1, false}, listedKey{"cluster", 2, true},
		listedKey{"cluster", 1, false})
	if got := st.Tokens.Keys(oauth.TokenKeys); len(got) != 1 || got[0].Secret != tokens[0].Secret {
		t.Errorf("got %v, want the key of tokens unchanged", got)
	}
}

// TestOperatorDropsKeys drops the keys of tokens while they are in use.
func TestOperatorDropsKeys(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	secrets := st.Tokens.Keys(oauth.TokenKeys)
	o.Do(200, "POST", "/keys/rotate", "")
	fresh := st.NewOperator(t)
	fresh.Do(200, "POST", "/keys/rotate", `{"now":true}`)
	for _, ended := range []*stacktest.Operator{o, fresh} {
		ended.Do(401, "GET", "/keys", "")
	}
	last := st.NewOperator(t)
	wantKeys(last, "dropped", listedKey{"tokens", 3, true}, listedKey{"forms", 1, true},
		listedKey{"browsers", 1, true}, listedKey{"cluster", 1, true})
	last.Do(200, "POST", "/keys/rotate", "") // no former key is in use
	records := st.Log.Records("all former keys were dropped")
	if len(records) != 1 || records[0]["purpose"] != "tokens" || records[0]["level"] != "WARN" {
		t.Errorf("got %v in the log, want one warning", records)
	}
	for _, key := range append(secrets, st.Tokens.Keys(oauth.TokenKeys)...) {
		for _, text := range []string{string(key.Secret[:]), hex.EncodeToString(key.Secret[:]),
			base64.StdEncoding.EncodeToString(key.Secret[:]),
			base64.RawURLEncoding.EncodeToString(key.Secret[:])} {
			if strings.Contains(st.Log.String(), text) {
				t.Error("got a secret key in the log")
			}
		}
	}
}
