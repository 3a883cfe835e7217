package messenger

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gatehouse/actors/account"
	"gatehouse/actors/texts"
)

func TestMessageTexts(t *testing.T) {
	service := strings.Repeat("i", 36) + ".com"
	every, err := texts.Load(texts.Options{Drafts: true})
	if err != nil {
		t.Fatal(err)
	}
	for channel, kinds := range map[account.Channel][]account.Kind{
		account.SMS: {account.PhoneCode, account.ChangeCode, account.AccountExists, account.ProofCode,
			account.FactorCode, account.ManyFactorAttempts},
		account.Email: {account.RegisterCode, account.ResetCode, account.ChangeCode,
			account.BrowserCode, account.AccountExists, account.NoAccount,
			account.ManyAttempts},
	} {
		for _, kind := range kinds {
			m := account.Message{Channel: channel, To: "ada@example.com", Kind: kind}
			wants := []string{service, "If this was not you, ignore"}
			switch kind {
			case account.ManyAttempts:
				wants[1] = "choose another one"
			case account.ProofCode:
				wants[1] = "tell it to nobody"
			case account.FactorCode:
				wants[1] = "change it"
			case account.ManyFactorAttempts:
				wants[1] = "set a new password"
			}
			if kind.HasCode() {
				m.Code = "271828"
				wants = append(wants, "271828", "5 minutes")
			}
			got := composer{service, "", texts.Default()}.compose(m)
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
			for _, l := range every.All() {
				m.Language = l.Tag
				got := composer{service, "", every}.compose(m).body
				if length := utf8.RuneCountInString(got); channel == account.SMS &&
					(length > 160 || !isGSM(l, got)) || !strings.Contains(got, m.Code) {
					t.Errorf("%s in %s: got %d characters: %s", kind, l.Tag, length, got)
				}
			}
		}
	}
}

// isGSM reports whether one text message holds 160 characters of text: it has no letter of a language
// without a script of its own that the GSM alphabet lacks.
func isGSM(l *texts.Language, text string) bool {
	return l.Tag == "ar" || l.Tag == "ja" || !strings.ContainsAny(text, "áíóúýâêîôûãõçëïœÁÍÓÚÂÊÎÔÛÃÕ’‘“”«»–…\u00a0\u202f")
}

// TestWhoAskedIsSaid reads mails and text messages with a code: the app, the browser and the place, and
// the line that binds the code to the pages. Nothing is longer than one text message.
func TestWhoAskedIsSaid(t *testing.T) {
	every, err := texts.Load(texts.Options{Drafts: true})
	if err != nil {
		t.Fatal(err)
	}
	m := account.Message{Channel: account.Email, Kind: account.ResetCode, Code: "271828", App: "evil.example",
		Browser: texts.DeviceNear("Chrome on Linux", "London, United Kingdom")}
	got := composer{"Atlas", "id.example", every}.compose(m).body
	if want := "It was requested for evil.example, with Chrome on Linux, near London, United Kingdom."; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
	for _, l := range every.All() {
		for _, host := range []string{"id.example", strings.Repeat("i", 36) + ".com"} {
			for _, kind := range []account.Kind{account.PhoneCode, account.ProofCode} {
				m := account.Message{Channel: account.SMS, Kind: kind, Code: "271828", App: "Atlas",
					Language: l.Tag}
				got := composer{host, host, every}.compose(m).body
				length := utf8.RuneCountInString(got)
				if !strings.HasSuffix(got, "\n@"+host+" #271828") || length > 160 || !isGSM(l, got) ||
					!strings.HasPrefix(got, "271828") && l.Tag == "en" {
					t.Errorf("%s in %s: got %d characters: %q", kind, l.Tag, length, got)
				}
				if host == "id.example" && !strings.Contains(got, "Atlas") && kind == account.PhoneCode {
					t.Errorf("%s in %s: got %q, want the app", kind, l.Tag, got)
				}
			}
		}
	}
}

// TestNoticeTexts checks that each notice says what, when, how often, by whom, and what to do.
func TestNoticeTexts(t *testing.T) {
	at := time.Date(2026, 5, 3, 12, 4, 0, 0, time.UTC)
	seen := map[string]account.Kind{}
	for _, kind := range account.Notices {
		for _, channel := range []account.Channel{account.SMS, account.Email} {
			m := account.Message{Channel: channel, Kind: kind, At: at, Count: 3,
				Browser: "Firefox on Linux", Link: "https://id.example/link?token=x"}
			got := composer{"id.example", "", texts.Default()}.compose(m).body
			for _, want := range []string{"At id.example, ", "3 times", "3 May 2026, 12:04 UTC",
				"with Firefox on Linux", "If this was not you, ", m.Link} {
				if !strings.Contains(got, want) {
					t.Errorf("%s by %s: got %q, want %q in it", kind, channel, got, want)
				}
			}
			if other, ok := seen[got]; ok {
				t.Errorf("%s by %s: got the text of %s", kind, channel, other)
			}
			seen[got] = kind
			m.ByOperator, m.Link, m.Count = true, "", 1
			got = composer{"id.example", "", texts.Default()}.compose(m).body
			if !strings.Contains(got, "by the people who run id.example") ||
				!strings.Contains(got, "If this is wrong, tell") || strings.Contains(got, "times") {
				t.Errorf("%s by %s: got %q, want what an operator did", kind, channel, got)
			}
		}
	}
}
