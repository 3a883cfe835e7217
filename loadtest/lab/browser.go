package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"
)

// maxRedirects is how many redirects Open follows.
const maxRedirects = 8

// Browser opens the pages of one service and submits their forms, as a browser without scripts
// does. It keeps cookies by their names alone. It is safe for concurrent use.
type Browser struct {
	Base   string       // URL of the service, without a slash at its end
	Client *http.Client // with a jar that ignores URLs
}

// NewBrowser returns a browser without cookies. Browsers may share a transport.
func NewBrowser(base string, transport http.RoundTripper) *Browser {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Browser{strings.TrimSuffix(base, "/"),
		&http.Client{Transport: transport, Jar: &jar{}, CheckRedirect: stay}}
}

// Copy returns a browser with the same cookies. Each keeps its own from then on.
func (b *Browser) Copy() *Browser {
	client := *b.Client
	client.Jar = &jar{all: b.Client.Jar.Cookies(nil)}
	return &Browser{b.Base, &client}
}

// Page is a response to a Browser.
type Page struct {
	Status    int
	Header    http.Header
	Body      string
	Path      string // of the request, with its query
	To        string // where it redirects to; "" = nowhere
	Redirects []int  // the statuses of the redirects that led here, and of its own
}

// Open requests a path, with a form unless that is nil, and follows redirects within the service.
// Headers are name, value, name, value…; they go with each request.
func (b *Browser) Open(ctx context.Context, method, path string, form url.Values,
	headers ...string) (*Page, error) {
	var redirects []int
	for range maxRedirects {
		p, err := b.Do(ctx, method, path, form, headers...)
		if err != nil {
			return nil, err
		}
		redirects = append(redirects, p.Redirects...)
		p.Redirects = redirects
		if path = strings.TrimPrefix(p.To, b.Base); !strings.HasPrefix(path, "/") {
			return p, nil
		}
		method, form = http.MethodGet, nil
	}
	return nil, fmt.Errorf("too many redirects, at last to %s", path)
}

// Do is Open for one request, without redirects.
func (b *Browser) Do(ctx context.Context, method, path string, form url.Values,
	headers ...string) (*Page, error) {
	request, err := http.NewRequestWithContext(ctx, method, b.Base+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("open a page: %w", err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.Client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("open a page: %w", err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	p := &Page{Status: response.StatusCode, Header: response.Header, Body: string(body), Path: path,
		To: response.Header.Get("Location")}
	if p.To != "" {
		p.Redirects = []int{p.Status}
	}
	return p, nil
}

// Submit opens the action of a page's first form, with changed fields: name, value, name, value…;
// an empty value removes a field.
func (b *Browser) Submit(ctx context.Context, p *Page, changes ...string) (*Page, error) {
	forms := p.Forms()
	if len(forms) == 0 {
		return nil, fmt.Errorf("got status %d at %s to %q, want a page with a form", p.Status,
			p.Path, p.To)
	}
	return b.Open(ctx, http.MethodPost, forms[0].Action, forms[0].With(changes...))
}

// Form is a form of a page.
type Form struct {
	Action string
	Fields url.Values // without buttons and checkboxes
}

// With changes fields and returns them: name, value, name, value…; an empty value removes a field.
func (f Form) With(changes ...string) url.Values {
	for i := 0; i < len(changes); i += 2 {
		f.Fields.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			f.Fields.Del(changes[i])
		}
	}
	return f.Fields
}

// Forms returns the page's forms.
func (p *Page) Forms() []Form {
	root, err := html.Parse(strings.NewReader(p.Body))
	if err != nil {
		return nil // never: a Reader of a string does not fail
	}
	var all []Form
	for n := range root.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case n.Data == "form":
			all = append(all, Form{attribute(n, "action"), url.Values{}})
		case len(all) == 0:
		case n.Data == "input" && attribute(n, "type") != "checkbox":
			all[len(all)-1].Fields.Set(attribute(n, "name"), attribute(n, "value"))
		case n.Data == "textarea":
			var text strings.Builder
			for c := range n.Descendants() {
				text.WriteString(c.Data)
			}
			all[len(all)-1].Fields.Set(attribute(n, "name"), text.String())
		}
	}
	return all
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// jar keeps cookies by their names, whatever their URL is.
type jar struct {
	mu  sync.Mutex
	all []*http.Cookie
}

// SetCookies implements http.CookieJar.
func (j *jar) SetCookies(_ *url.URL, cookies []*http.Cookie) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range cookies {
		kept := make([]*http.Cookie, 0, len(j.all)+1)
		for _, old := range j.all {
			if old.Name != c.Name {
				kept = append(kept, old)
			}
		}
		ends := c.MaxAge < 0 || !c.Expires.IsZero() && c.Expires.Before(time.Now())
		if j.all = kept; !ends {
			j.all = append(kept, &http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
}

// Cookies implements http.CookieJar. The slice is not changed later.
func (j *jar) Cookies(*url.URL) []*http.Cookie {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all
}
