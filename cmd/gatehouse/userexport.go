package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
)

type userExport struct{ remoteFlags }

// Help is shown by gatehouse user export --help.
func (*userExport) Help() string {
	return "Prints all users by id, a JSON object a line, as gatehouse user import takes them: with their " +
		"password hashes. The audit trail has an event for each page that is read. Sessions, consents and " +
		"tokens stay behind.\n\n" +
		"Example:\n\n    (umask 077; gatehouse user export --demo ./gatehouse-demo > users.ndjson)"
}

// Run prints the users.
func (c *userExport) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(p.stdout, 64<<10)
	err = r.pages(pathUsers+"/export", "users", func(user json.RawMessage) error {
		var line bytes.Buffer
		if err := json.Compact(&line, user); err != nil {
			return err
		}
		line.WriteByte('\n')
		_, err := line.WriteTo(out)
		return err
	})
	return errors.Join(err, out.Flush())
}
