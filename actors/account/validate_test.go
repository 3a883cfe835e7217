package account_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
)

var today = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestCheckFields(t *testing.T) {
	email := func(u *account.User, s string) { u.Email = s }
	phone := func(u *account.User, s string) { u.Phone = s }
	username := func(u *account.User, s string) { u.Username = s }
	picture := func(u *account.User, s string) { u.ProfilePicture = s }
	birth := func(u *account.User, s string) { u.DateOfBirth = s }
	name := func(u *account.User, s string) { u.Name = s }
	bio := func(u *account.User, s string) { u.Bio = s }
	gender := func(u *account.User, s string) { u.Gender = s }
	place := func(u *account.User, s string) { u.PlaceOfBirth = s }
	address := func(u *account.User, s string) { u.Address = s }
	for _, c := range []struct {
		field     string
		set       func(*account.User, string)
		good, bad []string
	}{
		{"name", name, []string{"Ann", "Ö", "李小龍", "O'Neill-Smith", strings.Repeat("ö", 200)},
			[]string{"", "   ", "a\nb", "a\x00b", "a\x7fb", "\xff", "a\u202eb", "a\u2066b",
				"\u200b", strings.Repeat("a", 201)}},
		{"email", email, []string{"a@b.de", "first.last+tag@sub.example.co", "o'neill@example.com", "A@EXAMPLE.COM", "a@xn--bcher-kva.example"},
			[]string{"a", "@b.de", "a@", "a@b", "a@@b.de", "a b@c.de", "a@b..de", ".a@b.de",
				"a.@b.de", "a..b@c.de", `"a"@b.de`, "a@[1.2.3.4]", "a@1.2.3.4", "a@-b.de",
				"a@b-.de", "Ann <a@b.de>", "a@b.de\n", "ä@b.de", "a@b.de,c@d.de",
				strings.Repeat("a", 65) + "@b.de", "a@" + strings.Repeat("b",
					64) + ".de", "a@" + strings.Repeat("b.", 126) + "de"}},
		{"profile_picture", picture, []string{"https://example.com/a.png", "http://example.com:8080/a?b=c&d#e", "https://[2001:db8::1]/x"},
			[]string{"example.com/a.png", "ftp://example.com/a", "javascript:alert(1)",
				"data:image/png;base64,AA==", "https://", "https:///a", "https://u:p@example.com/",
				"https://example.com/a b", "https://example.com/\n", "https://:80/",
				"https://e.com/" + strings.Repeat("a", 2048)}},
		{"username", username, []string{"ann", "a.b-c_d", "Ann99", "123"},
			[]string{"ab", strings.Repeat("a", 31), ".ann", "ann.", "a..b", "a b", "änn", "ann@x",
				"a\x00b"}},
		{"gender", gender, []string{"male", "other", "non-binary"}, []string{strings.Repeat("x", 51), "a\nb"}},
		{"bio", bio, []string{"one\ntwo", strings.Repeat("a", 2000)}, []string{"a\x1bb", strings.Repeat("a", 2001), "\n \n"}},
		{"phone_number", phone, []string{"+14155550123", "+4917012345678", "+6281234567890", "+1234567", "+123456789012345"},
			[]string{"49301234567", "+0123456789", "+123456", "+1234567890123456", "+1 415",
				"+1415555012a", "+", "++14155550123", "+١٢٣٤٥٦٧"}},
		{"place_of_birth", place, []string{"Ulm"}, []string{strings.Repeat("x", 201), "\t"}},
		{"date_of_birth", birth, []string{"1990-02-28", "2000-02-29", "2026-11-21", "2026-11-22"},
			[]string{"1990-2-8", "28.02.1990", "1990-02-29", "1990-13-01", "2026-11-23",
				"0001-01-01", "1990-02-28T00:00:00Z", " 1990-02-28", "1900-02-29"}},
		{"address", address, []string{"1 High St\nTown"}, []string{strings.Repeat("x", 501)}},
	} {
		for _, value := range c.good {
			u := full()
			c.set(u, value)
			if err := u.Check(today); err != nil {
				t.Errorf("%s %q: got %v, want no error", c.field, value, err)
			}
		}
		for _, value := range c.bad {
			u := full()
			c.set(u, value)
			var wrong account.FieldErrors
			if err := u.Check(today); !errors.As(err, &wrong) || len(wrong) != 1 ||
				wrong[0].Field != c.field {
				t.Errorf("%s %q: got %v, want an error about %s alone", c.field, value, err,
					c.field)
			} else if len(value) > 3 && strings.Contains(wrong.Error(), value) {
				t.Errorf("%s %q: got %q, which repeats the value", c.field, value, wrong.Error())
			}
		}
	}
}

func TestCheckNamesEveryWrongField(t *testing.T) {
	u := account.User{Email: "x", DateOfBirth: "y"}
	const want = "name is missing; email is not an email address; date_of_birth must be a valid date in the form YYYY-MM-DD"
	if err := u.Check(today); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTidy(t *testing.T) {
	u := account.User{Name: " Ann ", Email: " a@b.de\n", Phone: " +1 (415) 555-0123 ",
		Bio: "one\r\ntwo\r\n"}
	u.Tidy()
	if u.Name != "Ann" || u.Email != "a@b.de" || u.Phone != "+14155550123" || u.Bio != "one\ntwo" {
		t.Errorf("got %+v", u)
	}
}

// TestTidyPhone checks that differently written numbers get one form.
func TestTidyPhone(t *testing.T) {
	for text, want := range map[string]string{"+49 (0)170 1234567": "+491701234567",
		"00491701234567": "+491701234567", "": "", "+1 2 3": "+123", "x": "x"} {
		u := account.User{Phone: text}
		if u.Tidy(); u.Phone != want {
			t.Errorf("%q: got %q, want %q", text, u.Phone, want)
		}
	}
}
