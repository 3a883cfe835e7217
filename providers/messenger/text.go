package messenger

import (
	"fmt"
	"time"

	"gatehouse/actors/account"
)

// text is what a person reads. Text messages have no subject.
type text struct{ subject, body string }

// compose returns what m says. service is what people know the service by.
func compose(m account.Message, service string) text {
	if m.Channel == account.SMS {
		return text{body: shortText(m, service)}
	}
	return longText(m, service)
}

// lasts is how long a code can be used, in words.
var lasts = fmt.Sprintf("%d minutes", account.CodeLifetime/time.Minute)

// shortText fits into one text message of 160 characters as long as the service's name has no more than 40.
func shortText(m account.Message, service string) string {
	const ignore = " If this was not you, ignore it."
	if m.Kind == account.AccountExists {
		return "Somebody wanted to use this number at " + service + ". It has an account: sign in with a code." + ignore
	}
	if m.Kind == account.AddressLeft {
		return "Your account at " + service + " has another number now. If you did not change it, tell " + service + "."
	}
	return m.Code + " is your code for " + service + ". It lasts " + lasts + "." + ignore
}

func longText(m account.Message, service string) text {
	const ignore = "\n\nIf this was not you, ignore this message.\n"
	code := "Your code for " + service + " is " + m.Code + ". It lasts " + lasts + ".\n\n"
	switch m.Kind {
	case account.RegisterCode:
		return text{"Your code for " + service, code + "Enter it on the page where you registered, and your account is made." + ignore}
	case account.ResetCode:
		return text{"Your code for " + service, code + "Enter it on the page where you asked for a new password." + ignore}
	case account.AccountExists:
		return text{"Your account at " + service, "Somebody, perhaps you, wanted to use this address at " + service +
			". It belongs to an account there already: sign in with it, or ask for a new password if you have forgotten yours." + ignore}
	case account.NoAccount:
		return text{"No account at " + service, "Somebody, perhaps you, asked for a new password at " + service +
			". There is no account with this address: perhaps you have registered with another one." + ignore}
	case account.AddressLeft:
		return text{"Your account at " + service, "The email address of your account at " + service + " was changed. It is no longer this one.\n\n" +
			"If you did not change it, tell the people who run " + service + " at once: somebody else uses your account.\n"}
	}
	return text{"Your code for " + service, code + "Enter it on the page where you asked for it." + ignore}
}
