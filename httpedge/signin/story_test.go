package signin_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/brand"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/messenger"
)

// reader is a person who reads one language only.
type reader struct {
	*testing.T
	stacktest.Reachable
	language string
	letters  *letters
}

// letters sends each message to a Mailbox, and keeps what a person reads of it.
type letters struct {
	account.CodeSender
	written *messenger.Messenger
	mu      sync.Mutex
	all     []string
}

// Send implements account.CodeSender.
func (l *letters) Send(ctx context.Context, m account.Message) error {
	if err := l.written.Send(ctx, m); err != nil {
		return err
	}
	return l.CodeSender.Send(ctx, m)
}

// newReader returns a reader of a service whose name is Atlas.
func newReader(t *testing.T, language string) *reader {
	all, err := texts.Load(texts.Options{Drafts: true})
	stacktest.Must(t, err)
	l := &letters{}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Channel, To, Subject, Text string }
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &m) != nil {
			t.Errorf("got %s, %v, want a message", body, err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, m.Channel+" to "+m.To+"\n"+m.Subject+"\n"+m.Text)
	}))
	target, err := messenger.ParseTarget(hook.URL)
	stacktest.Must(t, err)
	l.written, err = messenger.New(messenger.Config{Targets: []messenger.Target{target},
		Secret: strings.Repeat("s", 64), Languages: all, Logger: slog.New(slog.DiscardHandler),
		Brand: brand.Brand{Name: "Atlas", Host: "atlas.example"}})
	stacktest.Must(t, err)
	st := stacktest.NewReachable(t, func(c *stack.Config) {
		c.Languages, c.Brand.Name = all, "Atlas"
		l.CodeSender, c.Identity.Sender = c.Identity.Sender, l
	})
	t.Cleanup(hook.Close) // before the service, which looks for goroutines
	t.Cleanup(l.written.Close)
	return &reader{t, st, language, l}
}

// browser returns a browser in which the person has chosen the language.
func (r *reader) browser() *stacktest.Browser {
	b := r.NewBrowser(r.T)
	b.Once("POST", "/login", stacktest.Values("language", r.language))
	return b
}

// reads checks that a page is there, in the language.
func (r *reader) reads(p stacktest.Page, path string, texts ...string) stacktest.Page {
	r.Helper()
	p.Shows(r.T, p.Status, path)
	if p.Status >= 500 || !strings.Contains(p.Body, `<html lang="`+r.language+`"`) {
		r.Fatalf("got %d %s, want a page in %s", p.Status, p.Body, r.language)
	}
	p.Says(r.T, texts...)
	return p
}

// code returns the code of the next message to an address.
func (r *reader) code(to string) string {
	r.Helper()
	m := r.Mail.Next(r.T, to)
	if m.Language != r.language {
		r.Errorf("got a message in %q, want %s", m.Language, r.language)
	}
	return m.Code
}

// changesPassword confirms with a code to an address first: the account was recovered today.
func (r *reader) changesPassword(b *stacktest.Browser, old, next, to string) {
	r.Helper()
	p := b.Send(b.Get("/me/password"), "current_password", old, "new_password", next)
	r.reads(p, "/me/confirm/verify")
	p = r.reads(b.Send(p, "code", r.code(to)), "/me/password")
	r.reads(b.Send(p, "new_password", next), "/me")
}

// opens looks at pages of an account.
func (r *reader) opens(b *stacktest.Browser, paths ...string) {
	r.Helper()
	for _, path := range paths {
		page := b.Get(path)
		if page.Status != 200 {
			r.Errorf("%s: got %d", path, page.Status)
			continue
		}
		r.reads(page, strings.SplitN(page.Path, "?", 2)[0])
	}
}

// leaves deletes the account after a code to the first of its addresses, and returns all messages of
// the person's days once the last has come.
func (r *reader) leaves(b *stacktest.Browser, password string, addresses ...string) []string {
	r.Helper()
	p := b.Send(b.Get("/me/delete"), "confirm", "delete", "current_password", password)
	r.reads(p, "/me/confirm/verify")
	p = r.reads(b.Send(p, "code", r.code(addresses[0])), "/me/delete")
	r.reads(b.Send(p, "confirm", "delete"), "/me/deleted")
	for _, to := range addresses {
		r.Mail.Notice(r.T, to, account.AccountDeleted)
	}
	r.letters.mu.Lock()
	defer r.letters.mu.Unlock()
	for _, letter := range r.letters.all {
		r.Log(letter)
	}
	return r.letters.all
}

