package sqlstore_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/providers/sqlstore"
)

// TestDeletedUserIsErasedFromFiles searches the database file and its log for the data of a deleted
// user, while the store is open.
func TestDeletedUserIsErasedFromFiles(t *testing.T) {
	url, path := sqlite(t)
	s := open(t, sqlstore.Config{URL: url})
	now := time.Now()
	leaving := account.User{Name: "Rosalind Leaving", Email: "leaving@example.com",
		Phone: "+4915112345678", Username: "leaving", Bio: strings.Repeat("leaving-biography ",
			80), PlaceOfBirth: "Leavingham", Address: "1 Leaving Lane",
		PasswordHash: "leaving-hash", Created: now, Updated: now}
	staying := leaving
	staying.Name, staying.Email, staying.Phone, staying.Username, staying.Bio, staying.PlaceOfBirth,
		staying.Address, staying.PasswordHash = "Staying", "staying@example.com", "",
		"", "", "", "", ""
	for _, u := range []*account.User{&staying, &leaving} {
		if err := s.CreateUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	session := &account.Session{Hash: [32]byte{1}, UserID: leaving.ID, Created: now, SignedIn: now,
		Seen: now, Expires: now.Add(time.Hour), Device: "Leaving on Linux"}
	if _, err := s.CreateSession(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	leaving.Bio = "another leaving-biography"
	if err := s.UpdateUser(t.Context(), &leaving); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(found(t, path), "leaving") {
		t.Fatal("before: the files do not contain the user")
	}
	if err := s.DeleteUser(t.Context(), leaving.ID, [32]byte{}); err != nil {
		t.Fatal(err)
	}
	rest := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if rest = found(t, path); !strings.Contains(rest, "leaving") &&
			strings.Contains(rest, "staying@") {
			return
		}
	}
	t.Errorf("after: got %d bytes with data of the deleted user, want only data of the other",
		len(rest))
}

// found returns the contents of the database file and its log in lower case.
func found(t *testing.T, path string) string {
	t.Helper()
	var all []byte
	for _, file := range []string{path, path + "-wal"} {
		content, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all = append(all, content...)
	}
	return string(bytes.ToLower(all))
}
