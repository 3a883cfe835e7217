//go:build pact

package main

import (
	"cmp"
	"fmt"

	"gatehouse/contracts/verify"
)

// version is set by the linker.
var version string

type versionCommand struct{}

// Help is shown by pactcheck version --help.
func (*versionCommand) Help() string { return "Example:\n\n    pactcheck version" }

// Run prints the version of gatehouse that pactcheck brings along, and that of the library.
func (*versionCommand) Run(p *program) error {
	_, err := fmt.Fprintf(p.stdout, "pactcheck %s, libpact_ffi %s\n", cmp.Or(version, "(development)"), verify.LibraryVersion())
	return err
}
