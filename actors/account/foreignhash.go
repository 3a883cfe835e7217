package account

import (
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"hash"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"
)

// Limits on the cost of hashes that other programs have made. The costliest takes one or two seconds
// of a core.
const (
	maxForeignMemory = 128 << 10 // KiB of argon2 and scrypt
	maxArgonWork     = 512 << 10 // KiB, times passes
	maxArgonThreads  = 8
	maxBcryptCost    = 14
	maxPBKDF2Work    = 2_000_000 // iterations, times blocks of the sum
	maxScryptWork    = 1 << 20   // blocks of 128 bytes, times threads
	maxHashText      = 512       // bytes
)

// CheckHash returns a FieldError unless text is a password hash that Hasher.Verify takes, at a cost
// that a sign-in may have. The forms are argon2i and argon2id (PHC), bcrypt ($2a$, $2b$, $2y$),
// PBKDF2 with SHA-1, SHA-256 or SHA-512 (PHC, passlib, Django) and scrypt (PHC).
func CheckHash(text string) error {
	_, problem := parseKept(text)
	if problem == "" {
		return nil
	}
	return FieldError{Field: "password_hash", Message: problem}
}

// Problems of hashes.
const (
	unknownHash = "must be a hash by argon2i, argon2id, bcrypt, PBKDF2 or scrypt in a form that is known"
	costlyArgon = "costs too much to verify: argon2 may use 128 MiB, 8 threads and 512 MiB over all passes"
	costlyBcryp = "costs too much to verify: the cost of bcrypt may be 14"
	costlyPBKDF = "costs too much to verify: PBKDF2 may use 2000000 iterations, over all blocks of the sum"
	costlyScryp = "costs too much to verify: scrypt may use 128 MiB over all threads"
)

// keptHash reports whether a password has a hash that is kept. It compares in constant time.
type keptHash func(password string) bool

// parseKept parses a hash that may be another program's. problem is "" or completes a sentence.
func parseKept(text string) (matches keptHash, problem string) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(text, "$"), "$")
	switch {
	case len(text) > maxHashText:
		return nil, unknownHash
	case !strings.HasPrefix(text, "$"):
		digest := digests["pbkdf2-"+strings.TrimPrefix(name, "pbkdf2_")]
		if digest == nil {
			return nil, unknownHash
		}
		return parseDjango(digest, rest)
	case name == argon2i || name == argon2id:
		return parseArgon(text)
	case name == "2a" || name == "2b" || name == "2y":
		return parseBcrypt(text)
	case name == "scrypt":
		return parseScrypt(rest)
	case digests[name] != nil:
		return parsePBKDF2(digests[name], rest)
	}
	return nil, unknownHash
}

// parseArgon parses the PHC form of argon2.
func parseArgon(text string) (keptHash, string) {
	h, err := parsePasswordHash(text)
	parts := strings.Split(text, "$")
	if err != nil && len(parts) == 6 {
		p, known := parameters(parts[3])
		if known && (p["m"] > maxForeignMemory || p["t"] > 16 || p["p"] > maxArgonThreads) {
			return nil, costlyArgon
		}
	}
	switch {
	case err != nil || h.String() != text:
		return nil, unknownHash
	case h.cost.Memory > maxForeignMemory ||
		uint64(h.cost.Memory)*uint64(h.cost.Time) > maxArgonWork:
		return nil, costlyArgon
	}
	return h.matches, ""
}

var bcryptForm = regexp.MustCompile(`^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$`)

func parseBcrypt(text string) (keptHash, string) {
	found := bcryptForm.FindStringSubmatch(text)
	if found == nil {
		return nil, unknownHash
	}
	switch cost, err := strconv.Atoi(found[1]); {
	case err != nil || cost < bcrypt.MinCost:
		return nil, unknownHash
	case cost > maxBcryptCost:
		return nil, costlyBcryp
	}
	return func(password string) bool {
		return bcrypt.CompareHashAndPassword([]byte(text), []byte(password)) == nil
	}, ""
}

