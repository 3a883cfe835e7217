package account

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// maxPhoneText bounds what is taken for a phone number, in bytes: some signs between its digits are longer than one.
const maxPhoneText = 64

// ParsePhone returns the E.164 form of a phone number as people write it: with the country code after "+" or "00". The error is a
// FieldError. Numbers of any length that the country has are taken, assigned or not.
func ParsePhone(text string) (string, error) {
	text = strings.TrimSpace(text)
	if rest, found := strings.CutPrefix(text, "00"); found {
		text = "+" + rest
	}
	phone := ""
	if len(text) <= maxPhoneText && strings.LastIndexByte(text, '+') == 0 && !strings.ContainsFunc(text, notInPhone) {
		phone = toE164(text)
	}
	if phone == "" || phoneProblem(phone) != "" || toE164(phone) != phone {
		return "", FieldError{Field: "phone_number", Message: "must be a plus sign, the country code and the number, such as +14155550123"}
	}
	return phone, nil
}

// toE164 returns "" for what is no number of any country.
func toE164(text string) string {
	number, err := phonenumbers.Parse(text, phonenumbers.UNKNOWN_REGION)
	if err != nil || number.GetExtension() != "" || !phonenumbers.IsPossibleNumber(number) {
		return ""
	}
	return phonenumbers.Format(number, phonenumbers.E164)
}

// notInPhone reports whether r is neither a digit nor a sign that people put between them.
func notInPhone(r rune) bool {
	return (r < '0' || r > '9') && !strings.ContainsRune("+ -().\u00a0\u2010\u2011\u2012\u2013/", r)
}
