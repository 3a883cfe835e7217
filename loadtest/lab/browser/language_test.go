package browser_test

import (
	"testing"

	"gatehouse/actors/texts"
	"gatehouse/cmd/stack"
)

// reader is a person who reads one language only. Without scripts, tests of signin have the same
// stories.
type reader struct {
	*person
	tag, language string
}

// other returns the person at another browser, at the page to sign in.
func (r *reader) other() *reader {
	r.t.Helper()
	q := &reader{r.service.person(r.t, true), r.tag, r.language}
	q.visit("/login")
	q.choose(r.tag, r.language)
	return q
}

// entersCode enters the next code to an address.
func (r *reader) entersCode(to string, fields ...string) {
	r.t.Helper()
	m := r.Next(r.t, to)
	if m.Language != r.tag {
		r.t.Errorf("got a message in %q, want %s", m.Language, r.tag)
	}
	r.alter(r.t, "UPDATE code_sends SET sent = 1") // the next one need not wait
	r.sends(append([]string{"code", m.Code}, fields...)...)
}

// confirms opens a page of an account that first asks for a code to an address.
func (r *reader) confirms(page, to string) {
	r.t.Helper()
	r.visit(page)
	r.sees("/me/confirm", "")
	r.sends()
	r.entersCode(to)
	r.sees(page, "")
}

// TestPeopleWhoReadOneLanguage register, consent, recover the account, change the password and delete
// the account, with scripts.
func TestPeopleWhoReadOneLanguage(t *testing.T) {
	all, err := texts.Load(texts.Options{Drafts: true})
	if err != nil {
		t.Fatal(err)
	}
	const mail = "ida@example.com"
	for _, row := range []struct {
		tag, language, proves string // where codes that confirm go to
		register              func(r *reader)
	}{
		{"de", "Deutsch", mail, func(r *reader) {
			r.leave("register", click(`//main//a[starts-with(@href, "/register?")]`))
			r.sends("name", "Ida", "email", mail, "password", newPassword)
			r.entersCode(mail)
		}},
		{"ar", "العربية", number, func(r *reader) {
			r.leave("register", click(`//main//a[starts-with(@href, "/register/phone")]`))
			r.sends("phone_number", number)
			r.entersCode(number)
			r.sends("name", "عائدة")
		}},
	} {
		t.Run(row.tag, func(t *testing.T) {
			r := &reader{newService(t, func(c *stack.Config) { c.Languages = all }).person(t, true), row.tag,
				row.language}
			r.visit(r.app.authorizeURL("view-user"))
			r.choose(row.tag, row.language)
			row.register(r)
			r.sees("/consent", "Atlas")
			r.sends()
			r.back(r.app)

			if row.proves != mail { // an address is needed to set a password
				r.confirms("/me/email", row.proves)
				r.sends("email", mail)
				r.entersCode(mail)
			}
			away := r.other()
			away.leave("recover", click(`//main//a[starts-with(@href, "/reset")]`))
			away.sends("email", mail)
			away.entersCode(mail, "password", "quiet tidal lamps")
			if row.proves != mail {
				away.sees("/reset/confirm", "")
				away.entersCode(row.proves)
			}
			away.sees("/me", "")
			r.visit("/me")
			r.sees("/login", "")

			away.confirms("/me/password", row.proves)
			away.sends("new_password", "loud tidal lamps")
			away.sees("/me", "")
			away.confirms("/me/delete", row.proves)
			away.tick("confirm")
			away.sends()
			away.sees("/me/deleted", "")
		})
	}
}
