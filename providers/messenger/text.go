package messenger

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/actors/account"
	"gatehouse/actors/texts"
)

// text is the text of a message. A text message (SMS) has no subject.
type text struct {
	subject  string
	body     string
	language *texts.Language
}

// composer writes messages in the language of each recipient.
type composer struct {
	service   string // its public name
	host      string // of its pages, without a port
	languages *texts.Set
}

// compose returns the text of m.
func (c composer) compose(m account.Message) text {
	l := c.languages.Of(m.Language)
	if l == nil {
		l = c.languages.Initial()
	}
	// say returns the text of a key, which may have the slots service, code and n.
	say := func(key string) string {
		return l.Plain(texts.Of(key, "service", c.service, "code", m.Code, "n", lifetimeOf(m.Kind)))
	}
	switch isSMS := m.Channel == account.SMS; {
	case slices.Contains(account.Notices, m.Kind):
		return text{c.subject(m, say), noticeText(m, l, c.service, say), l}
	case m.Kind == account.InvitationSent:
		return text{say("mail.invitation_subject"), say("mail.invitation") + "\n\n" + m.Link + "\n\n" +
			say("mail.invitation_ignore") + "\n", l}
	case isSMS:
		return text{"", c.short(m, l, say), l}
	}
	var paragraphs []string
	for _, keys := range longKeys(m.Kind) {
		var sentences []string
		for _, key := range keys {
			sentences = append(sentences, say("mail."+key))
		}
		paragraphs = append(paragraphs, strings.Join(sentences, l.Between()))
	}
	if asked := askedText(m, l); asked != "" {
		paragraphs = slices.Insert(paragraphs, 1, asked)
	}
	return text{c.subject(m, say), strings.Join(paragraphs, "\n\n") + "\n", l}
}

// maxShort limits a text message, in characters: longer ones come in parts.
const maxShort = 160

// short returns a text message. A code ends with the line by which phones fill it in on the pages of
// the service alone (Origin-bound one-time codes). What does not fit is left out: the app first, then
// what to do with a message that is a mistake.
func (c composer) short(m account.Message, l *texts.Language, say func(string) string) string {
	all := []string{say(shortKey(m.Kind))}
	if m.Kind.HasCode() && m.Kind != account.LongCode {
		line := ""
		if c.host != "" {
			line = "\n@" + c.host + " #" + m.Code
		}
		app := l.Between() + l.Plain(texts.Of("sms.app", "app", m.App))
		if m.App == "" {
			app = ""
		}
		all = []string{all[0] + app + line, all[0] + line, say("sms.short_code") + line, all[0]}
	}
	for _, body := range all {
		if utf8.RuneCountInString(body) <= maxShort {
			return body
		}
	}
	return all[len(all)-1]
}

// askedText says which app and browser asked for a mail; "" = that is not known.
func askedText(m account.Message, l *texts.Language) string {
	browser := texts.Device(m.Browser)
	switch {
	case m.Kind == account.ManyAttempts || m.Browser == "":
		return ""
	case m.App != "":
		return l.Plain(texts.Of("mail.asked_for", "app", m.App, "browser", browser))
	}
	return l.Plain(texts.Of("mail.asked", "browser", browser))
}

// lifetimeOf returns how long a code works, in minutes, or in hours if it is a long one; 0 = there
// is none.
func lifetimeOf(kind account.Kind) int {
	if kind == account.LongCode {
		return int(kind.Lifetime() / time.Hour)
	}
	return int(kind.Lifetime() / time.Minute)
}

// shortKey returns the key of a text message.
func shortKey(kind account.Kind) string {
	switch kind {
	case account.ProofCode, account.FactorCode, account.AccountExists, account.LongCode,
		account.ManyFactorAttempts:
		return "sms." + string(kind)
	}
	return "sms.code"
}

// subject returns the subject of a mail; "" for a text message.
func (c composer) subject(m account.Message, say func(string) string) string {
	switch {
	case m.Channel == account.SMS:
		return ""
	case m.Kind == account.NoAccount:
		return say("mail.none_subject")
	case m.Kind.HasCode():
		return say("mail.code_subject")
	}
	return say("mail.account_subject")
}

// longKeys returns the keys of a mail, without "mail.": those of each paragraph.
func longKeys(kind account.Kind) [][]string {
	switch kind {
	case account.ProofCode:
		return [][]string{{"code"}, {"enter_proof"}, {"not_you_proof"}}
	case account.FactorCode:
		return [][]string{{"code"}, {"enter_factor"}, {"not_you_factor"}}
	case account.ManyFactorAttempts:
		return [][]string{{"many_factor_attempts"}, {"many_factor_advice"}}
	case account.RegisterCode:
		return [][]string{{"code"}, {"enter_register"}, {"ignore"}}
	case account.ResetCode:
		return [][]string{{"code"}, {"enter_reset"}, {"ignore"}}
	case account.BrowserCode:
		return [][]string{{"code"}, {"enter_browser"}, {"ignore"}}
	case account.LongCode:
		return [][]string{{"code_for_hours"}, {"enter_long"}, {"last_today"}, {"ignore"}}
	case account.AccountExists:
		return [][]string{{"account_exists"}, {"ignore"}}
	case account.NoAccount:
		return [][]string{{"no_account"}, {"ignore"}}
	case account.ManyAttempts:
		return [][]string{{"many_attempts"}, {"many_attempts_advice"}}
	}
	return [][]string{{"code"}, {"enter"}, {"ignore"}}
}

// noticeText returns the text of a notice: what, how often, when, in which browser or by whom, and
// what to do if that was somebody else.
func noticeText(m account.Message, l *texts.Language, service string,
	say func(string) string) string {
	what := "notice." + string(m.Kind)
	if m.Kind == account.AddressLeft && m.Channel == account.SMS {
		what = "notice.number_left"
	}
	key := "notice.once"
	if m.Count > 1 {
		key = "notice.often"
	}
	switch {
	case m.ByOperator:
		key += "_operator"
	case m.Browser != "":
		key += "_browser"
	}
	happened := l.Plain(texts.Of(key, "service", service, "what", texts.Of(what), "n", m.Count,
		"time", texts.Moment(m.At), "browser", texts.Device(m.Browser)))
	space := "\n\n"
	if m.Channel == account.SMS {
		space = " "
	}
	advice := say("notice.secure")
	switch {
	case m.Link == "" && m.ByOperator:
		advice = say("notice.wrong_operator")
	case m.Link == "":
		advice = say("notice.not_you")
	case m.Kind == account.AddressLeft:
		advice = say("notice.undo") + space + m.Link
	default:
		advice += space + m.Link
	}
	if m.Channel == account.SMS {
		return happened + l.Between() + advice
	}
	return happened + space + advice + "\n"
}
