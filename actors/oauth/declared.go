package oauth

import (
	"context"
	"slices"
)

// ReplacedBy returns the record of c as d describes it. The ID, the kind and the picture stay,
// and so do the secrets if d has none. The error is a *RegistrationError.
func (c *Client) ReplacedBy(d *Client) (*Client, error) {
	switch {
	case c.Options.SelfRegistered:
		return nil, &RegistrationError{"client_id", "no operator has registered this client"}
	case c.Public != d.Public:
		return nil, &RegistrationError{"public", "it cannot be changed; delete the client first"}
	case c.Operator != d.Operator:
		return nil, &RegistrationError{"operator", "it cannot be changed; delete the client first"}
	}
	next := *d
	next.ID, next.Created, next.Version, next.Epoch = c.ID, c.Created, c.Version, c.Epoch
	next.Options.Logo = c.Options.Logo
	if len(d.RedirectURIs) == 0 {
		next.RedirectURIs = nil // as a Store returns it
	}
	if d.Secrets == nil {
		next.Secrets = c.Secrets
		return &next, nil
	}
	next.Secrets = slices.Clone(d.Secrets)
	for i, secret := range next.Secrets {
		known := slices.IndexFunc(c.Secrets, func(s Secret) bool { return s.Hash == secret.Hash })
		if known >= 0 {
			next.Secrets[i] = c.Secrets[known]
		}
	}
	return &next, nil
}

// ClientDescription is what a file says of a client.
type ClientDescription struct {
	Client
	// KeepsDisabled says that the file does not say whether the client is disabled: that stays as it
	// is, like the secrets if there are none.
	KeepsDisabled bool
}

// Replace returns the record of c as d describes it. The error is that of ReplacedBy.
func (d *ClientDescription) Replace(c *Client) (*Client, error) {
	next, err := c.ReplacedBy(&d.Client)
	if err == nil && d.KeepsDisabled {
		next.Disabled = c.Disabled
	}
	return next, err
}

// DeclaredSet is what the server's own files say of one set.
type DeclaredSet struct {
	Name     string
	Revision int64
	Digest   Hash // of all that the files say
	// Clients, Resources and Providers have the Set and are Declared.
	Clients   []*Client
	Resources []*Resource

	Groups     []string // names of groups of people
	Attributes []Attribute
	Claims     []Claim
	Providers  []*Provider
}

// Attribute is an attribute of people that a file declares. Package account says what its fields may
// be.
type Attribute struct{ Name, Type, Change string }

// DeclareError says why a set cannot be declared, for operators.
type DeclareError struct{ Set, Message string }

// Error returns the set and the message.
func (e *DeclareError) Error() string { return "set " + e.Set + ": " + e.Message }

// DeclareRecords say what the audit trail keeps of a change by Store.Declare. They return a context
// with its events. old is nil for what is new, next for what is deleted.
type DeclareRecords struct {
	Client   func(ctx context.Context, old, next *Client) context.Context
	Resource func(ctx context.Context, old, next *Resource) context.Context
	Provider func(ctx context.Context, old, next *Provider) context.Context
}

// Declared is what a Store did with a DeclaredSet.
type Declared struct {
	Clients []string // ids of those that were created, changed or released
	// Providers says that one was created, changed or released.
	Providers bool
	// Newer is the revision that another server has declared; 0 = none. Then nothing was done.
	Newer int64
}
