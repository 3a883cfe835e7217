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
	Message string `json:"message"` // completes a sentence that begins with the field's name
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
	check := func(field, value string, required bool, problem func(string) string) {
		message := ""
		if value == "" && required {
			message = "is missing"
		} else if value != "" {
			message = problem(value)
		}
		if message != "" {
			wrong = append(wrong, FieldError{Field: field, Message: message})
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
		func(s string) string { return dateProblem(s, now) })
	check("address", u.Address, false, text(500))
	if wrong != nil {
		return wrong
	}
	return nil
}

// line allows up to limit characters on one line.
func line(limit int) func(string) string {
	return func(s string) string {
		if strings.Contains(s, "\n") {
			return "must be a single line"
		}
		return text(limit)(s)
	}
}

// text allows up to limit characters.
func text(limit int) func(string) string {
	return func(s string) string {
		switch {
		case !utf8.ValidString(s):
			return "is not valid UTF-8"
		case strings.ContainsFunc(s, unseen):
			return "must not contain control characters"
		case !strings.ContainsFunc(s, unicode.IsGraphic) || strings.TrimSpace(s) == "":
			return "must contain visible characters"
		case utf8.RuneCountInString(s) > limit:
			return fmt.Sprintf("must have at most %d characters", limit)
		}
		return ""
	}
}

// unseen reports whether r is a control character other than a line break, or changes the direction
// of the following text, which can make one text look like another.
func unseen(r rune) bool {
	return unicode.IsControl(r) && r != '\n' || r >= 0x202A && r <= 0x202E || r >= 0x2066 &&
		r <= 0x2069 || r == 0x2028 || r == 0x2029 || r == 0xFEFF
}
