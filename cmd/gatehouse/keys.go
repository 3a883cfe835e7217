package main

import (
	"net/http"
)

// keysCommand is gatehouse keys.
type keysCommand struct {
	Rotate keysRotate `cmd:"" help:"Sign access tokens with a new key; those signed before stay good."`
}

// Help is shown by gatehouse keys --help.
func (*keysCommand) Help() string {
	return "Example:\n\n    gatehouse keys rotate --demo ./gatehouse-demo"
}

type keysRotate struct{ remoteFlags }

// Help is shown by gatehouse keys rotate --help.
func (*keysRotate) Help() string {
	return "The key before is still accepted. The one before that is forgotten: while tokens signed with it may be good, a rotation is refused.\n\n" +
		"Example:\n\n    gatehouse keys rotate --demo ./gatehouse-demo"
}

// Run rotates the keys of a running server.
func (c *keysRotate) Run(p *program) error {
	return c.act(p, http.MethodPost, "/admin/v1/keys/rotate", nil)
}
