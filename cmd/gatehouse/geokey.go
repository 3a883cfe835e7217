package main

import (
	"fmt"

	"gatehouse/cmd/stack"
)

// geoKeyCommand is gatehouse geo-key.
type geoKeyCommand struct {
	Name string `arg:"" placeholder:"NAME" help:"Name of the caller: 1 to 64 letters, digits, dots, underscores and hyphens."`
}

// Help is shown by gatehouse geo-key --help.
func (*geoKeyCommand) Help() string {
	return "It prints the key, which is shown only now, and the line for the file of --geo-keys. A " +
		"caller may have several keys. A running server reads the file again at SIGHUP.\n\n" +
		"Example:\n\n    gatehouse geo-key analytics"
}

// Run makes a key.
func (c *geoKeyCommand) Run(p *program) error {
	key, line, err := stack.NewLookupKey(c.Name)
	if err != nil {
		return usagef("%v", err)
	}
	_, err = fmt.Fprintf(p.stdout, "Key, shown only now:    %s\nLine for --geo-keys:    %s\n", key, line)
	return err
}
