package docs_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/providers/mmdb/mmdbtest"
	"gatehouse/providers/sqlstore/pgtest"
)

// metricOf returns "name type labels" of a row, the labels sorted.
func metricOf(_ *testing.T, row []string) []string {
	labels := strings.Split(row[2], ", ")
	slices.Sort(labels)
	return []string{strings.TrimSpace(row[0] + " " + row[1] + " " + strings.Join(labels, " "))}
}

// metrics returns "name type labels" of each metric of a demo whose upstream fails and that
// resolves reverse names, posts its audit trail and has a certificate, so that each metric has had
// its event.
func metrics(t *testing.T) []string {
	dir := t.TempDir()
	secure := httptest.NewTLSServer(nil) // for its certificate
	defer secure.Close()
	pair := secure.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	city, updates := filepath.Join(dir, "city.mmdb"), filepath.Join(dir, "updates.yaml")
	mmdbtest.WriteCity(t, city, map[string]geo.Location{"9.0.0.0/8": {City: "Boxford"}})
	if err := os.WriteFile(updates, []byte("files: [{file: city.mmdb, url: 'http://127.0.0.1:9'}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	startServer(t, built, "bin/gatehouse demo --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0"+
		" --breaker-failures 1 --ptr 127.0.0.1:9 --audit-webhook http://127.0.0.1:9/"+
		" --audit-webhook-secret 0123456789abcdef0123456789abcdef --otlp-endpoint http://127.0.0.1:9 --dir "+dir+
		" --ip-mmdb "+city+" --mmdb-update "+updates+" --admin-tls-cert "+certFile+" --admin-tls-key "+keyFile, environment(), "serving")
	text, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	var demo struct {
		Base     string `json:"base_url"`
		Admin    string `json:"admin_url"`
		Upstream string `json:"upstream_url"`
		Clients  struct {
			Public struct {
				ID string `json:"client_id"`
			}
		}
	}
	if err := json.Unmarshal(text, &demo); err != nil {
		t.Fatal(err)
	}
	ask(t, http.MethodGet, demo.Base+"/api/lookup?q=8.8.8.8", "")
	ask(t, http.MethodPut, demo.Upstream+"/_sim", `{"faults":[{"kind":"status","status":503}]}`)
	ask(t, http.MethodGet, demo.Base+"/api/lookup?q=8.8.4.4", "")
	ask(t, http.MethodGet, demo.Base+"/api/lookup?q=9.9.9.9", "")
	ask(t, http.MethodPost, demo.Base+"/oauth/token",
		"grant_type=client_credentials&client_id="+demo.Clients.Public.ID)
	response, err := secure.Client().Get(demo.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	// This one is there once a provider that people sign in with was asked; the demo has none.
	return append(exposed(string(all)), "gatehouse_provider_requests_total counter outcome provider")
}

// ask sends a request, whose body is a form, and returns the body of the response, whatever its
// status.
func ask(t *testing.T, method, url, body string) string {
	t.Helper()
	ctx, cancel := patience(t)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	family = regexp.MustCompile(`^# TYPE (gatehouse_\w+ \w+)$`)
	label  = regexp.MustCompile(`(\w+)="`)
)

// exposed returns "name type labels" of each of gatehouse's own metrics, the labels sorted, from
// the text format of Prometheus: labels are those of the first sample.
func exposed(text string) []string {
	var found []string
	open := false // the last of found waits for its first sample
	for line := range strings.Lines(text) {
		head := family.FindStringSubmatch(strings.TrimSpace(line))
		if head != nil {
			found = append(found, head[1])
		} else if open && !strings.HasPrefix(line, "#") {
			var labels []string
			for _, l := range label.FindAllStringSubmatch(line, -1) {
				if l[1] != "le" {
					labels = append(labels, l[1])
				}
			}
			slices.Sort(labels)
			last := &found[len(found)-1]
			*last = strings.TrimSpace(*last + " " + strings.Join(labels, " "))
		}
		open = head != nil
	}
	return found
}

// nodeMetrics returns "name type labels" of each metric that only a node of a cluster has.
func nodeMetrics(t *testing.T) []string {
	c := stack.Defaults()
	c.Listen, c.AdminListen, c.Log = "127.0.0.1:0", "127.0.0.1:0", io.Discard
	c.Lookups = nil
	c.Cluster = &stack.Cluster{Listen: "127.0.0.1:0"}
	c.Identity.Database.URL = pgtest.Migrated(t)
	c.Identity.Database.KeyFiles = []string{pgtest.KeyFile(t)}
	s, err := stack.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	serving, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(serving) }()
	defer func() {
		end()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Error(err)
		}
	}()
	return slices.DeleteFunc(exposed(ask(t, http.MethodGet, s.AdminURL+"/metrics", "")),
		func(metric string) bool { return !strings.HasPrefix(metric, "gatehouse_cluster_") })
}
