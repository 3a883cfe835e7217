package visit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// formSent is a form as a browser with that secret sends it.
func formSent(secret string) *fasthttp.RequestCtx {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI("/register/verify")
	ctx.Request.SetBodyString("code=271828")
	ctx.Request.Header.SetCookie("secret", secret)
	return &ctx
}

// TestReplayAndCoalesce sends a form while it is answered, and later: what it leads to is told
// again only for so long.
func TestReplayAndCoalesce(t *testing.T) {
	s := &Site{replays: newReplays(), cookies: cookieNames{secret: "secret"}}
	mine, another := newBrowserSecret(), newBrowserSecret()
	for _, test := range []struct {
		name  string
		make  func(fasthttp.RequestHandler) fasthttp.RequestHandler
		after map[time.Duration]int // how often the form was handled by then
	}{
		{"together", s.Coalesce, map[time.Duration]int{0: 3, time.Second: 3}},
		{"once", s.Replay, map[time.Duration]int{0: 2, time.Second: 2, 3 * time.Second: 3}},
	} {
		for wait, want := range test.after {
			synctest.Test(t, func(t *testing.T) {
				handled, release := 0, make(chan struct{})
				handle := test.make(func(ctx *fasthttp.RequestCtx) {
					handled++
					<-release
					s.cookies.write(ctx, "session", []string{"made"}, time.Hour)
					Redirect(ctx, "/me")
				})
				var forms []*fasthttp.RequestCtx
				for _, secret := range []string{mine, mine, another} {
					form := formSent(secret)
					forms = append(forms, form)
					go handle(form)
					synctest.Wait()
				}
				if handled != 1 {
					t.Errorf("%s: got the form handled %d times while the first is, want once",
						test.name, handled)
				}
				close(release)
				synctest.Wait()
				if handled != 2 {
					t.Errorf("%s: got the form handled %d times, want it for each browser",
						test.name, handled)
				}
				for i, form := range forms {
					if got := string(form.Response.Header.PeekCookie(
						"session")); form.Response.StatusCode() != 303 || got == "" {
						t.Errorf("%s: got %d and cookie %q for form %d, want the first response",
							test.name, form.Response.StatusCode(), got, i)
					}
				}
				time.Sleep(wait)
				synctest.Wait()
				handle(formSent(mine))
				if handled != want {
					t.Errorf("%s: got the form handled %d times after %v more, want %d", test.name,
						handled, wait, want)
				}
				time.Sleep(time.Minute)
			})
		}
	}
}
