package stack

import (
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/adminapi"
)

// Describe adds to set a resource, or the client with that id. text is the JSON object that describes
// it, as in a PUT request of the admin API. The error is account.FieldErrors or a
// *oauth.RegistrationError.
func Describe(
	set *oauth.DeclaredSet, isResource bool, id string, text []byte, now time.Time,
) error {
	if isResource {
		r, err := adminapi.DescribedResource(text, now)
		if err != nil {
			return err
		}
		r.Declared = true
		set.Resources = append(set.Resources, r)
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
