package visit

import "time"

// Notice is a success message for the next page. The groups of endpoints have their own; this package
// has that which another group shows.
type Notice byte

// NoticeRecovered says that a new password was set with a code.
const NoticeRecovered Notice = 255

const (
	noticeLifetime = time.Minute
	paramNotice    = "done"
)

// WithNotice returns path, which may have a query, with a notice. It is valid for a minute, in this
// browser only.
func (v *Visit) WithNotice(path string, n Notice) string {
	return AddParameter(path, paramNotice, v.notices().Seal([]byte{byte(n)}, v.Now))
}

// Noticed returns the notice in the URL of the request; 0 = none.
func (v *Visit) Noticed() Notice {
	payload, _, ok := v.notices().Open(string(v.HTTP.QueryArgs().Peek(paramNotice)), 1,
		noticeLifetime, v.Now)
	if !ok {
		return 0
	}
	return Notice(payload[0])
}

// notices is for no request of a client: the page after it has none.
func (v *Visit) notices() Binding { return Binding{v.keys, v.Secret, "notice", ""} }
