package account_test

import (
	"strings"
	"testing"

	"gatehouse/actors/account"
)

// foreign are hashes by other programs. Those of typed are by Python's hashlib and crypt, the one by
// argon2i is of the reference implementation's tests.
const (
	typed    = "Grüße-7-otter"
	combined = "Gru\u0308ße-7-otter" // the same characters, with a combining diaeresis
	bcrypt4  = "$2b$04$abcdefghijklmnopqrstuu"
)

var foreign = map[string]string{
	"pbkdf2":               "$pbkdf2$1000$c29tZXNhbHQtMDEyMzQ1Ng$5EubVAfNIVBs0yVSjYzvCf2xCls",
	"pbkdf2-sha1":          "$pbkdf2-sha1$i=1000,l=20$c29tZXNhbHQtMDEyMzQ1Ng$5EubVAfNIVBs0yVSjYzvCf2xCls",
	"django sha1":          "pbkdf2_sha1$1000$sEaSaLt$tCgxAJaHqY3UAzaqoBAjRqSCCrA=",
	"passlib sha256":       "$pbkdf2-sha256$1000$c29tZXNhbHQtMDEyMzQ1Ng$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw.kI",
	"pbkdf2-sha256":        "$pbkdf2-sha256$i=1000$c29tZXNhbHQtMDEyMzQ1Ng$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw+kI",
	"pbkdf2-sha256, 64":    "$pbkdf2-sha256$i=1000,l=64$c29tZXNhbHQtMDEyMzQ1Ng$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw+kL7P3+7FsisIwYkxHykEkKJVr++XeUP0/ebGVA3F80rJQ",
	"django sha256":        "pbkdf2_sha256$1000$sEaSaLt$DE8t7XpAE0vYaPRWhTwLOk8xBDLj//TW3qOgA+wrqtQ=",
	"passlib sha512":       "$pbkdf2-sha512$1000$c29tZXNhbHQtMDEyMzQ1Ng$9acsxMHTSQXMZ5MCYDOojLZIjzg.WGXGbr1xfrKdvet9InKitCRVvg1DkmacSMyt.1kyrklGMwTTjrQZpuMt8A",
	"pbkdf2-sha512":        "$pbkdf2-sha512$i=1000,l=64$c29tZXNhbHQtMDEyMzQ1Ng$9acsxMHTSQXMZ5MCYDOojLZIjzg+WGXGbr1xfrKdvet9InKitCRVvg1DkmacSMyt+1kyrklGMwTTjrQZpuMt8A",
	"django sha512":        "pbkdf2_sha512$1000$sEaSaLt$BALqyx9mZ9QdlptYxS9UMrgdgeACeil66WhMCvVDgeRVAhvKc4AxDlBBX3Sa6qDqTOXsg52qTBFr3pRgacBl/g==",
	"scrypt":               "$scrypt$ln=10,r=8,p=1$c29tZXNhbHQtMDEyMzQ1Ng$YxoJOn/UV/GtdClq7/22AwCGDJhHfsDmYfYSc9GgLuw",
	"bcrypt 2a":            "$2a$04$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO",
	"bcrypt 2b":            bcrypt4 + "glMDeCa20M8ueBz8wA8VFZh/pUK91OO",
	"bcrypt 2y":            "$2y$04$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO",
	"bcrypt, as was typed": bcrypt4 + "mYyj0pjAuLBC9uk6iRQbzdukiRRUYse",
}

func TestForeignHashes(t *testing.T) {
	h := account.NewHasher(account.CheapCost())
	check := func(name, kept, password string, want bool) {
		t.Helper()
		if err := account.CheckHash(kept); err != nil {
			t.Errorf("%s: got %v, want a hash that is known", name, err)
		}
		if ok, outdated, err := h.Verify(kept, password); ok != want || outdated != want || err != nil {
			t.Errorf("%s: got %v, %v, %v, want %v and the same", name, ok, outdated, err, want)
		}
	}
	for name, kept := range foreign {
		// A hash of what was typed in another way is met by nobody who types it normalized.
		check(name, kept, typed, name != "bcrypt, as was typed")
		check(name, kept, combined, true)
		check(name, kept, "wrong", false)
		check(name, kept, "", false)
	}
	argon2i := "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8"
	check("argon2i", argon2i, "password", true)
	check("argon2i", argon2i, "passwort", false)
	check("80 bytes", bcrypt4+"bzadhGtS2zEF.gu0yd0opP6cVzb.e0i", strings.Repeat("x", 80), true)
	check("own", h.Hash(typed), "wrong", false)
}

// TestEmptyPasswordMatchesNothing has a hash of the empty password, which other programs may allow.
func TestEmptyPasswordMatchesNothing(t *testing.T) {
	h := account.NewHasher(account.CheapCost())
	kept := "$scrypt$ln=4,r=1,p=1$c29tZXNhbHQ$R5vtA23W5eqMmPOATd0CEkjzZJXa0smeez8Jdv7PLMg"
	if ok, _, err := h.Verify(kept, ""); ok || err != nil {
		t.Errorf("got %v, %v, want no match", ok, err)
	}
}

