package account

import (
	"slices"
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
		phone = toE164(withoutMexicanOne(text))
	}
	if phone == "" || phoneProblem(phone).message != "" || toE164(phone) != phone {
		return "", phoneProblem("").of("phone_number")
	}
	return phone, nil
}

// PhoneKey returns the form of an E.164 number that users are told apart by. Argentina's mobile
// numbers have a 9 after the country code, which is optional in part of the world.
func PhoneKey(phone string) string {
	if local, ok := strings.CutPrefix(phone, "+549"); ok && len(local) == 10 {
		return "+54" + local
	}
	return phone
}

// withoutMexicanOne removes the 1 after Mexico's country code, which mobile numbers had until 2019.
func withoutMexicanOne(text string) string {
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text)
	if local, ok := strings.CutPrefix(digits, "521"); ok && len(local) == 10 {
		return "+52" + local
	}
	return text
}

// otherNetworks is the region of numbers that belong to no country: satellite networks,
// international premium and shared-cost numbers, and others.
const otherNetworks = "001"

// costlyTypes are the types of numbers that cost the sender or a caller more than a phone call, or
// that no person reads messages at.
var costlyTypes = []phonenumbers.PhoneNumberType{
	phonenumbers.PREMIUM_RATE, phonenumbers.SHARED_COST, phonenumbers.TOLL_FREE,
	phonenumbers.PERSONAL_NUMBER, phonenumbers.PAGER, phonenumbers.UAN, phonenumbers.VOICEMAIL,
}

// CheckSMS returns a FieldError if no text message may be sent to an E.164 number: because of the
// number's type, or because countries (ISO 3166 codes; none = all) do not include its country.
func CheckSMS(phone string, countries []string) error {
	refused := func(message, rule string) error {
		return problem{message: message, rule: rule}.of("phone_number")
	}
	number, err := phonenumbers.Parse(phone, phonenumbers.UNKNOWN_REGION)
	country := PhoneCountry(phone)
	if err == nil {
		phonenumbers.TruncateTooLongNumber(number) // networks ignore digits after a complete number
	}
	switch {
	case err != nil || country == otherNetworks,
		slices.Contains(costlyTypes, phonenumbers.GetNumberType(number)):
		return refused("must be an ordinary mobile number, not a premium, shared-cost, "+
			"satellite or service number", "phone_costly")
	case len(countries) > 0 && !slices.Contains(countries, country):
		return refused("is in a country that this service does not send messages to",
			"phone_country")
	}
	return nil
}

// PhoneCountry returns the ISO 3166 code of an E.164 number's country, or "001" if it belongs to
// none. Of the countries that share a country code, a number that is in use in none of them counts
// for the largest.
func PhoneCountry(phone string) string {
	number, err := phonenumbers.Parse(phone, phonenumbers.UNKNOWN_REGION)
	if err != nil {
		return otherNetworks
	}
	if country := phonenumbers.GetRegionCodeForNumber(number); country != "" {
		return country
	}
	return phonenumbers.GetRegionCodeForCountryCode(int(number.GetCountryCode()))
}

// IsCountry reports whether code is the ISO 3166 code of a country that has phone numbers.
func IsCountry(code string) bool { return phonenumbers.GetSupportedRegions()[code] }

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
