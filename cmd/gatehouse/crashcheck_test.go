package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

// each calls check for every item, several at a time.
func each[T any](items []T, check func(T)) {
	var workers sync.WaitGroup
	for i := range 8 {
		workers.Go(func() {
			for j := i; j < len(items); j += 8 {
				check(items[j])
			}
		})
	}
	workers.Wait()
}

// insist retries post while the server is overloaded.
func (s *fixture) insist(path string, form url.Values) (reply, error) {
	for end := time.Now().Add(waitTimeout); ; <-time.After(100 * time.Millisecond) {
		r, err := s.post(path, form)
		if err != nil || r.status != http.StatusServiceUnavailable || time.Now().After(end) {
			return r, err
		}
	}
}

// isActive reports whether the server accepts an access token.
func (s *fixture) isActive(t *testing.T, token string) bool {
	got, err := s.insist("/oauth/introspect", s.asClient("token", token))
	if err != nil || got.status != http.StatusOK {
		t.Errorf("got %v and error %v from introspection, want 200", got, err)
	}
	return got.Active
}

// checkTokens checks that acknowledged tokens work unless their revocation was acknowledged.
func (s *fixture) checkTokens(t *testing.T, l *ledger) {
	each(slices.Collect(maps.Keys(l.tokens)), func(token string) {
		if f := l.tokens[token]; f != unsure && s.isActive(t, token) != (f == pending) {
			t.Errorf("got an access token that works %v, want %v", f != pending, f == pending)
		}
	})
}

// checkUsers checks that acknowledged users exist, and that others exist once or not at all.
func (s *fixture) checkUsers(t *testing.T, l *ledger) {
	each(slices.Collect(maps.Keys(l.users)), func(phone string) {
		if id := l.users[phone]; id != 0 {
			status, body, err := s.manage(http.MethodGet, fmt.Sprintf("/users/%d", id), nil)
			var user record
			if err != nil || status != http.StatusOK || json.Unmarshal(body, &user) != nil ||
				user.Phone == nil || *user.Phone != phone {
				t.Errorf("got %d %s and error %v for user %d, want %s", status, body, err, id,
					phone)
			}
			return
		}
		status, body, err := s.manage(http.MethodPost, "/users",
			map[string]any{"name": "User", "phone_number": phone})
		if err != nil || (status != http.StatusCreated && status != http.StatusConflict) {
			t.Errorf("got %d %s and error %v for a user asked for again, want 201 or 409", status,
				body, err)
		}
	})
}

// redeemTwice sends a code twice at once and returns the tokens that were issued. isUndecided says
// that it may be a device code that its user has not allowed.
func (s *fixture) redeemTwice(t *testing.T, code string, isUndecided bool) (granted []string) {
	var mu sync.Mutex
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			got, err := s.insist("/oauth/token", s.redemption(code))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && got.status == http.StatusOK:
				granted = append(granted, got.AccessToken)
			case err == nil && isUndecided && (got.Error == "authorization_pending" ||
				got.Error == "slow_down"):
			case err != nil || got.Error != "invalid_grant":
				t.Errorf("got %v and error %v for a code, want 200 or invalid_grant", got, err)
			}
		})
	}
	both.Wait()
	return granted
}

// checkCodes checks that an unused code can be redeemed once, and one whose redemption was not acknowledged at most once.
// Codes whose redemption was acknowledged are checked with their families.
func (s *fixture) checkCodes(t *testing.T, l *ledger) {
	each(slices.Collect(maps.Keys(l.codes)), func(code string) {
		if l.codes[code] == done {
			return
		}
		granted := s.redeemTwice(t, code,
			l.codes[code] == unsure && oauth.LooksLikeDeviceCode(code))
		if len(granted) > 1 || (len(granted) == 0 && l.codes[code] == pending) {
			t.Errorf("got %d redemptions of a code, want 1", len(granted))
		}
		if len(granted) == 0 {
			l.note(func() { l.usedUnseen++ })
		} else if s.isActive(t, granted[0]) {
			t.Error("got a token that works after its code was sent twice, want it revoked")
		}
	})
}

