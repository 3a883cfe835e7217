package account

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// The shortest and the longest password, in characters.
const (
	MinPassword = 10
	MaxPassword = 200
)

//go:embed commonpasswords.txt
var commonPasswordList string

// commonPasswords are the ones that are tried first, lower case, without what people put at their end.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	list := make(map[string]bool)
	for password := range strings.FieldsSeq(commonPasswordList) {
		list[stem(password)] = true
	}
	return list
})

// CheckPassword returns a FieldError unless u may use password: long enough, not among the commonest, and not made of
// the own name, address or number (NIST SP 800-63B section 5.1.1.2).
func CheckPassword(password string, u *User) error {
	wrong := func(message string) error { return FieldError{Field: "password", Message: message} }
	n := utf8.RuneCountInString(password)
	lower := strings.ToLower(password)
	switch {
	case !utf8.ValidString(password):
		return wrong("is not valid UTF-8")
	case n < MinPassword:
		return wrong(fmt.Sprintf("must have at least %d characters", MinPassword))
	case n > MaxPassword:
		return wrong(fmt.Sprintf("must have at most %d characters", MaxPassword))
	case commonPasswords()[stem(lower)] || fewCharacters(lower):
		return wrong("is one of those that are tried first")
	case containsAny(lower, personal(u)):
		return wrong("must not contain the name, email address, phone number or username")
	}
	return nil
}

// stem removes digits and signs at both ends, unless nothing else is there: "Password123!" is "password".
func stem(password string) string {
	if s := strings.Trim(password, "0123456789!?.,;:-_*+#$%&@ "); s != "" {
		return s
	}
	return password
}

// fewCharacters reports whether a password has at most three different characters or goes up and down a row of them.
func fewCharacters(password string) bool {
	different := map[rune]bool{}
	steps := map[rune]bool{}
	last := rune(-1)
	for _, r := range password {
		different[r] = true
		if last >= 0 {
			steps[r-last] = true
		}
		last = r
	}
	return len(different) <= 3 || len(steps) == 1 || onlyDigits(password) && strings.Contains("01234567890123456789 98765432109876543210", password)
}

func onlyDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// personal are the parts of what is known about u that are long enough to matter, lower case.
func personal(u *User) []string {
	local, _, _ := strings.Cut(u.Email, "@")
	parts := append(strings.Fields(u.Name), local, u.Email, u.Name, u.Username, strings.TrimPrefix(u.Phone, "+"))
	var long []string
	for _, part := range parts {
		if utf8.RuneCountInString(part) >= 4 {
			long = append(long, strings.ToLower(part))
		}
	}
	return long
}

func containsAny(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
