package httpedge

import (
	_ "embed"

	"github.com/valyala/fasthttp"
)

const pathOpenAPI = "/openapi.yaml"

// openAPI describes the public endpoints and those of the admin listener (OpenAPI 3.1).
//
//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the OpenAPI document of all endpoints. The caller must not change it.
func OpenAPI() []byte { return openAPI }

var contentTypeYAML = []byte("application/yaml")

// showOpenAPI serves GET /openapi.yaml.
func showOpenAPI(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetContentTypeBytes(contentTypeYAML)
	ctx.Response.SetBodyRaw(openAPI)
}
