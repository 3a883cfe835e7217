package stack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/stack"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/messenger"
	"gatehouse/providers/ptr"
)

// config returns one that starts without a network.
func config(t *testing.T) stack.Config {
	c := stack.Defaults()
	c.Listen, c.AdminListen, c.Log = "127.0.0.1:0", "127.0.0.1:0", new(bytes.Buffer)
	c.Lookups.Upstream, c.Lookups.Reverse = ipapi.Config{Tier: ipapi.Sim}, ptr.Config{}
	c.Identity.Database.URL = "sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db")
	return c
}

// TestStopReleasesEverything starts a service twice on the same addresses and database: the second
// start fails if the first has left something behind.
func TestStopReleasesEverything(t *testing.T) {
	c := config(t)
	for range 2 {
		s, err := stack.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		lookup, login := s.URL+"/api/lookup?q=8.8.8.8", s.URL+"/login"
		for _, url := range []string{lookup, login, s.AdminURL + "/readyz"} {
			response, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("got %d %v from %s, want 200", response.StatusCode, err, url)
			}
		}
		end()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Errorf("got %v, want the service to stop", err)
		}
		c.Listen, c.AdminListen = s.Listen, s.AdminListen
	}
}

// TestLocalhost reaches one service by both loopback addresses, after a restart at the same port as
// well. Its issuer names localhost.
func TestLocalhost(t *testing.T) {
	c := config(t)
	c.Localhost = true
	for range 2 {
		s, err := stack.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		_, port, _ := net.SplitHostPort(s.Listen)
		if s.URL != "http://localhost:"+port || s.People.PasskeyDomain() != "localhost" {
			t.Errorf("got %s with passkeys for %q, want localhost", s.URL, s.People.PasskeyDomain())
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for _, host := range []string{"localhost", "127.0.0.1", "[::1]"} {
			response, err := client.Get("http://" + host + ":" + port + "/.well-known/openid-configuration")
			if err != nil {
				t.Errorf("%s: %v", host, err)
				continue
			}
			body, err := io.ReadAll(response.Body)
			if err := errors.Join(err, response.Body.Close()); err != nil ||
				!bytes.Contains(body, []byte(`"issuer":"`+s.URL+`"`)) {
				t.Errorf("%s: got %s, %v, want the issuer %s", host, body, err, s.URL)
			}
		}
		end()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Errorf("got %v, want the service to stop", err)
		}
		c.Listen = s.Listen
	}
}

// TestStartNamesTheField also checks that a failed start releases the listener.
func TestStartNamesTheField(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	noFile := filepath.Join(t.TempDir(), "no.mmdb")
	for field, change := range map[string]func(*stack.Config){
		"Listen":                 func(c *stack.Config) { c.Listen = taken.Addr().String() },
		"Identity.PasskeyDomain": func(c *stack.Config) { c.Identity.PasskeyDomain = "example.com" },
		"AdminListen":            func(c *stack.Config) { c.AdminListen = taken.Addr().String() },
		"Lookups.Upstream":       func(c *stack.Config) { c.Lookups.Upstream = ipapi.Config{} },
		"Lookups.Files":          func(c *stack.Config) { c.Lookups.Files.Files = []string{noFile} },
		"Lookups.CacheFile":      func(c *stack.Config) { c.Lookups.CacheFile = noFile + "/cache" },
		"Lookups.Reverse":        func(c *stack.Config) { c.Lookups.Reverse = ptr.Config{Server: "nowhere"} },
		"Lookups.Simulator":      func(c *stack.Config) { c.Lookups.SimulatorListen = taken.Addr().String() },
		"Identity.Database":      func(c *stack.Config) { c.Identity.Database.URL = "mysql:" },
		"Identity.Messenger":     noSecret,
	} {
		t.Run(field, func(t *testing.T) {
			c := config(t)
			socket := filepath.Join(t.TempDir(), "s")
			c.Listen = "unix:" + socket
			change(&c)
			s, err := stack.Start(t.Context(), c)
			var wrong *stack.Error
			if s != nil || !errors.As(err, &wrong) || wrong.Field != field {
				t.Errorf("got %v, want an error about %s", err, field)
			}
			if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("got %v for the socket after a failed start, want it gone", err)
			}
		})
	}
}

// noSecret configures a webhook without the secret that it needs.
func noSecret(c *stack.Config) {
	webhook, err := messenger.ParseTarget("https://sms.example.com/")
	if err != nil {
		panic(err)
	}
	c.Identity.Messenger.Targets = []messenger.Target{webhook}
}

func TestOneServiceAlone(t *testing.T) {
	for name, change := range map[string]func(*stack.Config){
		"lookups":  func(c *stack.Config) { c.Identity = nil },
		"identity": func(c *stack.Config) { c.Lookups = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			change(&c)
			s, err := stack.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if (s.Lookups != nil) != (c.Lookups != nil) ||
				(s.Tokens != nil) != (c.Identity != nil) {
				t.Errorf("got lookups %v and identity %v, want what was configured", s.Lookups,
					s.Tokens)
			}
			if err := s.Close(); err != nil {
				t.Errorf("got %v, want a service that has not served to stop", err)
			}
		})
	}
	c := config(t)
	c.Lookups, c.Identity = nil, nil
	if s, err := stack.Start(t.Context(), c); err == nil ||
		!strings.Contains(err.Error(), "neither") {
		t.Errorf("got %v and %v, want neither service refused", s, err)
	}
}
