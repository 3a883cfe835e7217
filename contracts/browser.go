package contracts

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"gatehouse/loadtest/lab"
)

// maxPages limits the pages of one authorization.
const maxPages = 10

// serveBrowser responds to an authorization request with the end of the authorization, for which a
// signed-in person submits each page.
func serveBrowser(w http.ResponseWriter, r *http.Request, f *fixture) {
	b := lab.NewBrowser(f.base(authorizePath).String(), transport)
	cookies, _ := f.values["cookie"].(string)
	_, session, _ := strings.Cut(cookies, "=")
	b.Client.Jar.SetCookies(nil, []*http.Cookie{{Name: sessionCookie, Value: session}})
	page, err := f.authorize(r.Context(), b, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	maps.Copy(w.Header(), page.Header)
	w.WriteHeader(page.Status)
	_, _ = w.Write([]byte(page.Body)) // the verifier notices a truncated body
}

// authorize sends the authorization request r. It continues until the service redirects the browser
// elsewhere or shows a page without a form, and returns that.
func (f *fixture) authorize(ctx context.Context, b *lab.Browser, r *http.Request) (*lab.Page,
	error) {
	var headers []string
	for name, values := range r.Header {
		headers = append(headers, name, values[0])
	}
	page, err := b.Do(ctx, r.Method, r.URL.RequestURI(), nil, headers...)
	for range maxPages {
		switch {
		case err != nil:
			return nil, err
		case strings.HasPrefix(page.To, "/"):
			page, err = b.Do(ctx, http.MethodGet, page.To, nil)
			continue
		case page.To != "" || page.Status != http.StatusOK:
			return page, nil
		}
		if forms := page.Forms(); len(forms) == 0 || !forms[0].Fields.Has("form_token") {
			return page, nil
		}
		page, err = b.Submit(ctx, page, "decision", f.decision, "account",
			strconv.FormatInt(f.user.ID, 10))
	}
	return nil, fmt.Errorf("the authorization has more than %d pages", maxPages)
}
