package stack

import (
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/adminapi"
)

// Describe adds to set an object of a kind (client, resource, group, attribute or claim) with that id.
// text is the JSON object that describes it, as in a PUT request of the admin API. The error is
// account.FieldErrors, an account.FieldError or a *oauth.RegistrationError.
func Describe(set *oauth.DeclaredSet, kind, id string, text []byte, now time.Time) error {
	switch kind {
	case "group":
		g, err := adminapi.DescribedGroup(text, id)
		if err == nil {
			set.Groups = append(set.Groups, g.Name)
		}
		return err
	case "attribute":
		a, err := adminapi.DescribedAttribute(text, id)
		if err == nil {
			set.Attributes = append(set.Attributes, oauth.Attribute{Name: a.Name, Type: a.Type, Change: a.Change})
		}
		return err
	case "claim":
		c, err := adminapi.DescribedClaim(text, id)
		if err == nil {
			c.Declared = true
			set.Claims = append(set.Claims, c)
		}
		return err
	case "provider":
		p, err := adminapi.DescribedProvider(text, id, now)
		if err == nil {
			p.Declared = true
			set.Providers = append(set.Providers, p)
		}
		return err
	case "resource":
		r, err := adminapi.DescribedResource(text, now)
		if err == nil {
			r.Declared = true
			set.Resources = append(set.Resources, r)
		}
		return err
	}
	c, err := adminapi.DescribedClient(text, id, now)
	if err == nil {
		c.Options.Declared = true
		set.Clients = append(set.Clients, c)
	}
	return err
}
