package account_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
)

func TestNextSend(t *testing.T) {
	sends := func(ages ...time.Duration) (all []account.CodeSend) {
		for _, age := range ages {
			all = append(all, account.CodeSend{At: today.Add(-age)})
		}
		return all
	}
	entered := func(all []account.CodeSend) []account.CodeSend {
		for i := range all {
			all[i].Entered = true
		}
		return all
	}
	for _, c := range []struct {
		name   string
		before []account.CodeSend
		want   time.Duration // after today; 0 = now
	}{
		{"none", nil, 0},
		{"one", sends(10 * time.Second), 20 * time.Second},
		{"one, entered", entered(sends(10 * time.Second)), 0},
		{"two at once", sends(10*time.Second, 10*time.Second), 20 * time.Second},
		{"one long ago", sends(time.Minute), 0},
		{"five in an hour", sends(50*time.Minute, 40*time.Minute, 30*time.Minute, 20*time.Minute, 10*time.Minute), 10 * time.Minute},
		{"five in an hour, unordered", sends(10*time.Minute, 50*time.Minute, 20*time.Minute, 40*time.Minute, 30*time.Minute), 10 * time.Minute},
		{"five in an hour, entered", entered(sends(50*time.Minute, 40*time.Minute, 30*time.Minute, 20*time.Minute, time.Second)), 10 * time.Minute},
		{"four in an hour", sends(70*time.Minute, 40*time.Minute, 30*time.Minute, 20*time.Minute, 10*time.Minute), 0},
		{"ten in a day", sends(23*time.Hour, 22*time.Hour, 21*time.Hour, 20*time.Hour, 19*time.Hour,
			18*time.Hour, 17*time.Hour, 16*time.Hour, 15*time.Hour, 14*time.Hour), time.Hour},
		{"nine in a day", sends(22*time.Hour, 21*time.Hour, 20*time.Hour, 19*time.Hour,
			18*time.Hour, 17*time.Hour, 16*time.Hour, 15*time.Hour, 14*time.Hour), 0},
	} {
		got := account.NextSend(c.before)
		if c.want > 0 && !got.Equal(today.Add(c.want)) || c.want <= 0 && got.After(today) {
			t.Errorf("%s: got %v, want %v after %v", c.name, got, c.want, today)
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
	if of(account.Email, "+1") == of(account.SMS, "+1") ||
		of(account.SMS, "+12") == of(account.SMS, "+1") {
		t.Error("got one recipient for two addresses")
	}
}

func TestParsePhone(t *testing.T) {
	for text, want := range map[string]string{
		"+14155550123":        "+14155550123",
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
