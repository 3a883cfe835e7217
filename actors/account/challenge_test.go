package account_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
)

// sends returns messages of one requester, sent so long before today.
func sends(by account.Requester, ages ...time.Duration) (all []account.CodeSend) {
	for _, age := range ages {
		all = append(all, account.CodeSend{Requester: by, At: today.Add(-age)})
	}
	return all
}

// changed changes all messages.
func changed(all []account.CodeSend, change func(*account.CodeSend)) []account.CodeSend {
	for i := range all {
		change(&all[i])
	}
	return all
}

func TestPlanSend(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
	known, own, other := account.KnownBrowsers, account.Requester{1}, account.Requester{2}
	entered := func(s *account.CodeSend) { s.Entered = true }
	free := func(s *account.CodeSend) { s.Free = true }
	hours := func(n int) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(2+2*i)*hour)
		}
		return all
	}
	for _, c := range []struct {
		name   string
		by     account.Requester
		before []account.CodeSend
		plan   account.Plan
		wait   time.Duration // 0 = none
	}{
		{"none", own, nil, account.SendCode, 0},
		{"one", own, sends(own, 10*time.Second), account.SendCode, 20 * time.Second},
		{"one, entered", own, changed(sends(own, 10*time.Second), entered), account.SendCode, 0},
		{"one long ago", own, sends(own, minute), account.SendCode, 0},
		{"one of another", own, sends(other, 10*time.Second), account.SendCode, 0},
		{"two in an hour", own, sends(own, 40*minute, 20*minute), account.SendCode, 0},
		{"three in an hour, unordered", own, sends(own, 20*minute, 50*minute, 40*minute),
			account.SendCode, 10 * minute},
		{"three in an hour, entered", own,
			changed(sends(own, 50*minute, 40*minute, time.Second), entered), account.SendCode, 10 * minute},
		{"three in an hour of another", own, sends(other, 50*minute, 40*minute, 10*minute),
			account.SendCode, 0},
		{"four in a day", own, sends(own, hours(4)...), account.SendLongCode, 0},
		{"five in a day", own, sends(own, hours(5)...), account.SendNothing, 0},
		{"five in a day, one free", own, append(sends(own, hours(4)...),
			changed(sends(own, 30*minute), free)...), account.SendLongCode, 0},
		{"nine of others", own, sends(other, hours(9)...), account.SendLongCode, 0},
		{"ten of others", own, sends(other, hours(10)...), account.SendNothing, 0},
		{"ten of others, one free", own, append(sends(other, hours(9)...),
			changed(sends(other, minute), free)...), account.SendLongCode, 0},
		{"ten of known browsers", own, sends(known, hours(10)...), account.SendCode, 0},
		{"ten of strangers", known, sends(other, hours(10)...), account.SendCode, 0},
		{"five in an hour of known browsers", known,
			sends(known, 50*minute, 40*minute, 30*minute, 20*minute, 10*minute), account.SendCode, 10 * minute},
		{"nine in a day of known browsers", known, sends(known, hours(9)...), account.SendLongCode, 0},
		{"ten in a day of known browsers", known, sends(known, hours(10)...), account.SendNothing, 0},
	} {
		plan, again := account.PlanSend(c.before, c.by, today)
		if plan != c.plan || max(0, again.Sub(today)) != c.wait {
			t.Errorf("%s: got plan %d after %v, want %d after %v", c.name, plan, again.Sub(today),
				c.plan, c.wait)
		}
	}
}

func TestLongCode(t *testing.T) {
	code := account.NewLongCode()
	if len(code) != 29 || code == account.NewLongCode() {
		t.Fatalf("got %q, want 25 random digits in groups", code)
	}
	want, ok := account.LongCodeHash(code)
	if !ok {
		t.Fatalf("%s: got no hash", code)
	}
	for _, text := range []string{strings.ReplaceAll(code, "-", " "), " " + code + "\t"} {
		if got, ok := account.LongCodeHash(text); !ok || got != want {
			t.Errorf("%q: got another hash than that of %q", text, code)
		}
	}
	for _, text := range []string{"", "123456", code[1:], code + "0", "U" + code[1:]} {
		if _, ok := account.LongCodeHash(text); ok {
			t.Errorf("%q: got a hash, want none", text)
		}
	}
}

func TestNewCode(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		code := account.NewCode()
		if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
			t.Fatalf("got %q, want 6 digits", code)
		}
		seen[code] = true
	}
	if len(seen) < 190 {
		t.Errorf("got %d different codes of 200", len(seen))
	}
}

func TestRecipient(t *testing.T) {
	of := func(channel account.Channel, address string) [32]byte {
		return (&account.Challenge{Channel: channel, Address: address}).Recipient()
	}
	if of(account.Email, "Ada@Example.org") != of(account.Email, "ada@example.ORG") {
		t.Error("got different recipients for addresses that differ in case")
	}
	if of(account.SMS, "+5491123456789") != of(account.SMS, "+541123456789") {
		t.Error("got two recipients for one number")
	}
	if of(account.Email, "+1") == of(account.SMS, "+1") ||
		of(account.SMS, "+12") == of(account.SMS, "+1") {
		t.Error("got one recipient for two addresses")
	}
}

