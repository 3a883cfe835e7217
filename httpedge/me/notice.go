package me

import (
	"strings"
	"time"

	"gatehouse/actors/texts"
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
	noticePasskeyAdded
	noticePasskeyRenamed
	noticePasskeyRemoved
	noticeAppGone
	noticeConnectionRemoved
)

var noticeKeys = map[notice]string{
	noticeSaved: "me.saved", noticePassword: "password.changed",
	noticeEmail: "address.email_changed", noticePhone: "address.phone_changed",
	noticeAppRemoved: "apps.removed", noticeSessionEnded: "sessions.ended",
	noticeSessionsEnded: "sessions.others_ended", noticePhoneSignIn: "phonesignin.allowed",
	noticeEmailRemoved: "address.email_removed", noticePhoneRemoved: "address.phone_removed",
	noticePasswordOnly: "phonesignin.ended", noticePasskeyAdded: "passkey.added",
	noticePasskeyRenamed: "passkey.renamed", noticePasskeyRemoved: "passkey.removed",
	noticeAppGone:           "factors.removed",
	noticeConnectionRemoved: "connections.removed",
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

// notice returns the text of the notice in the URL of the request; nil = none.
func (p *person) notice() texts.Text {
	key, ok := noticeKeys[noticed(p.Visit)]
	if !ok {
		return nil
	}
	return texts.Of(key)
}
