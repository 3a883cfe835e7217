// Command mcpserver is a Model Context Protocol server with one tool. It serves the document that
// describes it (RFC 9728) as it gets it, and introspects tokens.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"programs/app"
)

// introspection is what the issuer says of a token (RFC 7662 section 2.2).
type introspection struct {
	Active bool     `json:"active"`
	Scope  string   `json:"scope"`
	Sub    string   `json:"sub"`
	Aud    []string `json:"aud"`
	Exp    int64    `json:"exp"`
}

func introspect(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	form := url.Values{"token": {token}, "client_id": {app.ID}, "client_secret": {app.Secret}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, app.Issuer+"/oauth/introspect",
		strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var said introspection
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return nil, err
	}
	if !said.Active || !slices.Contains(said.Aud, app.Base+"/mcp") {
		return nil, errors.Join(auth.ErrInvalidToken, errors.New("the token is for somebody else"))
	}
	return &auth.TokenInfo{Scopes: strings.Fields(said.Scope), UserID: said.Sub,
		Expiration: time.Unix(said.Exp, 0)}, nil
}

func main() {
	base := app.Base
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami", Description: "Says whose notes these are."},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (
			*mcp.CallToolResult, any, error) {
			said := "notes of " + r.Extra.TokenInfo.UserID
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	const described = "/.well-known/oauth-protected-resource/mcp"
	guard := auth.RequireBearerToken(introspect, &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: base + described, Scopes: []string{"notes:read"}})
	http.Handle("/mcp", guard(handler))
	http.HandleFunc(described, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(os.Getenv("RESOURCE_METADATA"))) // the client may have gone
	})
	app.Listen()
}