func TestParsePhone(t *testing.T) {
	for text, want := range map[string]string{
		"+14155550123":        "+14155550123",
		"+52 1 55 1234 5678":  "+525512345678",
		"+52 55 1234 5678":    "+525512345678",
		"+54 9 11 2345 6789":  "+5491123456789",
		" +1 (415) 555-0123 ": "+14155550123",
		"0014155550123":       "+14155550123",
		"+49 (0)170 1234567":  "+491701234567",
		"+49 0170/123.4567":   "+491701234567",
		"+44 7700 900123":     "+447700900123",
		"+62 812-3456-7890":   "+6281234567890",
		"+39 06 698 12345":    "+390669812345",

		"+1\u00a0415\u2011555\u20110123": "+14155550123",
	} {
		if got, err := account.ParsePhone(text); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "+", "4155550123", "(415) 555-0123", "+1415555012a",
		"+1-800-FLOWERS", "+1 415 555 0123 ext. 5", "+1 415 555 0123;ext=5", "++14155550123",
		"+1415", "+999123456789", "+1234567890123456", "+١٤١٥٥٥٥٠١٢٣", "+1\x00", "\xff",
		"+" + strings.Repeat("1", 100), "tel:+14155550123", "+49" + strings.Repeat(" ", 80)} {
		got, err := account.ParsePhone(text)
		var wrong account.FieldError
		if !errors.As(err, &wrong) || wrong.Field != "phone_number" || got != "" {
			t.Errorf("%q: got %q, %v, want an error about phone_number", text, got, err)
		}
	}
}

// FuzzParsePhone checks that a parsed number is valid in a profile and parses to itself.
func FuzzParsePhone(f *testing.F) {
	f.Add("+14155550123")
	f.Add("0049 (0)170 1234567")
	f.Fuzz(func(t *testing.T, text string) {
		phone, err := account.ParsePhone(text)
		if err != nil {
			return
		}
		u := account.User{Name: "Ann", Phone: phone}
		if err := u.Check(today); err != nil {
			t.Errorf("%q: got %v for what was parsed", text, err)
		}
		if again, err := account.ParsePhone(phone); again != phone || err != nil {
			t.Errorf("%q: got %q, %v when parsed again", phone, again, err)
		}
	})
}

func TestCheckSMS(t *testing.T) {
	for phone, countries := range map[string]string{
		"+14155550123": "", "+14155550124": "US,DE", "+4915112345678": "DE", "+442079460018": "GB",
		"+18765551234": "JM", "+541123456789": "AR", "+331234567890": "FR", // too long
	} {
		if err := account.CheckSMS(phone, list(countries)); err != nil {
			t.Errorf("%s with %q: got %v, want it allowed", phone, countries, err)
		}
	}
	for phone, countries := range map[string]string{
		"+19005551234": "", "+449012345678": "", "+491801234567": "", "+498001234567": "",
		"+447012345678": "", "+443012345678": "", // premium, shared cost, toll free, personal, UAN
		"+870772001234": "", "+881612345678": "", "+88213123456": "", "+883510012345": "",
		"+97912345678": "", "+80812345678": "", "+88812345678901": "",
		"+4990012345678": "", "+19005551234567": "", // premium, too long
		"+18765551234": "US,CA", "+4915112345678": "US", "+14155550123": "DE",
	} {
		var wrong account.FieldError
		err := account.CheckSMS(phone, list(countries))
		if !errors.As(err, &wrong) || wrong.Field != "phone_number" ||
			strings.Contains(err.Error(), phone) {
			t.Errorf("%s with %q: got %v, want an error about phone_number", phone, countries, err)
		}
	}
	if !account.IsCountry("DE") || account.IsCountry("de") || account.IsCountry("XX") {
		t.Error("got DE, de and XX not told apart")
	}
}

// list returns the parts of a comma list; "" has none.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func TestMustUsePassword(t *testing.T) {
	for _, c := range []struct {
		user          account.User
		allowed, must bool
	}{
		{account.User{Phone: "+1"}, true, false},
		{account.User{Phone: "+1", Email: "a@b.example", PasswordHash: "x"}, true, true},
		{account.User{Phone: "+1", Email: "a@b.example", PasswordHash: "x", PhoneSignIn: true}, true, false},
		{account.User{Phone: "+1", Email: "a@b.example", PasswordHash: "x", PhoneSignIn: true}, false, true},
		{account.User{Phone: "+1", PasswordHash: "x"}, false, false},
		{account.User{Phone: "+1", Email: "a@b.example"}, false, false},
	} {
		if got := c.user.MustUsePassword(c.allowed); got != c.must {
			t.Errorf("%+v, allowed %t: got %t, want %t", c.user, c.allowed, got, c.must)
		}
	}
}
