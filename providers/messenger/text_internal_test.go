package messenger

import (
	"strings"
	"testing"

	"gatehouse/actors/account"
)

func TestMessageTexts(t *testing.T) {
	service := strings.Repeat("i", 36) + ".com"
	for channel, kinds := range map[account.Channel][]account.Kind{
		account.SMS: {account.PhoneCode, account.ChangeCode, account.AccountExists,
			account.AddressLeft},
		account.Email: {account.RegisterCode, account.ResetCode, account.ChangeCode,
			account.BrowserCode, account.AccountExists, account.NoAccount, account.AddressLeft,
			account.ManyAttempts},
	} {
		for _, kind := range kinds {
			m := account.Message{Channel: channel, To: "ada@example.com", Kind: kind}
			wants := []string{service, "If this was not you, ignore"}
			switch kind {
			case account.AddressLeft:
				wants[1] = "If you did not change it, tell"
			case account.ManyAttempts:
				wants[1] = "choose another one"
			}
			if kind.HasCode() {
				m.Code = "271828"
				wants = append(wants, "271828", "5 minutes")
			}
			got := compose(m, service)
			for _, want := range wants {
				if !strings.Contains(got.body, want) {
					t.Errorf("%s by %s: got %q, want %q in it", kind, channel, got.body, want)
				}
			}
			if strings.Contains(got.body, "minutes") != kind.HasCode() {
				t.Errorf("%s by %s: got %q, want an expiry only with a code", kind, channel,
					got.body)
			}
			if email := channel == account.Email; email != (got.subject != "") ||
				strings.Contains(got.subject, "271828") {
				t.Errorf("%s by %s: got subject %q", kind, channel, got.subject)
			}
			if length := len(got.body); channel == account.SMS && length > 160 {
				t.Errorf("%s: got %d characters, want at most 160", kind, length)
			}
		}
	}
}
