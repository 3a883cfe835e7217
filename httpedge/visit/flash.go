package visit

import "time"

const (
	flashLifetime = 5 * time.Minute
	maxFlash      = 3800 // bytes of the cookie: browsers keep 4096 with its name and attributes
)

// Flash keeps what the page after a redirect shows once, encrypted in a cookie: so a secret is in no
// URL. It returns false when that is too long.
func (s *Site) Flash(v *Visit, b Binding, payload []byte) bool {
	hidden := b.Hide(payload, v.Now)
	if len(hidden) > maxFlash {
		return false
	}
	s.cookies.write(v.HTTP, s.cookies.flash, []string{hidden}, flashLifetime)
	return true
}

// TakeFlash returns what Flash kept for this page, and forgets it; nil = nothing.
func (s *Site) TakeFlash(v *Visit, b Binding) []byte {
	hidden := string(v.HTTP.Request.Header.Cookie(s.cookies.flash))
	if hidden == "" || v.HTTP.IsHead() {
		return nil
	}
	s.cookies.write(v.HTTP, s.cookies.flash, nil, 0)
	payload, _ := b.Reveal(hidden, flashLifetime, v.Now)
	return payload
}
