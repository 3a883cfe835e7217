package messenger

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"gatehouse/actors/account"
)

// text is the text of a message. A text message (SMS) has no subject.
type text struct{ subject, body string }

// compose returns the text of m. service is the public name of the service.
func compose(m account.Message, service string) text {
	switch {
	case slices.Contains(account.Notices, m.Kind):
		return noticeText(m, service)
	case m.Channel == account.SMS:
		return text{body: shortText(m, service)}
	}
	return longText(m, service)
}

// expiry tells when a code expires.
var expiry = fmt.Sprintf("It expires in %d minutes.", account.CodeLifetime/time.Minute)

// longExpiry tells when a long code expires.
var longExpiry = fmt.Sprintf("It works for %d hours, in any browser.",
	account.LongCodeLifetime/time.Hour)

// shortText fits into one text message of 160 characters if service has at most 40.
func shortText(m account.Message, service string) string {
	const ignore = " If this was not you, ignore it."
	switch m.Kind {
	case account.ProofCode:
		return m.Code + " is your code to change how you sign in to " + service + ". " + expiry +
			" If this was not you, tell it to nobody."
	case account.AccountExists:
		return "Someone tried to use this number at " + service +
			". It has an account: sign in with a code." + ignore
	case account.LongCode:
		return m.Code + " is your code for " + service + ". " + longExpiry + " Tell it to nobody."
	}
	return m.Code + " is your code for " + service + ". " + expiry + ignore
}

func longText(m account.Message, service string) text {
	const ignore = "\n\nIf this was not you, ignore this message.\n"
	code := "Your code for " + service + " is " + m.Code + ". " + expiry + "\n\n"
	switch m.Kind {
	case account.ProofCode:
		return text{"Your code for " + service,
			code + "Enter it on the page that asks for it, to change how you sign in.\n\n" +
				"If this was not you, someone else is signed in to your account: tell the code to nobody, " +
				"and set a new password.\n"}
	case account.RegisterCode:
		return text{"Your code for " + service,
			code + "Enter it on the page where you registered to create your account." + ignore}
	case account.ResetCode:
		return text{"Your code for " + service,
			code + "Enter it on the page where you requested a new password." + ignore}
	case account.BrowserCode:
		return text{"Your code for " + service,
			code + "Enter it on the page where you tried to sign in. " +
				"Then enter your password there." + ignore}
	case account.LongCode:
		return text{"Your code for " + service,
			"Your code for " + service + " is " + m.Code + ". " + longExpiry + "\n\n" +
				"Enter it on the page that asks for a code. Tell it to nobody.\n\n" +
				"Many codes were requested for this address. This is the last message with one " +
				"today, so keep it if you want to use " + service + "." + ignore}
	case account.AccountExists:
		return text{"Your account at " + service,
			"Someone, perhaps you, tried to use this address at " + service +
				". It already has an account: sign in with it, or request a new password if you have forgotten yours." + ignore}
	case account.NoAccount:
		return text{"No account at " + service,
			"Someone, perhaps you, requested a code to sign in, or for a new password, at " + service +
				". There is no account with this address. Perhaps you registered with another one." +
				ignore}
	case account.ManyAttempts:
		return text{"Your account at " + service,
			"Someone entered many wrong passwords for your account at " + service +
				". Further attempts are limited now. To sign in with a new browser, " +
				"you may need a code that we send to this address.\n\n" +
				"If you use the same password elsewhere, choose another one. " +
				"Otherwise there is nothing to do.\n"}
	}
	return text{"Your code for " + service, code + "Enter it on the page where you requested it." +
		ignore}
}

// noticeWords say what has happened, after "At SERVICE, ".
var noticeWords = map[account.Kind]string{
	account.AddressLeft:        "your account left this address",
	account.PasswordChanged:    "your password was changed",
	account.PasswordSet:        "a password was set for your account",
	account.PasswordRecovered:  "a new password was set with a code",
	account.EmailAdded:         "an email address was added to your account",
	account.EmailChanged:       "the email address of your account was changed",
	account.EmailRemoved:       "the email address was removed from your account",
	account.PhoneAdded:         "a phone number was added to your account",
	account.PhoneChanged:       "the phone number of your account was changed",
	account.PhoneRemoved:       "the phone number was removed from your account",
	account.PhoneSignInAllowed: "codes to the phone were allowed in place of your password",
	account.PhoneSignInEnded:   "codes to the phone no longer replace your password",
	account.ChangeUndone:       "a change of how you sign in was undone",
	account.NewBrowser:         "someone signed in to your account with a new browser",
	account.AccountDeleted:     "your account was deleted",
}

// noticeTime is the form of the times in notices, in UTC.
const noticeTime = "2 January 2006, 15:04 UTC"

// noticeText returns the text of a notice: what, how often, when, in which browser, by whom, and
// what to do if that was somebody else.
func noticeText(m account.Message, service string) text {
	what := noticeWords[m.Kind]
	if m.Kind == account.AddressLeft && m.Channel == account.SMS {
		what = "your account left this number"
	}
	if m.Count > 1 {
		what += " " + strconv.Itoa(m.Count) + " times in the last hour, at last"
	}
	what += " on " + m.At.UTC().Format(noticeTime)
	switch {
	case m.ByOperator:
		what += ", by the people who run " + service
	case m.Browser != "":
		what += ", with " + m.Browser
	}
	if m.Channel == account.SMS {
		return text{body: "At " + service + ", " + what + ". " + noticeAdvice(m, service)}
	}
	return text{"Your account at " + service,
		"At " + service + ", " + what + ".\n\n" + noticeAdvice(m, service) + "\n"}
}

// noticeAdvice says what to do about a notice.
func noticeAdvice(m account.Message, service string) string {
	const notYou = "If this was not you, "
	space := "\n\n"
	if m.Channel == account.SMS {
		space = " "
	}
	switch {
	case m.Link == "" && m.ByOperator:
		return "If this is wrong, tell the people who run " + service + "."
	case m.Link == "":
		return notYou + "tell the people who run " + service + " at once."
	case m.Kind == account.AddressLeft:
		return notYou + "undo it within 3 days:" + space + m.Link
	}
	return notYou + "sign out everybody and get your account back:" + space + m.Link
}
