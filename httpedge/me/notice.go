package me

import (
	"strconv"
	"strings"
	"time"

	"gatehouse/httpedge/visit"
)

// notice is a success message for the next page.
type notice byte

// The notices of the account's page.
const (
	noticeSaved notice = iota + 1
	noticePassword
	noticeEmail
	noticePhone
	noticeAppRemoved
	noticeSessionEnded
	noticeSessionsEnded
	noticeDeleted
	noticePhoneSignIn
	noticePasswordOnly
	noticeEmailRemoved
	noticePhoneRemoved
)

var noticeTexts = map[notice]string{
	noticeSaved:         "Your profile is saved.",
	noticePassword:      "Your password is changed. You are signed out everywhere else, and apps have to ask you to sign in again.",
	noticeEmail:         "Your email address is changed.",
	noticePhone:         "Your phone number is changed.",
	noticeAppRemoved:    "The app can no longer use your account.",
	noticeSessionEnded:  "The session is ended.",
	noticeSessionsEnded: "All other sessions are ended.",
	noticePhoneSignIn:   "A code to your phone can now replace your password.",
	noticeEmailRemoved:  "Your email address is removed.",
	noticePhoneRemoved:  "Your phone number is removed.",
	noticePasswordOnly:  "Only your password signs you in now.",
}

const (
	noticeLifetime = time.Minute
	paramNotice    = "done"
)

// toNotice returns path, which may have a query, with a notice. It is valid for a minute, in this
// browser only.
func toNotice(v *visit.Visit, path string, n notice) string {
	separator := "?"
	if strings.Contains(path, separator) {
		separator = "&"
	}
	return path + separator + paramNotice + "=" + v.Bind("notice").Seal([]byte{byte(n)}, v.Now)
}

// noticed returns the notice in the URL of the request; 0 = none.
func noticed(v *visit.Visit) notice {
	payload, _, ok := v.Bind("notice").Open(string(v.HTTP.QueryArgs().Peek(paramNotice)), 1,
		noticeLifetime, v.Now)
	if !ok {
		return 0
	}
	return notice(payload[0])
}

// notice returns the text of the notice in the URL of the request.
func (p *person) notice() string { return noticeTexts[noticed(p.Visit)] }

// day formats the day of t, in UTC.
func day(t time.Time) string { return t.UTC().Format("2 January 2006") }

// ago formats how long before now t was, and the day of t after a week; "" = never.
func ago(t, now time.Time) string {
	age := now.Sub(t)
	switch {
	case t.IsZero():
		return ""
	case age < 2*time.Minute:
		return "just now"
	case age < time.Hour:
		return strconv.Itoa(int(age/time.Minute)) + " minutes ago"
	case age < 2*time.Hour:
		return "an hour ago"
	case age < 24*time.Hour:
		return strconv.Itoa(int(age/time.Hour)) + " hours ago"
	case age < 48*time.Hour:
		return "a day ago"
	case age < 7*24*time.Hour:
		return strconv.Itoa(int(age/(24*time.Hour))) + " days ago"
	}
	return day(t)
}
