package adminapi

import (
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// putClient registers the client in the path as the request describes it, or replaces its record.
func putClient(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	dry, err := c.dryRun()
	if err != nil {
		return nil, err
	}
	client, err := describedClient(o, c.now)
	if err != nil {
		return nil, err
	}
	client.ID = c.pathValue("id")
	if err := client.CheckID(); err != nil {
		return nil, err
	}
	put, created, err := c.tokens.PutClient(c.context, client, dry, c.now)
	if err != nil {
		return nil, err
	}
	if created && !dry {
		c.created(pathAdminClients + "/" + put.ID)
	}
	return c.clientRecord(put), nil
}

// DescribedClient returns the client that a JSON object describes with the members of a PUT request.
// The error is account.FieldErrors or a *oauth.RegistrationError.
func DescribedClient(text []byte, id string, now time.Time) (*oauth.Client, error) {
	o, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	d, err := describedClient(o, now)
	if err != nil {
		return nil, err
	}
	c := d.Client
	c.ID, c.Created = id, now
	for _, check := range []func() error{c.CheckID, c.CheckRegistration, c.CheckNewName} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

func describedClient(o *object, now time.Time) (oauth.ClientDescription, error) {
	d := oauth.ClientDescription{Client: newClient(o)}
	d.KeepsDisabled = !o.member("disabled", "must be true or false", &d.Disabled)
	o.setName(&d.Options.Set)
	o.secrets(&d.Secrets, now)
	return d, o.end()
}

// longestSet is the longest name of a set of objects in bytes.
const longestSet = 100

// setName sets *to to the member set, the name of a set of objects.
func (o *object) setName(to *string) {
	if o.text("set", to) && len(*to) > longestSet {
		o.refuse("set", "must have at most 100 bytes")
	}
}

// secrets sets *to to the secrets of the member secrets: each is one that gatehouse made, or its
// hash.
func (o *object) secrets(to *[]oauth.Secret, now time.Time) {
	const must = "must be a list of objects, each with secret or hash"
	var list []map[string]string
	if !o.member("secrets", must, &list) {
		return
	}
	*to = []oauth.Secret{}
	for _, given := range list {
		secret, isSecret := given["secret"]
		text, isHash := given["hash"]
		hash, ok := oauth.ParseHash(text)
		switch {
		case len(given) != 1 || isSecret == isHash:
			o.refuse("secrets", must)
		case isSecret && !oauth.LooksLikeClientSecret(secret):
			o.refuse("secrets", "must be made by gatehouse secret")
		case isSecret:
			hash, ok = oauth.HashOf(secret), true
		case !ok:
			o.refuse("secrets", "must have a hash as gatehouse export writes it")
		}
		for _, other := range *to {
			if other.Hash == hash && ok {
				o.refuse("secrets", "must be different")
			}
		}
		*to = append(*to, oauth.KeptSecret(hash, now))
	}
}

// DescribedResource is DescribedClient for a resource.
func DescribedResource(text []byte, now time.Time) (*oauth.Resource, error) {
	o, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	r, err := describedResource(o)
	if err != nil {
		return nil, err
	}
	r.Created = now
	return &r, r.CheckRegistration()
}

func describedResource(o *object) (r oauth.Resource, err error) {
	o.resource(&r)
	o.setName(&r.Set)
	return r, o.end()
}

// putResource registers a resource, or replaces the one with its URI.
func putResource(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	dry, err := c.dryRun()
	if err != nil {
		return nil, err
	}
	r, err := describedResource(o)
	if err != nil {
		return nil, err
	}
	put, created, err := c.tokens.PutResource(c.context, r, dry, c.now)
	if err != nil {
		return nil, err
	}
	if created && !dry {
		c.created(resourcePath(put.Number))
	}
	return newResourceRecord(&put), nil
}

// errNoObject says that a text is not one JSON object.
var errNoObject = account.FieldError{Field: "body", Message: "must be one JSON object"}

func parseObject(text []byte) (*object, error) {
	o := newObject()
	if !o.parse(text) {
		return nil, errNoObject
	}
	return o, nil
}
