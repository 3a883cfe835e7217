package me

import (
	"gatehouse/actors/texts"
	"gatehouse/httpedge/visit"
)

// The notices of the account's page.
const (
	noticeSaved visit.Notice = iota + 1
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
	noticeAppAdded
	noticeKeyAdded
)

var noticeKeys = map[visit.Notice]string{
	noticeSaved: "me.saved", noticePassword: "password.changed",
	noticeEmail: "address.email_changed", noticePhone: "address.phone_changed",
	noticeAppRemoved: "apps.removed", noticeSessionEnded: "sessions.ended",
	noticeSessionsEnded: "sessions.others_ended", noticePhoneSignIn: "phonesignin.allowed",
	noticeEmailRemoved: "address.email_removed", noticePhoneRemoved: "address.phone_removed",
	noticePasswordOnly: "phonesignin.ended", noticePasskeyAdded: "passkey.added",
	noticePasskeyRenamed: "passkey.renamed", noticePasskeyRemoved: "passkey.removed",
	noticeAppGone:           "factors.removed",
	noticeConnectionRemoved: "connections.removed",
	noticeAppAdded:          "factors.added",
	noticeKeyAdded:          "factors.key_added",
	visit.NoticeRecovered:   "password.recovered",
}

// notice returns the text of the notice in the URL of the request; nil = none.
func (p *person) notice() texts.Text {
	key, ok := noticeKeys[p.Noticed()]
	if !ok {
		return nil
	}
	return texts.Of(key)
}
