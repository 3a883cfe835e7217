package adminapi

import (
	"strconv"

	"gatehouse/actors/oauth"
)

// resourceRecord is a resource as the admin API shows it.
type resourceRecord struct {
	Number    uint16   `json:"number"`
	URI       string   `json:"uri"`
	Scopes    []string `json:"scopes"`
	CreatedAt string   `json:"created_at"`
	Name      string   `json:"name,omitempty"`
	// ScopeTexts are what people read of scopes.
	ScopeTexts map[string]string `json:"scope_texts,omitempty"`
	Claims     []string          `json:"claims,omitempty"` // that JWTs for it have
	Set        string            `json:"set,omitempty"`
	Declared   bool              `json:"declared,omitempty"`
	// MetadataURL is where the resource serves Metadata; both of one resource alone.
	MetadataURL string                   `json:"metadata_url,omitempty"`
	Metadata    *oauth.ProtectedResource `json:"metadata,omitempty"`
}

func newResourceRecord(r *oauth.Resource) resourceRecord {
	return resourceRecord{Number: r.Number, URI: r.URI, Scopes: orEmpty(r.Scopes),
		CreatedAt: timestamp(r.Created), Name: r.Name, ScopeTexts: r.Texts, Claims: r.Claims,
		Set: r.Set, Declared: r.Declared}
}

func listResources(c *adminCall) (any, error) {
	text, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	after, err := strconv.ParseUint("0"+text, 10, 16)
	if err != nil {
		return nil, errAfter
	}
	known, err := c.tokens.Resources(c.context)
	if err != nil {
		return nil, err
	}
	page := struct {
		Resources []resourceRecord `json:"resources"`
		Next      string           `json:"next"` // the parameter after of the next page; "" = none
	}{Resources: []resourceRecord{}}
	for _, r := range known.All() {
		if r.Number <= uint16(after) {
			continue
		}
		if len(page.Resources) == limit {
			page.Next = strconv.Itoa(int(page.Resources[limit-1].Number))
			break
		}
		page.Resources = append(page.Resources, newResourceRecord(&r))
	}
	return page, nil
}

func resourcePath(number uint16) string {
	return pathAdminResources + "/" + strconv.Itoa(int(number))
}

func createResource(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	var r oauth.Resource
	o.resource(&r)
	if err := o.end(); err != nil {
		return nil, err
	}
	created, err := c.tokens.CreateResource(c.context, r, c.now)
	if err != nil {
		return nil, err
	}
	c.created(resourcePath(created.Number))
	return newResourceRecord(&created), nil
}

// resource applies to r the members that describe a resource.
func (o *object) resource(r *oauth.Resource) {
	o.text("uri", &r.URI)
	o.texts("scopes", &r.Scopes)
	o.text("name", &r.Name)
	o.member("scope_texts", "must be an object of texts by scope", &r.Texts)
	if o.texts("claims", &r.Claims); len(r.Claims) == 0 {
		r.Claims = nil // as a Store returns it
	}
	if len(r.Texts) == 0 {
		r.Texts = nil // as a Store returns it
	}
}

// resource returns the resource in the path.
func (c *adminCall) resource() (r oauth.Resource, err error) {
	text := c.pathValue("number")
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || strconv.FormatUint(number, 10) != text {
		return r, oauth.ErrNotFound
	}
	known, err := c.tokens.Resources(c.context)
	if err != nil {
		return r, err
	}
	r, ok := known.Find(uint16(number))
	if !ok {
		return r, oauth.ErrNotFound
	}
	return r, nil
}

// showResource shows a resource with the metadata document that it can serve.
func showResource(c *adminCall) (any, error) {
	r, err := c.resource()
	if err != nil {
		return nil, err
	}
	record := newResourceRecord(&r)
	record.MetadataURL = oauth.ResourceMetadataURL(r.URI)
	record.Metadata = oauth.NewProtectedResource(r.URI, c.tokens.Issuer(), r.Scopes)
	return record, nil
}

func deleteResource(c *adminCall) (any, error) {
	r, err := c.resource()
	if err != nil {
		return nil, err
	}
	return nil, c.tokens.DeleteResource(c.context, r)
}
