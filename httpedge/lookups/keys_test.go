package lookups_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/httpedge/lookups"
)

// keyFile writes a file with a key for each name, and returns it and the keys.
func keyFile(t *testing.T, names ...string) (file string, keys []string) {
	t.Helper()
	text := "# Keys of the tests.\n\n"
	for _, name := range names {
		key, line, err := lookups.NewKey(name)
		stacktest.Must(t, err)
		keys, text = append(keys, key), text+line+"\r\n"
	}
	file = filepath.Join(t.TempDir(), "keys")
	stacktest.Must(t, os.WriteFile(file, []byte(text), 0o600))
	return file, keys
}

// askAll sends a request to each endpoint of lookups.
func askAll(t *testing.T, st *stacktest.Stack, headers ...string) []stacktest.Response {
	t.Helper()
	json := append([]string{"Content-Type", "application/json"}, headers...)
	text := append([]string{"Content-Type", "text/plain"}, headers...)
	own := append([]string{"X-Forwarded-For", "8.8.8.8"}, headers...)
	return []stacktest.Response{
		st.Get(t, "/api/lookup?q=8.8.8.8", headers...), st.Get(t, "/api/my-ip", own...),
		st.Send(t, "POST", st.URL+"/api/bulk", stacktest.BulkBody(t, "8.8.8.8"), json...),
		st.Send(t, "POST", st.URL+"/api/stream", "8.8.8.8", text...),
	}
}

func TestKeys(t *testing.T) {
	file, keys := keyFile(t, "analytics", "shop", "shop")
	for _, required := range []bool{false, true} {
		st := stacktest.NewLookups(t, withLoopback, func(c *stack.Config) {
			c.Lookups.KeyFile, c.Lookups.KeysRequired = file, required
		})
		refused := func(code string, headers ...string) {
			t.Helper()
			for _, a := range askAll(t, st, headers...) {
				a.Fails(t, 401, code, "")
				a.Has(t, "WWW-Authenticate", `ApiKey realm="gatehouse"`, "Cache-Control", "no-store")
				if a.Object(t)["query"] != "" {
					t.Errorf("got %s, want no query", a.Body)
				}
			}
		}
		for _, key := range keys {
			for _, a := range askAll(t, st, "X-Api-Key", key) {
				if a.Status != 200 {
					t.Errorf("got %d %s, want 200", a.Status, a.Body)
				}
			}
		}
		for _, wrong := range []string{"", "x", keys[0] + "x", keys[0][:len(keys[0])-1],
			strings.ToLower(keys[0]), strings.Repeat("x", 8000)} {
			refused("invalid_api_key", "X-Api-Key", wrong)
		}
		refused("invalid_api_key", "X-Api-Key", keys[0], "X-Api-Key", keys[0])
		if required {
			refused("api_key_required")
		} else if a := st.Get(t, "/api/lookup?q=8.8.8.8"); a.Status != 200 {
			t.Errorf("got %d %s without a key, want 200", a.Status, a.Body)
		}
		for _, secret := range append(keys, "analytics", "shop") {
			if strings.Contains(st.Log.String(), secret) || strings.Contains(st.MetricsText(t), secret) {
				t.Errorf("got %s in the log or the metrics", secret)
			}
		}
		if a := st.Get(t, "/openapi.yaml"); a.Status != 200 {
			t.Errorf("got %d for another path, want 200", a.Status)
		}
	}
}

func withLoopback(c *stack.Config) {
	stacktest.BehindProxy(c)
}

// Without a file of keys, the header has no meaning.
func TestNoKeys(t *testing.T) {
	st := stacktest.NewLookups(t, withLoopback)
	for _, a := range askAll(t, st, "X-Api-Key", "x") {
		if a.Status != 200 {
			t.Errorf("got %d %s, want 200", a.Status, a.Body)
		}
	}
}

func TestKeysAreReadAgain(t *testing.T) {
	file, old := keyFile(t, "shop")
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.Lookups.KeyFile = file })
	other, fresh := keyFile(t, "shop")
	status := func(key string) int { return st.Get(t, "/api/lookup?q=8.8.8.8", "X-Api-Key", key).Status }
	stacktest.Must(t, os.Rename(other, file))
	if status(old[0]) != 200 || status(fresh[0]) != 401 {
		t.Error("got the new keys, want the old ones before they are read again")
	}
	stacktest.Must(t, st.LookupKeys.Reload())
	if status(old[0]) != 401 || status(fresh[0]) != 200 {
		t.Error("got the old keys, want the new ones")
	}
	stacktest.Must(t, os.WriteFile(file, []byte("nonsense"), 0o600))
	if err := st.LookupKeys.Reload(); err == nil || status(fresh[0]) != 200 {
		t.Errorf("got %v, want an error and the keys as they were", err)
	}
}

func TestInvalidKeyFiles(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	var most strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&most, "a %064x\n", i)
	}
	for text, valid := range map[string]bool{
		"": true, "\n# a\n  \n": true, "a " + hash: true, "a\t" + strings.ToUpper(hash) + "\n": true,
		"a " + hash + "\na " + strings.Repeat("0b", 32): true,
		"a": false, hash: false, "a b": false, "a " + hash[2:]: false, "a " + hash + "00": false,
		"a " + hash + " b": false, "ä " + hash: false, "a/b " + hash: false, "a zz" + hash[2:]: false,
		strings.Repeat("a", 65) + " " + hash: false, "a " + hash + "\nb " + hash: false,
		most.String(): true, most.String() + "a " + hash: false,
	} {
		file := filepath.Join(t.TempDir(), "keys")
		stacktest.Must(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := lookups.OpenKeys(file, false); (err == nil) != valid {
			t.Errorf("%q: got %v, want it valid: %t", text, err, valid)
		} else if err != nil && strings.Contains(err.Error(), "0a0a") {
			t.Errorf("got %v, want no hash in an error", err)
		}
	}
	if _, err := lookups.OpenKeys(filepath.Join(t.TempDir(), "none"), false); err == nil {
		t.Error("got keys of no file, want an error")
	}
	if _, _, err := lookups.NewKey("a b"); err == nil {
		t.Error("got a key for a name with a space, want an error")
	}
}

// TestKeyNamesTheCaller has callers of one address with and without keys use up --geo-limit.
func TestKeyNamesTheCaller(t *testing.T) {
	file, keys := keyFile(t, "analytics", "shop", "shop")
	st := stacktest.NewLookups(t, withLoopback, func(c *stack.Config) {
		c.Lookups.KeyFile, c.Lookups.CallerLimit = file, 1
	})
	n := 0
	ask := func(key, address string) int {
		n++
		headers := []string{"X-Forwarded-For", address, "X-Api-Key", key}
		if key == "" {
			headers = headers[:2]
		}
		return st.Get(t, "/api/lookup?q="+fmt.Sprintf("8.8.4.%d", n), headers...).Status
	}
	for _, c := range []struct {
		key, address string
		want         int
	}{
		{keys[0], "8.8.8.8", 200}, {keys[0], "8.8.8.8", 429}, {keys[0], "9.9.9.9", 429},
		{keys[1], "8.8.8.8", 200}, {keys[2], "8.8.8.8", 429}, {"", "8.8.8.8", 200},
		{"", "8.8.8.8", 429}, {"", "9.9.9.9", 200},
	} {
		if got := ask(c.key, c.address); got != c.want {
			t.Errorf("%.8s at %s: got %d, want %d", c.key, c.address, got, c.want)
		}
	}
}