// checkFamilies checks that the last acknowledged refresh token works, and that reuse revokes the
// family.
func (s *fixture) checkFamilies(t *testing.T, l *ledger) {
	each(l.families, func(f *family) {
		got, err := s.insist("/oauth/token", s.rotation(f.refresh[len(f.refresh)-1]))
		if err != nil || got.status != http.StatusOK {
			t.Errorf("got %v and error %v for the last refresh token, want 200", got, err)
			return
		}
		if status, _, err := s.profile(s.base, "/api/user", got.AccessToken); err != nil ||
			status != http.StatusOK {
			t.Errorf("got %d and error %v for a profile, want 200", status, err)
		}
		replay := s.redemption(f.code)
		switch {
		case f.code[len(f.code)-1]%3 == 0:
			l.note(func() { l.tokens[got.AccessToken] = pending })
			return // this one stays valid
		case f.code[len(f.code)-1]%3 == 1 && len(f.refresh) > 1:
			replay = s.rotation(f.refresh[0])
		}
		if got, err := s.insist("/oauth/token", replay); err != nil ||
			got.Error != "invalid_grant" {
			t.Errorf("got %v and error %v for what was used before, want invalid_grant", got, err)
		}
		for _, token := range append(f.access, got.AccessToken) {
			if s.isActive(t, token) {
				t.Error("got a token that works after a reuse in its family, want it revoked")
			}
			l.note(func() { l.tokens[token] = done })
		}
	})
}

// openDatabase opens the database of a server.
func openDatabase(t *testing.T, env []string) (driver string, db *sql.DB) {
	t.Helper()
	_, url, _ := strings.Cut(env[0], "=")
	driver, source := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, source = "sqlite", path
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	return driver, db
}

// checkTrail checks that each change has its event in the audit trail, and each event its change.
func checkTrail(t *testing.T, env []string) {
	t.Helper()
	_, db := openDatabase(t, env)
	defer db.Close()
	const events = `(SELECT COALESCE(SUM(count), 0) FROM audit WHERE action = '`
	for what, query := range map[string]string{
		"users": `SELECT (SELECT count(*) FROM users), ` + events + `account_created'),
(SELECT count(DISTINCT a.user_id) FROM audit a JOIN users u ON u.id = a.user_id WHERE a.action = 'account_created')`,
		"clients": `SELECT (SELECT count(*) FROM clients), ` + events + `client_created'),
(SELECT count(DISTINCT a.client_id) FROM audit a JOIN clients c ON c.id = a.client_id WHERE a.action = 'client_created')`,
		"revoked tokens": `SELECT (SELECT count(*) FROM changes WHERE kind = 'token'), ` + events +
			`tokens_revoked'), -1`,
		"revoked families": `SELECT (SELECT count(*) FROM families WHERE revoked AND session IS NULL), ` + events +
			`family_reused'), -1`,
		"last number": `SELECT (SELECT value FROM counters WHERE name = 'audit'),
(SELECT max(number) FROM audit), -1`,
		"counted events": `SELECT (SELECT SUM(events) FROM audit_counts WHERE action <> 'client_failed'),
(SELECT SUM(count) FROM audit WHERE actor_kind <> 'operator' AND action <> 'client_failed'), -1`,
	} {
		var changes, recorded, matched int
		if err := db.QueryRow(query).Scan(&changes, &recorded, &matched); err != nil {
			t.Fatal(err)
		}
		if changes != recorded || matched != -1 && matched != changes {
			t.Errorf("%s: got %d in the database and %d in the audit trail (%d of them match)", what,
				changes, recorded, matched)
		}
	}
}

// checkRows checks the database while no server uses it: nothing is damaged, and there are as many
// families as redeemed codes, so no code was redeemed twice.
func checkRows(t *testing.T, env []string) {
	t.Helper()
	driver, db := openDatabase(t, env)
	defer db.Close()
	var families, redeemed, orphans, changes, counted int
	if err := db.QueryRow(`SELECT (SELECT count(*) FROM families), (SELECT count(*) FROM authorization_codes WHERE used_at IS NOT NULL),
		(SELECT count(*) FROM refresh_tokens WHERE family_id NOT IN (SELECT id FROM families)),
		COALESCE((SELECT max(number) FROM changes), value), value FROM counters WHERE name = 'change'`).Scan(
		&families, &redeemed, &orphans, &changes, &counted); err != nil {
		t.Fatal(err)
	}
	if families != redeemed || families == 0 || orphans != 0 {
		t.Errorf("got %d families, %d redeemed codes, %d tokens of no family, want as many families as codes, and none",
			families, redeemed, orphans)
	}
	if changes != counted || counted == 0 {
		t.Errorf("got change %d as the last of %d, want them equal", changes, counted)
	}
	if driver == "sqlite" {
		var verdict string
		if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil ||
			verdict != "ok" {
			t.Errorf("got %q and error %v from SQLite's check of the file, want ok", verdict, err)
		}
	}
}
