package people

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/actors/trace"
)

// PathLink is the path of the page that the links of notices lead to. Its parameter is token.
const PathLink = "/link"

// contact is where a notice goes.
type contact struct {
	channel account.Channel
	address string
}

// contactsOf returns the channels of users to which notices are sent, each once.
func (s *Service) contactsOf(users ...*account.User) (all []contact) {
	for _, u := range users {
		for _, c := range []contact{{account.Email, u.Email}, {account.SMS, u.Phone}} {
			if c.address != "" && s.reaches(c) && !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// reaches reports whether messages are sent to c.
func (s *Service) reaches(c contact) bool {
	if !s.Channels().Has(c.channel) {
		return false
	}
	return c.channel != account.SMS || account.CheckSMS(c.address, s.config.SMSCountries) == nil
}

// noticesTo returns a notice about u for each of its channels.
func (s *Service) noticesTo(
	ctx context.Context, u *account.User, kind account.Kind, now time.Time,
) (all []account.Notice) {
	for _, c := range s.contactsOf(u) {
		all = append(all, s.notice(ctx, u, c, kind, now))
	}
	return all
}

// noticesOf returns the notices about changes of credentials from old to u, for all old and new
// channels. A channel that has left gets a link that restores it, unless an operator or a link has
// made the change, a settled second factor has confirmed it, or the channel was there for too short a
// time to be trusted.
func (s *Service) noticesOf(
	ctx context.Context, old, u *account.User, changes []credential, a authority, now time.Time,
) (all []account.Notice) {
	kinds := kindsOf(changes, a)
	for _, c := range s.contactsOf(u) {
		for _, kind := range kinds {
			all = append(all, s.notice(ctx, u, c, kind, now))
		}
	}
	for _, c := range changes {
		if c.left == nil {
			continue
		}
		channel, address, since := c.left(old)
		gone := contact{channel, address}
		if !s.reaches(gone) {
			continue
		}
		n := s.notice(ctx, u, gone, account.AddressLeft, now)
		n.Since = since
		if a.kind == asLink {
			n.Kind = account.ChangeUndone
		}
		if a.kind == asLink || a.kind == asOperator || a.byFactor(old, now) ||
			!old.IsSettled(account.WayOf(channel), now) {
			n.Seed, n.Link = "", [32]byte{}
		}
		all = append(all, n)
	}
	return all
}

// kindsOf returns the kinds of the notices about changes.
func kindsOf(changes []credential, a authority) (kinds []account.Kind) {
	switch a.kind {
	case asLink:
		return []account.Kind{account.ChangeUndone}
	case asRecovery:
		return []account.Kind{account.PasswordRecovered}
	}
	for _, c := range changes {
		kinds = append(kinds, c.notice)
	}
	return kinds
}

// notice returns a notice with a link.
func (s *Service) notice(
	ctx context.Context, u *account.User, to contact, kind account.Kind, now time.Time,
) account.Notice {
	seed := rand.Text()
	source := audit.SourceOf(ctx)
	return account.Notice{
		UserID: u.ID, Channel: to.channel, To: to.address, Kind: kind, Made: now, At: now, Count: 1,
		Browser: texts.DeviceNear(source.Browser, source.Place), ByOperator: source.ByOperator(), Language: languageOf(ctx, u),
		Seed: seed, Link: oauth.HashOf(linkToken(&s.known.keys()[0], seed)),
	}
}

// languageOf returns the language of messages to u: what the person chose, or else that of the page
// which caused the message.
func languageOf(ctx context.Context, u *account.User) string {
	return cmp.Or(u.Language, audit.SourceOf(ctx).Language)
}

// SetLanguage keeps the language that the person u chose, for pages and messages. The error is
// account.ErrBusy or a failure.
func (s *Service) SetLanguage(ctx context.Context, u *account.User, tag string) error {
	if u.Language == tag {
		return nil
	}
	return s.config.Store.SetLanguage(ctx, u.ID, tag)
}

// linkToken returns the token of a link: 256 bits that nobody can tell from the seed. So the database
// has no token, and every process can send a notice that another has made.
func linkToken(key *oauth.Key, seed string) string {
	mac := hmac.New(sha256.New, key.Secret[:])
	mac.Write([]byte("link of a notice " + seed))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Message returns the message of a notice. It has no link if the key is gone from which the token
// was derived.
func (s *Service) Message(n *account.Notice) account.Message {
	m := account.Message{
		Channel: n.Channel, To: n.To, Kind: n.Kind, At: n.At, Count: n.Count, Browser: n.Browser,
		ByOperator: n.ByOperator, Language: n.Language, Trace: trace.OfMark(n.ID),
	}
	if n.Seed == "" {
		return m
	}
	for _, key := range s.known.keys() {
		if token := linkToken(&key, n.Seed); oauth.HashOf(token) == n.Link {
			path := PathLink
			if n.Kind == account.InvitationSent {
				path = PathInvitation
			}
			m.Link = s.config.Issuer + path + "?token=" + token
		}
	}
	return m
}
