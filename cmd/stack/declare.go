package stack

import (
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/adminapi"
)

// The kinds of what files describe.
const (
	aResource = "resource"
	aProvider = "provider"
)

// Describe adds to set a resource, or the provider or client with that id. text is the JSON object that describes
// it, as in a PUT request of the admin API. The error is account.FieldErrors or a
// *oauth.RegistrationError.
func Describe(
	set *oauth.DeclaredSet, kind, id string, text []byte, now time.Time,
) error {
	switch kind {
	case aResource:
		r, err := adminapi.DescribedResource(text, now)
		if err != nil {
			return err
		}
		r.Declared = true
		set.Resources = append(set.Resources, r)
		return nil
	case aProvider:
		p, err := adminapi.DescribedProvider(text, id, now)
		if err != nil {
			return err
		}
		p.Declared = true
		set.Providers = append(set.Providers, p)
		return nil
	}
	c, err := adminapi.DescribedClient(text, id, now)
	if err != nil {
		return err
	}
	c.Options.Declared = true
	set.Clients = append(set.Clients, c)
	return nil
}
