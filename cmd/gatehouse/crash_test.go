package main

import (
	"flag"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/providers/sqlstore/pgtest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

var crashes = flag.Int("crashes", 3, "how often TestCrash kills a server on each database; TestCacheFileOutlivesKills kills twice as many")

// databases returns the URL of a database of each kind, without rows.
var databases = map[string]func(*testing.T) string{
	"SQLite":     func(t *testing.T) string { return sqlitetest.URL(t) },
	"PostgreSQL": func(t *testing.T) string { return pgtest.Migrated(t) },
}

// TestCrash kills a server under load at a random moment and starts another on its database. All
// acknowledged writes are there, nothing is granted twice, clients are told of each session that
// has ended, people hear of each change of their credentials, and the audit trail has an event for
// each change: after every crash, and at the end.
func TestCrash(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			postbox := newPostbox(t)
			s := newFixture(t, url(t), "--code-ttl=10m", "--refresh-grace=5m",
				"--messenger="+postbox.url, "--messenger-secret="+strings.Repeat("k", 32),
				"--listen="+freeAddress(t)) // an id_token names the address of its issuer
			s.postbox = postbox
			s.prepareListeners(t)
			var history []*ledger
			for n := range *crashes {
				if n > 0 && n%4 == 0 { // a user's tokens at a client end together after 1,000 ends
					s.prepareClient(t)
				}
				l := s.crash(t)
				checkTrail(t, s.env)
				if n > 0 { // the first time, the lease of the sender ends by itself
					endLeases(t, s.env)
				}
				s.serve(t)
				s.checkTokens(t, l)
				s.checkUsers(t, l)
				s.checkCodes(t, l)
				s.checkFamilies(t, l)
				s.checkVisits(t)
				s.checkNotices(t, l)
				t.Log(l, s.countVisits())
				if t.Failed() {
					t.Fatalf("the server says:\n%s", s.server.stderr)
				}
				history = append(history, l)
			}
			for _, l := range history {
				s.checkTokens(t, l)
				s.checkUsers(t, l)
			}
			s.server.stop(t)
			checkRows(t, s.env)
			checkTrail(t, s.env)
		})
	}
}

// crash loads the server, kills it, and returns what its clients know.
func (s *fixture) crash(t *testing.T) *ledger {
	t.Helper()
	l := newLedger()
	s.newVisits(t)
	wait, waitVisits := s.load(t, l), s.endVisits(t)
	<-time.After(50*time.Millisecond + rand.N(500*time.Millisecond))
	s.server.signal(t, syscall.SIGKILL)
	<-s.server.ended
	wait()
	waitVisits()
	s.http.CloseIdleConnections()
	s.browser.client.CloseIdleConnections()
	return l
}
