package httpedge

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/brand"
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
		all = append(all, endpoint.Endpoint{Pattern: pages.PathChangePassword, Methods: get,
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
	return func(ctx *fasthttp.RequestCtx) {
		h := &ctx.Response.Header
		h.Set(fasthttp.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set(fasthttp.HeaderCacheControl, "public, max-age=86400")
		h.SetContentType(image.Type)
		ctx.Response.SetBodyRaw(image.Data)
	}
}

// changePassword leads password managers to the page for a new password (A Well-Known URL for
// Changing Passwords).
func changePassword(ctx *fasthttp.RequestCtx) {
	visit.Redirect(ctx, pages.PathMePassword)
	ctx.SetStatusCode(fasthttp.StatusSeeOther)
}
