package account

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// Limits on the length of a password, in characters.
const (
	MinPassword = 10
	MaxPassword = 200
)

//go:embed commonpasswords.txt
var commonPasswordList string

// commonPasswords holds the stems of the most common passwords, in lower case.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	list := make(map[string]bool)
	for password := range strings.FieldsSeq(commonPasswordList) {
		list[stem(password)] = true
	}
	return list
})

// CheckPassword returns a FieldError unless u may use password. It must be long enough, uncommon,
// and must not contain u's name, address, number or username (NIST SP 800-63B section 5.1.1.2).
func CheckPassword(password string, u *User) error {
	wrong := func(message, rule string, limit int) error {
		return problem{message, rule, limit}.of("password")
	}
	n := utf8.RuneCountInString(password)
	lower := strings.ToLower(password)
	switch {
	case !utf8.ValidString(password):
		return wrong("is not valid UTF-8", "not_text", 0)
	case n < MinPassword:
		return wrong(fmt.Sprintf("must have at least %d characters", MinPassword), "password_short",
			MinPassword)
	case n > MaxPassword:
		return wrong(fmt.Sprintf("must have at most %d characters", MaxPassword), "password_long",
			MaxPassword)
	case commonPasswords()[stem(lower)] || fewCharacters(lower):
		return wrong("is too common and easy to guess", "password_common", 0)
	case containsAny(lower, personal(u)):
		return wrong("must not contain the name, email address, phone number or username",
			"password_personal", 0)
	}
	return nil
}

// stem removes digits and punctuation at both ends, unless nothing else is left: "password123!"
// becomes "password".
func stem(password string) string {
	if s := strings.Trim(password, "0123456789!?.,;:-_*+#$%&@ "); s != "" {
		return s
	}
	return password
}

// fewCharacters reports whether a password has at most three different characters, or is a sequence
// such as "abcdef" or "9876543210".
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
	return len(different) <= 3 || len(steps) == 1 || onlyDigits(password) &&
		strings.Contains("01234567890123456789 98765432109876543210", password)
}

func onlyDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// personal returns u's name, address, number and username, and the parts of the name and address,
// in lower case. It leaves out texts of less than four characters.
func personal(u *User) []string {
	local, _, _ := strings.Cut(u.Email, "@")
	parts := append(strings.Fields(u.Name), local, u.Email, u.Name, u.Username,
		strings.TrimPrefix(u.Phone, "+"))
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
