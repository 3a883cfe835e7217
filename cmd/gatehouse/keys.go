package main

import "net/http"

// keysCommand is gatehouse keys.
type keysCommand struct {
	Rotate keysRotate `cmd:"" help:"Sign access tokens with a new key. Existing tokens stay valid."`
}

// Help is shown by gatehouse keys --help.
func (*keysCommand) Help() string {
	return "Example:\n\n    gatehouse keys rotate --demo ./gatehouse-demo"
}

type keysRotate struct{ remoteFlags }

// Help is shown by gatehouse keys rotate --help.
func (*keysRotate) Help() string {
	return "The previous key is still accepted, the one before it is removed. The rotation is " +
		"refused while tokens signed with that one may be valid.\n\n" +
		"Example:\n\n    gatehouse keys rotate --demo ./gatehouse-demo"
}

// Run rotates the keys of a running server.
func (c *keysRotate) Run(p *program) error {
	return c.act(p, http.MethodPost, "/admin/v1/keys/rotate", nil)
}
