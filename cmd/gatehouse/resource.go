package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// resourceCommand is gatehouse resource.
type resourceCommand struct {
	Create resourceCreate `cmd:"" help:"Register an API of yours that takes access tokens of this service."`
	List   resourceList   `cmd:"" help:"List the resources."`
	Show   resourceShow   `cmd:"" help:"Show a resource, with the metadata document that it can serve."`
	Delete resourceDelete `cmd:"" help:"Delete a resource; tokens for it end."`
}

// Help is shown by gatehouse resource --help.
func (*resourceCommand) Help() string {
	return "Example:\n\n    gatehouse resource create --demo ./gatehouse-demo --uri https://notes.example/api --scope notes:read\n" +
		"    gatehouse resource list --demo ./gatehouse-demo"
}

const pathResources = "/admin/v1/resources"

type resourceCreate struct {
	remoteFlags
	URI   string   `name:"uri" required:"" placeholder:"URI" help:"URI that clients send as resource: https, or http on this machine. It is the audience of its tokens."`
	Name  string   `name:"name" placeholder:"NAME" help:"What people read in place of the URI."`
	Scope []string `name:"scope" sep:"none" placeholder:"SCOPE[=TEXT]" help:"Scope that only this resource has, and what people read of it (default: the scope). May be repeated."`
}

// Help is shown by gatehouse resource create --help.
func (*resourceCreate) Help() string {
	return "Example:\n\n    gatehouse resource create --demo ./gatehouse-demo --uri https://notes.example/v2 --name Notes --scope \"notes:read=Read your notes\" --scope notes:write"
}

// Run registers a resource.
func (c *resourceCreate) Run(p *program) error {
	body := map[string]any{"uri": c.URI}
	var scopes []string
	texts := map[string]string{}
	for _, scope := range c.Scope {
		name, text, described := strings.Cut(scope, "=")
		if !described {
			scopes = append(scopes, strings.Fields(scope)...)
			continue
		}
		scopes, texts[name] = append(scopes, name), text
	}
	setList(body, "scopes", scopes)
	if c.Name != "" {
		body["name"] = c.Name
	}
	if len(texts) > 0 {
		body["scope_texts"] = texts
	}
	return c.act(p, http.MethodPost, pathResources, body)
}

type resourceList struct{ remoteFlags }

// Help is shown by gatehouse resource list --help.
func (*resourceList) Help() string {
	return "Example:\n\n    gatehouse resource list --demo ./gatehouse-demo"
}

// Run lists the resources.
func (c *resourceList) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	return r.list(pathResources, "resources", []column{
		member("NUMBER", "number"), member("URI", "uri"), member("NAME", "name"), member("SCOPES", "scopes"),
	}, "")
}

// resourceArg names a resource.
type resourceArg struct {
	Resource string `arg:"" name:"resource" help:"URI or number of the resource."`
}

// path returns the path of the resource in the admin API.
func (a *resourceArg) path(r *remote) (string, error) {
	if _, err := strconv.ParseUint(a.Resource, 10, 16); err == nil {
		return pathResources + "/" + a.Resource, nil
	}
	for after := ""; ; {
		response, err := r.call(http.MethodGet, pathResources+"?limit=200&after="+after, nil)
		if err != nil {
			return "", err
		}
		var page struct {
			Resources []struct {
				Number int    `json:"number"`
				URI    string `json:"uri"`
			} `json:"resources"`
			Next string `json:"next"`
		}
		if err := json.Unmarshal(response, &page); err != nil {
			return "", fmt.Errorf("read list: %w", err)
		}
		for _, known := range page.Resources {
			if known.URI == a.Resource {
				return pathResources + "/" + strconv.Itoa(known.Number), nil
			}
		}
		if after = page.Next; after == "" {
			return "", fmt.Errorf("there is no resource %q", a.Resource)
		}
	}
}

// resourceExample returns an example of a command about one resource, which it registers first.
func resourceExample(command string) string {
	uri := "https://" + command + ".example/api"
	return "Example:\n\n    gatehouse resource create --demo ./gatehouse-demo --uri " + uri + "\n" +
		"    gatehouse resource " + command + " --demo ./gatehouse-demo " + uri
}

type resourceShow struct {
	remoteFlags
	resourceArg
}

// Help is shown by gatehouse resource show --help.
func (*resourceShow) Help() string {
	return "The member metadata of the output of --json is a document for the resource to serve (RFC 9728).\n" +
		"Its path is /.well-known/oauth-protected-resource, followed by the path of the URI.\n\n" +
		resourceExample("show") + " --json"
}

// Run shows a resource.
func (c *resourceShow) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	path, err := c.path(r)
	if err != nil {
		return err
	}
	response, err := r.call(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if r.json {
		return printJSON(p.stdout, response)
	}
	return r.showResource(response)
}

// showResource prints a resource, and the document for it to serve.
func (r *remote) showResource(response json.RawMessage) error {
	var shown struct {
		Number      int             `json:"number"`
		URI         string          `json:"uri"`
		Name        string          `json:"name,omitempty"`
		Scopes      []string        `json:"scopes"`
		Texts       json.RawMessage `json:"scope_texts,omitempty"`
		CreatedAt   string          `json:"created_at"`
		Metadata    json.RawMessage `json:"metadata,omitempty"`
		MetadataURL string          `json:"metadata_url"`
	}
	if err := json.Unmarshal(response, &shown); err != nil {
		return fmt.Errorf("print response: %w", err)
	}
	document := shown.Metadata
	shown.Metadata = nil
	record, err := json.Marshal(shown)
	if err != nil {
		return fmt.Errorf("print response: %w", err)
	}
	if err := printRecord(r.p.stdout, record); err != nil {
		return err
	}
	if err := r.say("\nServe this document at metadata_url, so that clients find this service:"); err != nil {
		return err
	}
	return printJSON(r.p.stdout, document)
}

type resourceDelete struct {
	remoteFlags
	resourceArg
}

// Help is shown by gatehouse resource delete --help.
func (*resourceDelete) Help() string { return resourceExample("delete") }

// Run deletes a resource.
func (c *resourceDelete) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	path, err := c.path(r)
	if err != nil {
		return err
	}
	return c.end(p, http.MethodDelete, path, nil, "deleted",
		map[string]any{"uri": c.Resource, "deleted": true})
}
