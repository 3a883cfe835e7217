package visit

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// A form with wrong fields is answered by a redirect to the page of the form, so that the browser
// neither asks nor sends it again when the person goes back or loads the page again. What was entered
// and what is wrong with it travels in a cookie, sealed, for a short time; no secret is among it.

const (
	// paramAgain names the cookie's content, so that it is shown on no other page or tab.
	paramAgain    = "again"
	againLifetime = 5 * time.Minute
	maxAgain      = 3 << 10 // bytes of the cookie: browsers keep 4 KiB
)

// secretFields are the fields that no page shows again.
var secretFields = []string{fieldFormToken, "password", "current_password", "new_password", "code",
	"token"}

// retry is a form that has to be sent again.
type retry struct {
	Name     string `json:"n"` // value of paramAgain
	Path     string `json:"p"` // of its page
	Fields   []oauth.Parameter
	Problems pages.Problems
}

type retryKey struct{}

// retryOf returns what the browser has to send again on this page; nil = nothing.
func retryOf(ctx *fasthttp.RequestCtx) *retry {
	r, _ := ctx.UserValue(retryKey{}).(*retry)
	return r
}

func (s *Site) againBinding(ctx *fasthttp.RequestCtx) Binding {
	return Binding{s.keys, string(ctx.Request.Header.Cookie(s.cookies.secret)), paramAgain, ""}
}

// openRetry reads the cookie of a page that is shown again, and returns the fields.
func (s *Site) openRetry(ctx *fasthttp.RequestCtx, now time.Time) []oauth.Parameter {
	name := string(ctx.QueryArgs().Peek(paramAgain))
	if name == "" || s.keys == nil {
		return nil
	}
	sealed := string(ctx.Request.Header.Cookie(s.cookies.again))
	size := base64url.DecodedLen(len(sealed)) - 8 - macSize
	if len(sealed) > maxAgain || size < 0 {
		return nil
	}
	payload, _, ok := s.againBinding(ctx).Open(sealed, size, againLifetime, now)
	var r retry
	if !ok || json.Unmarshal(payload, &r) != nil || r.Name != name || r.Path != string(ctx.Path()) {
		return nil
	}
	ctx.SetUserValue(retryKey{}, &r)
	return r.Fields
}

// again redirects to the page of the form that p shows, after a form with wrong fields. It returns
// false when the browser cannot keep what was entered; then the page is the response.
func (s *Site) again(ctx *fasthttp.RequestCtx, status int, p pages.Page) bool {
	// A browser answers a challenge once: the page with a new one is the response.
	if ctx.PostArgs().Has(fieldCredential) {
		return false
	}
	if !ctx.IsPost() || status != fasthttp.StatusUnprocessableEntity || s.keys == nil ||
		!isBrowserSecret(string(ctx.Request.Header.Cookie(s.cookies.secret))) {
		return false
	}
	form, _ := pages.FormOf(p)
	all, ok := endpoint.ParseParameters(ctx.PostBody())
	if !ok || form.Path == "" {
		return false
	}
	path, _, _ := strings.Cut(form.Path, "?")
	r := retry{Name: newBrowserSecret()[:8], Path: path, Problems: *form.Problems,
		Fields: slices.DeleteFunc(slices.Clone(all), func(f oauth.Parameter) bool {
			return slices.Contains(secretFields, f.Name) && (f.Name != "code" || !keepsCode(p))
		})}
	payload, err := json.Marshal(r)
	if err != nil || base64.RawURLEncoding.EncodedLen(len(payload)+8+macSize) > maxAgain {
		return false
	}
	s.cookies.write(ctx, s.cookies.again, []string{s.againBinding(ctx).Seal(payload, time.Now())},
		againLifetime)
	Redirect(ctx, AddParameter(form.Path, paramAgain, r.Name))
	return true
}

// keepsCode reports whether p asks for more after the right code, which is sent once more with that.
func keepsCode(p pages.Page) bool {
	verify, ok := p.(pages.Verify)
	return ok && verify.Entered != ""
}

// isAgain reports whether the response leads to the page of the form once more.
func isAgain(ctx *fasthttp.RequestCtx) bool {
	return strings.Contains(string(ctx.Response.Header.Peek(fasthttp.HeaderLocation)),
		paramAgain+"=")
}

// asSent returns the page and the status that GET shows: with what is wrong, after a redirect of
// again.
func asSent(ctx *fasthttp.RequestCtx, status int, p pages.Page) (int, pages.Page) {
	r := retryOf(ctx)
	if r == nil || ctx.IsPost() || status != fasthttp.StatusOK {
		return status, p
	}
	form, ok := pages.FormOf(p)
	if path, _, _ := strings.Cut(form.Path, "?"); !ok || path != r.Path || len(*form.Problems) > 0 {
		return status, p
	}
	*form.Problems = r.Problems
	if len(r.Problems) == 0 {
		return status, form.Page
	}
	return fasthttp.StatusUnprocessableEntity, form.Page
}
