package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServiceManagersDay runs a server as a service manager does: on an IPv4 address, with a
// certificate that is renewed, a log file that is rotated, and SIGHUP for both. No request fails.
func TestServiceManagersDay(t *testing.T) {
	t.Parallel() // it mostly waits
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	trusted := x509.NewCertPool()
	renew := func() {
		t.Helper()
		newCert, newKey, pool := newCertificate(t)
		trusted = pool
		if err := os.Rename(newKey, key); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(newCert, cert); err != nil {
			t.Fatal(err)
		}
	}
	renew()
	log := newLogFile(t, filepath.Join(folder, "gatehouse.log"))
	p := startTo(t, log.file, nil, "serve", "--ip-provider=sim", "--ptr=off", "--listen=0.0.0.0:0",
		"--admin-listen=127.0.0.1:0", "--base-url=https://id.example", "--tls-cert", cert, "--tls-key", key)
	listen := log.member(t, `"msg":"serving"`, "listen")
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func() {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: waitTimeout}
		if status, body := get(t, client, "https://127.0.0.1:"+port+"/api/lookup?q=8.8.8.8"); status != http.StatusOK {
			t.Errorf("got %d %s, want 200", status, body)
		}
	}
	lookup()
	if conn, err := net.DialTimeout("tcp6", "[::1]:"+port, waitTimeout); err == nil {
		conn.Close()
		t.Error("got a connection on IPv6 to a server on 0.0.0.0, want none")
	}
	for day := range 2 {
		<-time.After(time.Second) // the files are checked at most once a second
		renew()
		p.signal(t, syscall.SIGHUP)
		log.await(t, `"msg":"TLS certificate read again"`)
		log.await(t, `"msg":"SIGHUP: settings and certificates are read again"`)
		lookup() // it trusts the new certificate only
		log.rotate(t)
		lookup()
		if line := log.await(t, `"route":"/api/lookup"`); strings.Contains(line, "\x00") {
			t.Errorf("day %d: got a hole in the log, want it to begin with a line", day)
		}
	}
	p.stop(t)
	log.await(t, `"msg":"draining"`)
}

// logFile is what a shell appends a server's stderr to.
type logFile struct {
	path string
	file *os.File
}

func newLogFile(t *testing.T, path string) *logFile {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &logFile{path, file}
}

// rotate does what logrotate does with copytruncate.
func (l *logFile) rotate(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path+".1", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(l.path, 0); err != nil {
		t.Fatal(err)
	}
}

// await waits for a whole line that contains part and returns it.
func (l *logFile) await(t *testing.T, part string) string {
	t.Helper()
	var text []byte
	for end := time.Now().Add(waitTimeout); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		var err error
		if text, err = os.ReadFile(l.path); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if bytes.Contains(line, []byte(part)) && bytes.HasSuffix(line, []byte("\n")) {
				return string(line)
			}
		}
	}
	t.Fatalf("got no line with %q in %v, but\n%s", part, waitTimeout, text)
	return ""
}

// member waits for a line and returns a text member of it.
func (l *logFile) member(t *testing.T, part, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(l.await(t, part), `"`+name+`":"`)
	value, _, closed := strings.Cut(rest, `"`)
	if !ok || !closed {
		t.Fatalf("got no %s in the line with %s", name, part)
	}
	return value
}

const nginxConfig = `%[3]s
daemon off;
worker_processes 1;
error_log %[1]s/error.log;
pid %[1]s/nginx.pid;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s;
		location / {
			proxy_pass http://unix:%[1]s/gatehouse.sock;
			proxy_set_header Host $host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
		}
	}
}
`

// TestUnixSocketBehindNginx serves on a socket that nginx reaches as another user, by its group,
// and restarts the server behind it.
func TestUnixSocketBehindNginx(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Fatal("nginx is not installed (apt-get install nginx-light)")
		}
	}
	folder, err := os.MkdirTemp("", "gatehouse") // other users cannot enter that of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	group, user := "www-data", "user www-data;"
	if os.Getuid() != 0 { // nginx then runs as this user
		group, user = strconv.Itoa(os.Getgid()), ""
	}
	serve := func() *process {
		t.Helper()
		p := start(t, nil, "serve", "--ip-provider=sim", "--ptr=off", "--admin-listen=127.0.0.1:0",
			"--listen=unix:"+folder+"/gatehouse.sock?mode=0660&group="+group,
			"--trusted-proxies=127.0.0.1/32", "--base-url=https://id.example")
		p.ready(t)
		return p
	}
	p := serve()
	address := freeAddress(t)
	config := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, folder, address, user), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := exec.Command(program, "-c", config, "-p", folder)
	proxy.Stderr = os.Stderr
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Process.Signal(syscall.SIGQUIT); err != nil {
			t.Error(err)
		}
		if err := proxy.Wait(); err != nil {
			t.Errorf("nginx: %v", err)
		}
	})
	for end := time.Now().Add(waitTimeout); ; <-time.After(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nginx does not listen on %s", address)
		}
	}
	ask := func(want int) {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, "http://"+address+"/api/my-ip", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Forwarded-For", "8.8.8.8")
		response, err := newClient(t, "").Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != want {
			t.Errorf("got %d %s and error %v, want %d", response.StatusCode, body, err, want)
		}
		if want == http.StatusOK && !bytes.Contains(body, []byte(`"ip":"8.8.8.8"`)) {
			t.Errorf("got %s, want the caller that nginx names", body)
		}
	}
	ask(http.StatusOK)
	p.signal(t, syscall.SIGHUP)
	p.stderr.await(t, "SIGHUP")
	ask(http.StatusOK)
	p.signal(t, syscall.SIGKILL) // it leaves the socket
	<-p.ended
	ask(http.StatusBadGateway)
	p = serve()
	ask(http.StatusOK)
	p.stop(t)
}

// freeAddress returns an address that nobody listens on. It differs from 127.0.0.1, so that no
// other test takes its port while a server starts again.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.1:0", 1+rand.N(255), rand.N(256)))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
