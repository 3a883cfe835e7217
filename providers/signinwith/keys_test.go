package signinwith_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
	"gatehouse/providers/fetch"
	"gatehouse/providers/signinwith"
)

const issuer = "http://localhost:9000"

// provider serves its metadata and keys over connections in memory.
type provider struct {
	connections chan net.Conn
	metadata    string
	keys        http.HandlerFunc
	requests    int // of keys
}

func (p *provider) Accept() (net.Conn, error) {
	c, ok := <-p.connections
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p *provider) Addr() net.Addr { return &net.TCPAddr{} }
func (p *provider) Close() error   { close(p.connections); return nil }

func (p *provider) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.connections <- far
	return near, nil
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=600")
	if r.URL.Path != "/keys" {
		w.Write([]byte(p.metadata))
		return
	}
	p.requests++
	p.keys(w, r)
}

func keySet(t *testing.T, ids ...string) http.HandlerFunc {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, id := range ids {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: &key.PublicKey, KeyID: id})
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) { w.Write(text) }
}

const metadata = `{"issuer":"` + issuer + `","authorization_endpoint":"` + issuer + `/a","token_endpoint":"` +
	issuer + `/t","jwks_uri":"` + issuer + `/keys"}`

// run calls test with a provider in virtual time. keys asks for its keys, one of which has an ID.
func run(t *testing.T, test func(p *provider, keys func(id string) (int, error))) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{connections: make(chan net.Conn), metadata: metadata}
		server := &http.Server{Handler: p}
		go server.Serve(p)
		defer func() {
			server.Close()
			time.Sleep(time.Minute) // handlers end
		}()
		client, err := signinwith.New(signinwith.Config{Dial: p.dial, Freshness: fetch.Freshness})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Stop()
		test(p, func(id string) (int, error) {
			all, err := client.Keys(t.Context(), &oauth.Provider{ID: "p", Kind: oauth.OpenIDProvider,
				Issuer: issuer}, id, netip.Prefix{})
			return len(all), err
		})
	})
}

// TestKeysOfProvider reads keys again when one is missing, and uses those that are fresh while the
// provider is away.
func TestKeysOfProvider(t *testing.T) {
	run(t, func(p *provider, keys func(string) (int, error)) {
		want := func(what, id string, count, requests int) {
			t.Helper()
			got, err := keys(id)
			if err != nil || got != count || p.requests != requests {
				t.Errorf("%s: got %d keys by %d requests and error %v, want %d by %d", what, got, p.requests,
					err, count, requests)
			}
		}
		p.keys = keySet(t, "a", "b")
		want("first", "a", 2, 1)
		want("known", "b", 2, 1)
		want("any", "", 2, 1)
		p.keys = keySet(t, "c")
		want("unknown, soon", "c", 2, 1)
		time.Sleep(10 * time.Second)
		want("unknown, later", "c", 1, 2)
		want("withdrawn, soon", "a", 1, 2)
		p.keys = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }
		time.Sleep(9 * time.Minute)
		want("away", "c", 1, 2)
		time.Sleep(time.Minute)
		if got, err := keys("c"); !errors.Is(err, oauth.ErrProviderAway) {
			t.Errorf("got %d keys and error %v when they are old, want that it is away", got, err)
		}
	})
}

// TestHostileProvider gets no keys from a provider that breaks the rules, and waits for 8 seconds at
// most.
func TestHostileProvider(t *testing.T) {
	for name, row := range map[string]struct {
		metadata string
		keys     http.HandlerFunc
		away     bool
	}{
		"other issuer": {strings.Replace(metadata, issuer, "http://localhost:9001", 1), nil, false},
		"no metadata":  {"[]", nil, false},
		"large set": {metadata, func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`{"keys":["` + strings.Repeat("x", 1<<20) + `"]}`))
		}, false},
		"redirect": {metadata, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, issuer+"/other", http.StatusFound)
		}, false},
		"slow body": {metadata, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Write([]byte(" "))
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
			}
		}, true},
		"no response": {metadata, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(p *provider, keys func(string) (int, error)) {
				p.metadata, p.keys = row.metadata, row.keys
				begun := time.Now()
				got, err := keys("a")
				if err == nil || errors.Is(err, oauth.ErrProviderAway) != row.away {
					t.Errorf("got %d keys and error %v, want away: %v", got, err, row.away)
				}
				if took := time.Since(begun); took > 8*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}
