package account_test

import (
	"strings"
	"testing"

	"gatehouse/actors/account"
)

func TestPasswordsAreHashedAndVerified(t *testing.T) {
	h := account.NewHasher(account.DefaultCost())
	kept := h.Hash("Caf\u00e9 au lait, twice")
	if !strings.HasPrefix(kept, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("got %s, want argon2id with the recommended parameters", kept)
	}
	if again := h.Hash("Caf\u00e9 au lait, twice"); again == kept {
		t.Error("got the same hash twice, want a new salt each time")
	}
	for _, c := range []struct {
		name, kept, password string
		ok, outdated         bool
	}{
		{"right", kept, "Caf\u00e9 au lait, twice", true, false},
		{"right, with a combining accent", kept, "Cafe\u0301 au lait, twice", true, false},
		{"wrong", kept, "Caf\u00e9 au lait, once", false, false},
		{"empty", kept, "", false, false},
		{"no password", "", "", false, false},
		{"no password, another tried", "", "anything", false, false},
		// argon2 -id -t 1 -m 8 (256 KiB): "password" with the salt "somesalt".
		{"older parameters", "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "password", true, true},
		{"older parameters, wrong", "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "passwort", false, false},
	} {
		ok, outdated, err := h.Verify(c.kept, c.password)
		if ok != c.ok || outdated != c.outdated || err != nil {
			t.Errorf("%s: got %v, %v, %v, want %v, %v, no error", c.name, ok, outdated, err, c.ok,
				c.outdated)
		}
	}
}

func TestUnreadableHashes(t *testing.T) {
	h := account.NewHasher(account.CheapCost())
	for _, kept := range []string{
		"x", "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ",
		"$argon2d$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"$argon2id$v=16$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"$argon2id$v=19$m=256,t=0,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"$argon2id$v=19$m=256,t=2,p=0$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$",
		"$argon2id$v=19$m=256,t=2,p=1$!$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
	} {
		if ok, _, err := h.Verify(kept, "password"); ok || err == nil {
			t.Errorf("%s: got %v, %v, want an error", kept, ok, err)
		}
	}
}

func TestPasswordRules(t *testing.T) {
	u := &account.User{Name: "Annabel Li", Email: "ann.smith@example.com", Username: "belle",
		Phone: "+14155550123"}
	for _, c := range []struct{ password, want string }{
		{"tidal-otter-9-lamps", ""},
		{"ΜακρύςΚωδικός", ""},
		{"li li li oak tree", ""}, // parts of less than four letters do not count
		{strings.Repeat("aB3x5", 40), ""},
		{"short-one", "at least 10"},
		{strings.Repeat("aB3x5", 40) + "a", "at most 200"},
		{"\xff\xfe345678901", "UTF-8"},
		{"Password1234", "too common"},
		{"iloveyou!!!!", "too common"},
		{"QWERTYUIOP", "too common"},
		{"1234567890", "too common"},
		{"9876543210", "too common"},
		{"0123456789012", "too common"},
		{"aaaaaaaaaaaa", "too common"},
		{"abcabcabcabc", "too common"},
		{"abcdefghijklm", "too common"},
		{"annabel-goes-out", "must not contain"},
		{"my ANN.SMITH lamp", "must not contain"},
		{"la belle epoque", "must not contain"},
		{"x14155550123x", "must not contain"},
	} {
		err := account.CheckPassword(c.password, u)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.password, err, c.want)
		}
	}
}

// TestPasswordWithShortNameParts: names of three letters count as a whole, not one by one.
func TestPasswordWithShortNameParts(t *testing.T) {
	u := &account.User{Name: "Bea Lee", Email: "bea@example.com"}
	for password, fine := range map[string]bool{"bea@example.com": false, "my bea lee 1970": false,
		"beaver and lee": true} {
		if err := account.CheckPassword(password, u); (err == nil) != fine {
			t.Errorf("%s: got %v, want it fine %v", password, err, fine)
		}
	}
}

func TestSecrets(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		s := account.NewSecret()
		if !account.LooksLikeSecret(s) || seen[s] {
			t.Fatalf("got %q, want 43 letters and digits, different each time", s)
		}
		seen[s] = true
	}
	for _, s := range []string{"", strings.Repeat("a", 42), strings.Repeat("a", 44),
		strings.Repeat("a", 42) + "-"} {
		if account.LooksLikeSecret(s) {
			t.Errorf("%q: got true, want false", s)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	b.ReportAllocs()
	h := account.NewHasher(account.DefaultCost())
	kept := h.Hash("tidal-otter-9-lamps")
	for b.Loop() {
		if ok, _, err := h.Verify(kept, "tidal-otter-9-lamps"); !ok {
			b.Fatal(err)
		}
	}
}
