// Command mcpclient is an agent that asks a Model Context Protocol server, and signs its user in
// where that server says.
package main

import (
	"context"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"programs/app"
)

// agent has one user.
type agent struct {
	config *auth.AuthorizationCodeHandlerConfig
	pages  chan string                    // where the browser has to go
	codes  chan *auth.AuthorizationResult // what it brings back
	done   chan result
}

type result struct {
	said string
	err  error
}

// ask calls the tool of the server.
func (a *agent) ask(ctx context.Context) (said string, err error) {
	handler, err := auth.NewAuthorizationCodeHandler(a.config)
	if err != nil {
		return "", err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: os.Getenv("MCP_SERVER"), OAuthHandler: handler}, nil)
	if err != nil {
		return "", err
	}
	defer session.Close()
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "whoami"})
	if err != nil {
		return "", err
	}
	return answer.Content[0].(*mcp.TextContent).Text, nil
}

func main() {
	a := &agent{pages: make(chan string), codes: make(chan *auth.AuthorizationResult),
		done: make(chan result, 1)}
	back := app.Base + "/callback"
	a.config = &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back, RequestRefreshToken: true,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (
			*auth.AuthorizationResult, error) {
			a.pages <- args.URL
			return <-a.codes, nil
		},
	}
	if document := os.Getenv("CLIENT_METADATA"); document != "" {
		a.config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: document}
	} else {
		a.config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "Go agent",
				RedirectURIs: []string{back}, TokenEndpointAuthMethod: "none",
				GrantTypes: []string{"authorization_code", "refresh_token"}},
		}
	}
	http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		go func() {
			said, err := a.ask(context.Background())
			a.done <- result{said, err}
		}()
		select {
		case page := <-a.pages:
			http.Redirect(w, r, page, http.StatusFound)
		case end := <-a.done:
			app.Fail(w, end.err)
		}
	})
	http.HandleFunc("/callback", func(w http.ResponseWriter, r *http.Request) {
		a.codes <- &auth.AuthorizationResult{Code: r.FormValue("code"),
			State: r.FormValue("state"), Iss: r.FormValue("iss")}
		end := <-a.done
		if end.err != nil {
			app.Fail(w, end.err)
			return
		}
		app.Show(w, map[string]string{"said": end.said})
	})
	app.Listen()
}
