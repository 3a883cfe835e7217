package httpedge

import (
	"context"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/brand"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// faceEndpoints returns the endpoints of what every page shows.
func (s *Server) faceEndpoints(get []string) []endpoint.Endpoint {
	all := []endpoint.Endpoint{
		{Pattern: pages.PathLogo, Methods: get, Handle: showImage(s.view.Logo())},
		{Pattern: pages.PathIcon, Methods: get, Handle: showImage(s.view.Icon())},
	}
	if s.config.Tokens != nil {
		all = append(all, endpoint.Endpoint{Pattern: pages.PathAppLogo, Methods: get,
			Handle: s.showAppLogo}, endpoint.Endpoint{Pattern: pages.PathChangePassword, Methods: get,
			Format: endpoint.Page, Handle: changePassword})
	}
	return all
}

// showImage returns a handler that serves a picture of the operator. A browser that opens it alone
// runs and loads nothing.
func showImage(image *brand.Image) fasthttp.RequestHandler {
	if image == nil {
		return notFound
	}
	return func(ctx *fasthttp.RequestCtx) { writeImage(ctx, image) }
}

func writeImage(ctx *fasthttp.RequestCtx, image *brand.Image) {
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(fasthttp.HeaderCacheControl, "public, max-age=86400")
	h.SetContentType(image.Type)
	ctx.Response.SetBodyRaw(image.Data)
}

// imageDeadline is how long the picture of an app may take.
const imageDeadline = 2 * time.Second

// showAppLogo serves the picture of the app in the path. It has one only while people see the app by
// its name.
func (s *Server) showAppLogo(ctx *fasthttp.RequestCtx) {
	id, _ := ctx.UserValue("id").(string)
	if !oauth.IsClientID(id) {
		notFound(ctx)
		return
	}
	deadline, cancel := context.WithTimeout(context.Background(), imageDeadline)
	defer cancel()
	logo, err := s.config.Tokens.Logo(deadline, strings.Clone(id))
	if err != nil {
		if problem := endpoint.ProblemOf(err); problem.Unexpected {
			s.failures.Log("read the picture of an app", err, endpoint.Attributes(ctx)...)
		}
		endpoint.WriteError(ctx, endpoint.JSON, err)
		return
	}
	writeImage(ctx, &brand.Image{Type: logo.Type, Data: logo.Data})
}

// changePassword leads password managers to the page for a new password (A Well-Known URL for
// Changing Passwords).
func changePassword(ctx *fasthttp.RequestCtx) {
	visit.Redirect(ctx, pages.PathMePassword)
	ctx.SetStatusCode(fasthttp.StatusSeeOther)
}
