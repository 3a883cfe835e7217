package account

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// maxPhoneText limits the text of a phone number, in bytes: separators may take more than one byte.
const maxPhoneText = 64

// ParsePhone returns the E.164 form of a phone number that begins with "+" or "00" and the country
// code. It accepts every number with a length that exists in the country, assigned or not. The
// error is a FieldError.
func ParsePhone(text string) (string, error) {
	text = strings.TrimSpace(text)
	if rest, found := strings.CutPrefix(text, "00"); found {
		text = "+" + rest
	}
	phone := ""
	if len(text) <= maxPhoneText && strings.LastIndexByte(text, '+') == 0 &&
		!strings.ContainsFunc(text, notInPhone) {
		phone = toE164(text)
	}
	if phone == "" || phoneProblem(phone) != "" || toE164(phone) != phone {
		return "", FieldError{Field: "phone_number",
			Message: "must be a plus sign, the country code and the number, such as +14155550123"}
	}
	return phone, nil
}

// toE164 returns the E.164 form of text, or "" if it is not a possible number of any country.
func toE164(text string) string {
	number, err := phonenumbers.Parse(text, phonenumbers.UNKNOWN_REGION)
	if err != nil || number.GetExtension() != "" || !phonenumbers.IsPossibleNumber(number) {
		return ""
	}
	return phonenumbers.Format(number, phonenumbers.E164)
}

// notInPhone reports whether r is neither a digit nor a usual separator between digits.
func notInPhone(r rune) bool {
	return (r < '0' || r > '9') && !strings.ContainsRune("+ -().\u00a0\u2010\u2011\u2012\u2013/", r)
}