var accountPages = []string{"/me", "/me/profile", "/me/apps", "/me/sessions", "/me/history", "/me/data",
	"/me/password", "/me/email", "/me/delete", "/accounts", "/logout", "/device", "/login", "/reset"}

// TestPersonWhoReadsOnlyGerman registers, consents, looks at the account, recovers it, changes the
// password and deletes the account. Each page and message is German.
func TestPersonWhoReadsOnlyGerman(t *testing.T) {
	r := newReader(t, "de")
	c := r.NewClient(t, nil)
	b := r.browser()
	p := b.Register("/register?"+c.Request().Encode(), ida)
	r.reads(p, "/register/verify", "Sehen Sie in Ihr Postfach", "6 Ziffern")
	if strings.Contains(p.Body, "lange") {
		t.Errorf("got %s, want no word of long codes before one is sent", p.Body)
	}
	r.reads(b.Send(p, "code", "000000"), "/register/verify")
	p = r.reads(b.Send(p, "code", r.code(ida)), "/consent", "Zulassen")
	b.Send(p, "decision", "allow").Code(t, r.IdentityStack)
	r.opens(b, accountPages...)

	away := r.browser()
	p = r.reads(away.Send(away.Get("/reset"), "email", ida), "/reset/verify")
	sent := r.code(ida)
	p = r.reads(away.Send(p, "code", sent, "password", "short"), "/reset/verify", "mindestens")
	p = away.Send(p, "code", sent, "password", "quiet tidal lamps")
	r.reads(p, "/me", "Ihr neues Passwort ist gesetzt")
	r.reads(b.Get("/me"), "/login", "Anmelden")
	r.reads(b.Send(b.Get("/login"), "email", ida, "password", "quiet tidal lamps"), "/me")
	r.changesPassword(b, "quiet tidal lamps", "loud tidal lamps", ida)
	for _, letter := range r.leaves(b, "loud tidal lamps", ida) {
		if !strings.Contains(letter, "Sie") {
			t.Errorf("got %s, want it in German", letter)
		}
	}
}

// TestPersonOnPhoneWhoReadsOnlyArabic registers with a number, consents, looks at the account, adds an
// address, recovers the account, changes the password and deletes the account. Each page runs from
// right to left, and each message is Arabic.
func TestPersonOnPhoneWhoReadsOnlyArabic(t *testing.T) {
	r := newReader(t, "ar")
	c := r.NewClient(t, func(c *oauth.Client) { c.Name = "Atlas Maps" })
	b := r.browser()
	p := b.Send(b.Get("/register/phone?"+c.Request().Encode()), "phone_number", idaPhone)
	r.reads(p, "/register/phone/verify", `dir="rtl"`)
	p = r.reads(b.Send(p, "code", r.code(idaPhone)), "/register/phone/verify")
	p = r.reads(b.Send(p, "name", "عائدة"), "/consent", "عائدة")
	b.Send(p, "decision", "allow").Code(t, r.IdentityStack)
	r.opens(b, accountPages...)

	p = r.reads(b.Send(b.Get("/me/email"), "channel", "sms"), "/me/confirm/verify")
	p = r.reads(b.Send(p, "code", r.code(idaPhone)), "/me/email")
	p = r.reads(b.Send(p, "email", ida), "/me/email/verify")
	r.reads(b.Send(p, "code", r.code(ida)), "/me")

	away := r.browser()
	p = r.reads(away.Send(away.Get("/reset"), "email", ida), "/reset/verify")
	p = r.reads(away.Send(p, "code", r.code(ida), "password", "quiet tidal lamps"), "/reset/confirm")
	r.reads(away.Send(p, "code", r.code(idaPhone)), "/me")
	r.changesPassword(away, "quiet tidal lamps", "loud tidal lamps", idaPhone)
	latin := regexp.MustCompile(`[A-Za-z]{2,}`)
	link := regexp.MustCompile(`https?://\S+|@atlas\.example|UTC|Atlas( Maps)?`)
	for _, letter := range r.leaves(away, "loud tidal lamps", idaPhone, ida) {
		_, read, _ := strings.Cut(letter, "\n")
		if words := latin.FindAllString(link.ReplaceAllString(read, ""), -1); words != nil {
			t.Errorf("got %s, with the words %q", letter, words)
		}
	}
}
