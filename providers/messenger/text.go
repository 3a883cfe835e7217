package messenger

import (
	"fmt"
	"time"

	"gatehouse/actors/account"
)

// text is the text of a message. A text message (SMS) has no subject.
type text struct{ subject, body string }

// compose returns the text of m. service is the public name of the service.
func compose(m account.Message, service string) text {
	if m.Channel == account.SMS {
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
	case account.AccountExists:
		return "Someone tried to use this number at " + service +
			". It has an account: sign in with a code." + ignore
	case account.AddressLeft:
		return "The number of your account at " + service +
			" was changed. If you did not change it, tell " + service + "."
	case account.LongCode:
		return m.Code + " is your code for " + service + ". " + longExpiry + " Tell it to nobody."
	}
	return m.Code + " is your code for " + service + ". " + expiry + ignore
}

func longText(m account.Message, service string) text {
	const ignore = "\n\nIf this was not you, ignore this message.\n"
	code := "Your code for " + service + " is " + m.Code + ". " + expiry + "\n\n"
	switch m.Kind {
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
	case account.AddressLeft:
		return text{"Your account at " + service,
			"The email address of your account at " + service +
				" was changed. It is no longer this one.\n\n" +
				"If you did not change it, tell the operators of " + service +
				" at once: someone else is using your account.\n"}
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