func TestHashesThatAreRefused(t *testing.T) {
	long := strings.Repeat("A", 600)
	for text, want := range map[string]string{
		"": "known", "hunter2": "known", "gtcs_hunter2": "known", "$": "known", "$$$": "known",
		"$2b$04$" + long: "known", "$2x$10$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO": "known",
		"$2b$03$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO":                          "known",
		"$2b$15$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO":                          "may be 14",
		"$2b$31$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO":                          "may be 14",
		"5f4dcc3b5aa765d61d8327deb882cf99":                                                      "known",
		"$1$salt$qJH7.N4xYta3aEG/dfqo/0":                                                        "known",
		"$6$salt$qJH7.N4xYta3aEG/dfqo/0":                                                        "known",
		"$pbkdf2-md5$1000$c29tZXNhbHQ$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdwkI":               "known",
		"$pbkdf2-sha256$0$c29tZXNhbHQ$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw.kI":              "known",
		"$pbkdf2-sha256$-1$c29tZXNhbHQ$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw.kI":             "known",
		"$pbkdf2-sha256$2000001$c29tZXNhbHQ$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw.kI":        "2000000 iterations",
		"$pbkdf2-sha256$99999999999999$c29tZXNhbHQ$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw.kI": "2000000 iterations",
		"$pbkdf2-sha256$i=1,i=2$c29tZXNhbHQ$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw.kI":        "known",
		"$pbkdf2-sha256$i=9,l=20$c29tZXNhbHQ$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw.kI":       "known",
		// 64 bytes take two blocks.
		"$pbkdf2-sha256$1000001$c2FsdA$" + long[:86]:                  "2000000 iterations",
		"$pbkdf2-sha256$9$$" + long[:86]:                              "known",
		"$pbkdf2-sha256$9$c2FsdA$AA":                                  "known",
		"$pbkdf2-sha256$9$c2FsdA$" + long[:128]:                       "known",
		"pbkdf2_sha256$2000001$s$" + long[:43]:                        "2000000 iterations",
		"pbkdf2-sha256$9$s$" + long[:43]:                              "known",
		"$scrypt$ln=17,r=8,p=2$c2FsdA$" + long[:43]:                   "scrypt may use",
		"$scrypt$ln=18,r=8,p=1$c2FsdA$" + long[:43]:                   "scrypt may use",
		"$scrypt$ln=62,r=8,p=1$c2FsdA$" + long[:43]:                   "scrypt may use",
		"$scrypt$ln=17,r=8,p=2147483647$c2FsdA$" + long[:43]:          "scrypt may use",
		"$scrypt$ln=0,r=8,p=1$c2FsdA$" + long[:43]:                    "known",
		"$scrypt$ln=4,r=8$c2FsdA$" + long[:43]:                        "known",
		"$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$" + long[:43]:   "argon2 may use",
		"$argon2id$v=19$m=131073,t=1,p=1$c29tZXNhbHQ$" + long[:43]:    "argon2 may use",
		"$argon2i$v=19$m=131072,t=5,p=1$c29tZXNhbHQ$" + long[:43]:     "argon2 may use",
		"$argon2id$v=19$m=256,t=99999,p=1$c29tZXNhbHQ$" + long[:43]:   "argon2 may use",
		"$argon2id$v=19$m=256,t=1,p=200$c29tZXNhbHQ$" + long[:43]:     "argon2 may use",
		"$argon2id$v=16$m=256,t=2,p=1$c29tZXNhbHQ$" + long[:43]:       "known",
		"$argon2id$v=19$m=256,t=2,p=1x$c29tZXNhbHQ$" + long[:43]:      "known",
		"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$" + long[:43] + "=": "known",
		"$argon2d$v=19$m=256,t=2,p=1$c29tZXNhbHQ$" + long[:43]:        "known",
	} {
		err := account.CheckHash(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want an error with %q", text, err, want)
		}
		if err != nil && len(text) > 20 && strings.Contains(err.Error(), text) {
			t.Errorf("got an error with the hash: %v", err)
		}
	}
}

// TestCostliestHashes keeps the bounds: each takes one or two seconds of a core at most, and 128 MiB.
func TestCostliestHashes(t *testing.T) {
	for _, text := range []string{
		"$argon2id$v=19$m=131072,t=4,p=1$c29tZXNhbHQ$" + strings.Repeat("A", 43),
		"$argon2i$v=19$m=65536,t=4,p=1$c29tZXNhbHQ$" + strings.Repeat("A", 43), // PHP's default
		"$2y$14$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO",
		"$pbkdf2-sha512$i=2000000$c2FsdA$" + strings.Repeat("A", 86),
		"pbkdf2_sha256$1200000$s$" + strings.Repeat("A", 43), // Django's default
		"$scrypt$ln=17,r=8,p=1$c2FsdA$" + strings.Repeat("A", 43),
	} {
		if err := account.CheckHash(text); err != nil {
			t.Errorf("%s: got %v, want none", text, err)
		}
	}
}