// digests are the hash functions of PBKDF2 by the names of the forms.
var digests = map[string]func() hash.Hash{
	"pbkdf2": sha1.New, "pbkdf2-sha1": sha1.New, "pbkdf2-sha256": sha256.New,
	"pbkdf2-sha512": sha512.New,
}

// parsePBKDF2 parses what follows the name in the forms of PHC (i=ITERATIONS,l=LENGTH) and passlib
// (ITERATIONS), both with salt and sum in base64.
func parsePBKDF2(digest func() hash.Hash, rest string) (keptHash, string) {
	parts := strings.Split(rest, "$")
	if len(parts) != 3 {
		return nil, unknownHash
	}
	iterations := parts[0]
	if p, ok := parameters(parts[0]); ok {
		iterations = strconv.Itoa(p["i"])
		if sum, _ := decode64(parts[2]); p["l"] != 0 && p["l"] != len(sum) {
			return nil, unknownHash
		}
	}
	salt, ok := decode64(parts[1])
	if !ok {
		return nil, unknownHash
	}
	return newPBKDF2(digest, iterations, salt, parts[2])
}

// parseDjango parses what follows the name in Django's form: the salt is the text itself.
func parseDjango(digest func() hash.Hash, rest string) (keptHash, string) {
	parts := strings.Split(rest, "$")
	if len(parts) != 3 {
		return nil, unknownHash
	}
	return newPBKDF2(digest, parts[0], []byte(parts[1]), parts[2])
}

func newPBKDF2(digest func() hash.Hash, count string, salt []byte, text string) (keptHash, string) {
	sum, ok := decode64(text)
	iterations, err := strconv.ParseInt(count, 10, 64)
	if err != nil || iterations < 1 || !ok || !fits(salt, sum) {
		return nil, unknownHash
	}
	size := digest().Size()
	if iterations > maxPBKDF2Work || int(iterations)*((len(sum)+size-1)/size) > maxPBKDF2Work {
		return nil, costlyPBKDF
	}
	return func(password string) bool {
		key, err := pbkdf2.Key(digest, password, salt, int(iterations), len(sum))
		return err == nil && subtle.ConstantTimeCompare(key, sum) == 1
	}, ""
}

// parseScrypt parses what follows the name in the PHC form, which passlib writes too.
func parseScrypt(rest string) (keptHash, string) {
	parts := strings.Split(rest, "$")
	if len(parts) != 3 {
		return nil, unknownHash
	}
	p, known := parameters(parts[0])
	salt, salted := decode64(parts[1])
	sum, summed := decode64(parts[2])
	ln, r, threads := p["ln"], p["r"], p["p"]
	if !known || !salted || !summed || !fits(salt, sum) || ln < 1 || r < 1 || threads < 1 {
		return nil, unknownHash
	}
	const most = maxForeignMemory * 1024 / 128 // memory is 128·r·2^ln bytes
	if ln > 20 || r > most>>ln || threads > maxScryptWork/(r<<ln) {
		return nil, costlyScryp
	}
	return func(password string) bool {
		key, err := scrypt.Key([]byte(password), salt, 1<<ln, r, threads, len(sum))
		return err == nil && subtle.ConstantTimeCompare(key, sum) == 1
	}, ""
}

// parameters parses "a=1,b=2". The numbers are not negative.
func parameters(text string) (map[string]int, bool) {
	all := map[string]int{}
	for one := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(one, "=")
		n, err := strconv.ParseUint(value, 10, 31)
		if _, repeated := all[name]; err != nil || repeated {
			return nil, false
		}
		all[name] = int(n)
	}
	return all, true
}

// decode64 decodes base64 with or without padding, with "." in place of "+" as passlib writes it.
func decode64(text string) ([]byte, bool) {
	text = strings.ReplaceAll(strings.TrimRight(text, "="), ".", "+")
	sum, err := base64.RawStdEncoding.DecodeString(text)
	return sum, err == nil && !strings.ContainsAny(text, "\r\n") // which the decoder skips
}

// fits reports whether salt and sum have usual lengths.
func fits(salt, sum []byte) bool {
	return len(salt) >= 1 && len(salt) <= 128 && len(sum) >= 16 && len(sum) <= 64
}
