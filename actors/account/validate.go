package account

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// FieldError says what is wrong with one field of a user, in a text for people. It does not contain
// the value.
type FieldError struct {
	Field   string `json:"field"`   // name in the profile, such as "date_of_birth"
	Message string `json:"message"` // completes a sentence that begins with the field's name, in English
	// Rule names what the value breaks, such as "too_long", for texts in other languages; "" = pages
	// have no such field. Limit is the number in it; 0 = none.
	Rule  string `json:"-"`
	Limit int    `json:"-"`
}

// Missing returns the error of a field that is required.
func Missing(field string) FieldError {
	return FieldError{Field: field, Message: "is missing", Rule: "missing"}
}

// problem is what is wrong with a value, without the field; zero = nothing.
type problem struct {
	message, rule string
	limit         int
}

func (p problem) of(field string) FieldError {
	return FieldError{Field: field, Message: p.message, Rule: p.rule, Limit: p.limit}
}

// Error returns the field and the message.
func (e FieldError) Error() string { return e.Field + " " + e.Message }

// FieldErrors holds at most one error a field, in the order of the profile.
type FieldErrors []FieldError

// Error returns the fields and messages, separated by semicolons.
func (e FieldErrors) Error() string {
	texts := make([]string, len(e))
	for i, field := range e {
		texts[i] = field.Error()
	}
	return strings.Join(texts, "; ")
}

// Tidy trims the fields of u, converts line breaks to "\n" and writes the phone number in E.164
// form.
func (u *User) Tidy() {
	for _, field := range []*string{&u.Name, &u.Email, &u.Username, &u.Gender, &u.Bio,
		&u.PlaceOfBirth, &u.DateOfBirth, &u.Address, &u.ProfilePicture} {
		*field = strings.TrimSpace(*field)
	}
	u.Phone = tidyPhone(u.Phone)
	u.Bio = strings.ReplaceAll(u.Bio, "\r\n", "\n")
	u.Address = strings.ReplaceAll(u.Address, "\r\n", "\n")
}

// tidyPhone returns the result of ParsePhone. If that fails, it only removes separators: Check then
// reports the error.
func tidyPhone(text string) string {
	if phone, err := ParsePhone(text); err == nil {
		return phone
	}
	return strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", ".", "", "/", "").Replace(text)
}

// Check returns FieldErrors unless every field of u that people fill in is valid at now.
func (u *User) Check(now time.Time) error {
	var wrong FieldErrors
	check := func(field, value string, required bool, problemOf func(string) problem) {
		if value == "" && required {
			wrong = append(wrong, Missing(field))
		} else if value != "" {
			if p := problemOf(value); p.message != "" {
				wrong = append(wrong, p.of(field))
			}
		}
	}
	check("name", u.Name, true, line(200))
	check("email", u.Email, false, emailProblem)
	check("profile_picture", u.ProfilePicture, false, pictureProblem)
	check("username", u.Username, false, usernameProblem)
	check("gender", u.Gender, false, line(50))
	check("bio", u.Bio, false, text(2000))
	check("phone_number", u.Phone, false, phoneProblem)
	check("place_of_birth", u.PlaceOfBirth, false, line(200))
	check("date_of_birth", u.DateOfBirth, false,
		func(s string) problem { return dateProblem(s, now) })
	check("address", u.Address, false, text(500))
	if wrong != nil {
		return wrong
	}
	return nil
}

// line allows up to limit characters on one line.
func line(limit int) func(string) problem {
	return func(s string) problem {
		if strings.Contains(s, "\n") {
			return problem{message: "must be a single line", rule: "one_line"}
		}
		return text(limit)(s)
	}
}

func tooLong(limit int) problem {
	return problem{fmt.Sprintf("must have at most %d characters", limit), "too_long", limit}
}

// text allows up to limit characters.
func text(limit int) func(string) problem {
	return func(s string) problem {
		switch {
		case !utf8.ValidString(s):
			return problem{message: "is not valid UTF-8", rule: "not_text"}
		case strings.ContainsFunc(s, unseen):
			return problem{message: "must not contain control characters", rule: "control"}
		case !strings.ContainsFunc(s, unicode.IsGraphic) || strings.TrimSpace(s) == "":
			return problem{message: "must contain visible characters", rule: "invisible"}
		case utf8.RuneCountInString(s) > limit:
			return tooLong(limit)
		}
		return problem{}
	}
}

// unseen reports whether r is a control character other than a line break, or changes the direction
// of the following text, which can make one text look like another.
func unseen(r rune) bool {
	return unicode.IsControl(r) && r != '\n' || r >= 0x202A && r <= 0x202E || r >= 0x2066 &&
		r <= 0x2069 || r == 0x2028 || r == 0x2029 || r == 0xFEFF
}
