package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gatehouse/providers/sqlstore/sqlitetest"
)

// disk is a folder with a database in the file gatehouse.db.
type disk struct {
	dir     string
	fill    func(*testing.T, *fixture)
	empty   func(*testing.T, *fixture)
	revokes bool // the log has space for revocations, however many
}

// TestFullDisk fills the disk of a server. Requests that write are refused as unavailable and have
// no effect, requests that read work, and everything works when there is space again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("file size limit", func(t *testing.T) { limitedFile(t).test(t) })
	if small, ok := smallDisk(t); ok { // only root may mount one
		t.Run("no room", small.test)
	}
}

func (d *disk) test(t *testing.T) {
	s := newFixture(t, "sqlite:"+sqlitetest.FileIn(t, d.dir))
	code, err := s.browser.code(s.base)
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := s.browser.code(s.base)
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.ask("/oauth/token", s.redemption(code))
	if err != nil {
		t.Fatal(err)
	}
	d.fill(t, s)
	rows := map[string]write503{
		"redemption": {"/oauth/token", s.redemption(waiting)},
		"rotation":   {"/oauth/token", s.rotation(first.RefreshToken)},
	}
	if !d.revokes {
		s.fillFile(t)
		rows["revocation"] = write503{"/oauth/revoke", s.asClient("token", first.AccessToken)}
	}
	s.checkFull(t, first, rows)
	d.empty(t, s)
	s.checkRoom(t, first, waiting)
}

// fillFile revokes tokens until the last page of the file is full.
func (s *fixture) fillFile(t *testing.T) {
	t.Helper()
	for range 1000 {
		issued, err := s.ask("/oauth/token", s.asClient("grant_type", "client_credentials"))
		if err != nil {
			t.Fatal(err) // it needs no disk
		}
		got, err := s.post("/oauth/revoke", s.asClient("token", issued.AccessToken))
		switch {
		case err == nil && got.status == http.StatusOK:
			continue
		case err != nil || got.status != http.StatusServiceUnavailable ||
			got.Error != "temporarily_unavailable" || got.retryAfter == "":
			t.Fatalf("got %v and error %v from a full disk, want 503, temporarily_unavailable and Retry-After",
				got, err)
		}
		return
	}
	t.Fatal("got 1000 revocations on a full disk, want a refusal")
}

// write503 is a request that a full disk refuses.
type write503 struct {
	path string
	form url.Values
}

func (s *fixture) checkFull(t *testing.T, first reply, rows map[string]write503) {
	t.Helper()
	for what, row := range rows {
		got, err := s.post(row.path, row.form)
		if err != nil || got.status != http.StatusServiceUnavailable ||
			got.Error != "temporarily_unavailable" {
			t.Errorf("%s: got %v and error %v, want 503 and temporarily_unavailable", what, got,
				err)
		}
	}
	status, body, err := s.manage(http.MethodPost, "/users",
		map[string]any{"name": "User", "phone_number": "+4915110000000"})
	if err != nil || status != http.StatusServiceUnavailable ||
		!strings.Contains(string(body), "temporarily_unavailable") {
		t.Errorf("got %d %s and error %v for a new user, want 503 and temporarily_unavailable",
			status, body, err)
	}
	if _, err := s.browser.code(s.base); err == nil ||
		!strings.Contains(err.Error(), "server_error") {
		t.Errorf("got error %v for a code, want server_error on the redirect", err)
	}
	if page := newBrowser(t, s.client.ClientID).signIn(t,
		s.base); page.Status != http.StatusServiceUnavailable ||
		page.Header.Get("Retry-After") == "" {
		t.Errorf("got %d for a sign-in, want 503 and Retry-After", page.Status)
	}
	if status, body, err := s.profile(s.base, "/api/user", first.AccessToken); err != nil ||
		status != http.StatusOK {
		t.Errorf("got %d %s and error %v for a profile, want 200", status, body, err)
	}
	if !s.isActive(t, first.AccessToken) {
		t.Error("got a token that does not work, want one that does")
	}
	if status, _, err := s.manage(http.MethodGet, "/users", nil); err != nil ||
		status != http.StatusOK {
		t.Errorf("got %d and error %v for the list of users, want 200", status, err)
	}
}

func (s *fixture) checkRoom(t *testing.T, first reply, waiting string) {
	t.Helper()
	if _, err := s.ask("/oauth/token", s.redemption(waiting)); err != nil {
		t.Error(err)
	}
	second, err := s.ask("/oauth/token", s.rotation(first.RefreshToken))
	if err != nil {
		t.Error(err)
	}
	if _, err := s.ask("/oauth/revoke", s.asClient("token", second.AccessToken)); err != nil ||
		s.isActive(t, second.AccessToken) {
		t.Errorf("got a token that works after its revocation, error %v", err)
	}
	status, body, err := s.manage(http.MethodPost, "/users",
		map[string]any{"name": "User", "phone_number": "+4915110000000"})
	if err != nil || status != http.StatusCreated {
		t.Errorf("got %d %s and error %v for a new user, want 201", status, body, err)
	}
	if strings.Contains(s.server.stderr.String(), first.AccessToken) {
		t.Error("got a token in the log")
	}
}

// limitedFile limits the size of the server's files to that of its write-ahead log.
func limitedFile(t *testing.T) *disk {
	d := &disk{dir: t.TempDir()}
	limit := func(t *testing.T, s *fixture, bytes string) {
		t.Helper()
		prlimit := exec.Command("prlimit", "--pid="+strconv.Itoa(s.server.cmd.Process.Pid),
			"--fsize="+bytes+":")
		if output, err := prlimit.CombinedOutput(); err != nil {
			t.Fatalf("prlimit: %v\n%s", err, output)
		}
	}
	d.fill = func(t *testing.T, s *fixture) {
		info, err := os.Stat(filepath.Join(d.dir, "gatehouse.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		limit(t, s, strconv.FormatInt(info.Size(), 10))
	}
	d.empty = func(t *testing.T, s *fixture) { limit(t, s, "unlimited") }
	return d
}

// mountVolume mounts a volume of some megabytes; false = this user has no right to.
func mountVolume(t *testing.T, megabytes int) (dir string, ok bool) {
	t.Helper()
	dir = t.TempDir()
	err := syscall.Mount("gatehouse", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir, true
}

// smallDisk mounts a disk of 32 megabytes; false = this user has no right to.
func smallDisk(t *testing.T) (*disk, bool) {
	dir, ok := mountVolume(t, 32)
	if !ok {
		return nil, false
	}
	d := &disk{dir: dir, revokes: true}
	ballast := filepath.Join(d.dir, "ballast")
	d.fill = func(t *testing.T, _ *fixture) {
		if err := os.WriteFile(ballast, make([]byte, 32<<20), 0o600); !errors.Is(err,
			syscall.ENOSPC) {
			t.Fatalf("got error %v from a disk that has less room, want %v", err, syscall.ENOSPC)
		}
	}
	d.empty = func(t *testing.T, _ *fixture) {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	return d, true
}
