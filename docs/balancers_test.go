package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const clusterPage = "docs/cluster.md"

// example returns the block of a page that begins with start.
func (p *page) example(t *testing.T, start string) string {
	t.Helper()
	for _, b := range p.blocks {
		if strings.HasPrefix(b.text, start) {
			return b.text
		}
	}
	t.Fatalf("%s: got no block that begins with %q, want one", p.name, start)
	return ""
}

// inSbin returns the path of a program, which may be where only root looks for programs.
func inSbin(t *testing.T, name string) string {
	t.Helper()
	for _, file := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(file); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed (scripts/setup)", name)
	return ""
}

// run runs a program that must succeed.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// TestBalancerExamples has the balancers check the examples of the page, as they are but for the
// certificate and the port.
func TestBalancerExamples(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	run(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
		"-subj", "/CN=localhost", "-days", "1", "-keyout", file("key"), "-out", file("cert"))
	var pem []byte
	for _, name := range []string{"cert", "key"} {
		text, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		pem = append(pem, text...)
	}
	p := readPage(t, clusterPage)
	nginx := strings.NewReplacer("/etc/nginx/gatehouse.crt", file("cert"), "/etc/nginx/gatehouse.key",
		file("key"), "listen 443 ssl", "listen unix:"+file("socket")+" ssl")
	haproxy := strings.NewReplacer("/etc/haproxy/gatehouse.pem", file("pem"))
	for name, text := range map[string]string{
		"pem": string(pem),
		"nginx.conf": fmt.Sprintf("error_log %[1]s/log;\npid %[1]s/pid;\nevents {}\nhttp {\n%[2]s}\n", dir,
			nginx.Replace(p.example(t, "upstream gatehouse"))),
		"haproxy.cfg": "global\n    maxconn 100\n" + haproxy.Replace(p.example(t, "defaults")),
	} {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, inSbin(t, "nginx"), "-t", "-c", file("nginx.conf"), "-p", dir)
	run(t, inSbin(t, "haproxy"), "-c", "-f", file("haproxy.cfg"))
	var route struct{ Route map[string]any }
	if err := yaml.Unmarshal([]byte(p.example(t, "route:")), &route); err != nil || len(route.Route) == 0 {
		t.Errorf("got a route of Envoy %v, error %v", route, err)
	}
}
