package visit

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// fieldWords are how sentences about fields begin, and the texts for missing fields.
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

// Again returns the status and the problems of a page that shows its form again after err. The
// problems are about field unless err names fields. After too many attempts, the text begins with
// tooMany and Retry-After is set. The status is 0 when err is nil or not about the form.
func Again(v *Visit, err error, field, tooMany string) (status int, problems []pages.Problem) {
	if err == nil {
		return 0, nil
	}
	p := endpoint.ProblemOf(err)
	switch {
	case len(p.Fields) > 0:
		return fasthttp.StatusUnprocessableEntity, fieldProblems(p.Fields)
	case p.Status == fasthttp.StatusTooManyRequests:
		endpoint.SetRetryAfter(&v.HTTP.Response.Header, &p)
		wait := pages.Verify{Wait: int(endpoint.WholeSeconds(p.RetryAfter))}.WaitText()
		return p.Status, []pages.Problem{{Text: tooMany + " Try again in " + wait + "."}}
	case p.Status == fasthttp.StatusUnprocessableEntity:
		return p.Status, []pages.Problem{{Field: field, Text: p.Message}}
	}
	return 0, nil
}

func fieldProblems(fields account.FieldErrors) []pages.Problem {
	var problems []pages.Problem
	for _, f := range fields {
		words, known := fieldWords[f.Field]
		switch {
		case known && f.Message == "is missing":
			problems = append(problems, pages.Problem{Field: f.Field, Text: words.missing})
		case known:
			problems = append(problems,
				pages.Problem{Field: f.Field, Text: words.subject + " " + f.Message + "."})
		default:
			problems = append(problems, pages.Problem{Field: f.Field, Text: f.Error() + "."})
		}
	}
	return problems
}
