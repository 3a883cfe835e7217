package visit

import (
	"errors"

	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

// fieldWords are how sentences about fields begin, and what people are told who left one out.
var fieldWords = map[string]struct{ subject, missing string }{
	"name":         {"The name", "Enter your name."},
	"email":        {"This", "Enter your email address."},
	"password":     {"The password", "Enter a password."},
	"phone_number": {"The phone number", "Enter your phone number."},

	"username":        {"The username", ""},
	"gender":          {"The gender", ""},
	"bio":             {"The text about you", ""},
	"place_of_birth":  {"The place of birth", ""},
	"date_of_birth":   {"The date of birth", ""},
	"address":         {"The address", ""},
	"profile_picture": {"The link", ""},
}

// ProblemsOf returns what account.FieldErrors, or one FieldError, say for the form that was sent; nil for another error.
func ProblemsOf(err error) []pages.Problem {
	var fields account.FieldErrors
	var field account.FieldError
	if errors.As(err, &field) {
		fields = account.FieldErrors{field}
	} else if !errors.As(err, &fields) {
		return nil
	}
	var problems []pages.Problem
	for _, f := range fields {
		words, known := fieldWords[f.Field]
		switch {
		case known && f.Message == "is missing":
			problems = append(problems, pages.Problem{Field: f.Field, Text: words.missing})
		case known:
			problems = append(problems, pages.Problem{Field: f.Field, Text: words.subject + " " + f.Message + "."})
		default:
			problems = append(problems, pages.Problem{Field: f.Field, Text: f.Error() + "."})
		}
	}
	return problems
}
