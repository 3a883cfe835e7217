package visit

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// ownMissing are the fields whose text says what to enter.
var ownMissing = map[string]string{"name": "wrong.name_missing", "email": "wrong.email_missing",
	"password": "wrong.password_new_missing", "phone_number": "wrong.phone_number_missing"}

// errorKeys are the texts of errors about what a person entered.
var errorKeys = []struct {
	err error
	key string
}{
	{people.ErrWrongCredentials, "wrong.credentials"}, {people.ErrWrongCode, "wrong.code"},
	{people.ErrCodeExpired, "wrong.code_expired"}, {people.ErrNoAccount, "wrong.no_account"},
	{people.ErrPasswordNeeded, "login.password_needed"},
	{people.ErrPasskeyWrong, "passkey.wrong"}, {people.ErrPasskeyUnknown, "passkey.unknown"},
	{people.ErrPasskeyExpired, "passkey.expired"}, {people.ErrPasskeyRefused, "passkey.refused"},
	{people.ErrPasskeyTaken, "passkey.taken"}, {people.ErrManyPasskeys, "passkey.many"},
	{people.ErrDisabled, "login.disabled_text"}, {people.ErrProofNeeded, "wrong.proof_needed"},
	{people.ErrFactorCode, "factor.code_first"},
}

// TextOf returns the text of an error about what a person entered.
func TextOf(err error) texts.Text {
	for _, row := range errorKeys {
		if errors.Is(err, row.err) {
			return texts.Of(row.key)
		}
	}
	return texts.Literal(endpoint.ProblemOf(err).Message)
}

// Again returns the status and the problems of a page that shows its form again after err. The
// problems are about field unless err names fields. After too many attempts, the text is that of
// the key tooMany, with the slot wait, and Retry-After is set. The status is 0 when err is nil or
// not about the form.
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
		wait := texts.Wait(int(endpoint.WholeSeconds(p.RetryAfter)))
		return p.Status, []pages.Problem{{Text: texts.Of(tooMany, "wait", wait)}}
	case p.Status == fasthttp.StatusUnprocessableEntity:
		return p.Status, []pages.Problem{{Field: field, Text: TextOf(err)}}
	}
	return 0, nil
}

// FactorText returns what is wrong with a code of a second factor, "wrong" or "missing". Without an
// authenticator app, it is a recovery code.
func FactorText(what string, hasApp bool) texts.Text {
	if hasApp {
		return texts.Of("factor." + what)
	}
	return texts.Of("factor.recovery_" + what)
}

func fieldProblems(fields account.FieldErrors) []pages.Problem {
	var problems []pages.Problem
	for _, f := range fields {
		problems = append(problems, pages.Problem{Field: f.Field, Text: FieldText(f)})
	}
	return problems
}

// FieldText returns what is wrong with a field.
func FieldText(f account.FieldError) texts.Text {
	switch {
	case f.Rule == "missing" && ownMissing[f.Field] != "":
		return texts.Of(ownMissing[f.Field])
	case f.Rule == "":
		return texts.Literal(f.Error() + ".")
	}
	return texts.Of("wrong."+f.Rule, "n", f.Limit)
}
