package main

import (
	_ "embed"
	"io"
)

// notices has the licenses of gatehouse, of Go and of each linked module. make notices writes it.
//
//go:embed notices.txt
var notices string

// licensesCommand is gatehouse licenses.
type licensesCommand struct{}

// Help is shown by gatehouse licenses --help.
func (*licensesCommand) Help() string {
	return "Prints the license of gatehouse, and the licenses and notices of everything that is part " +
		"of the program: Go and modules of others.\n\nExample:\n\n    gatehouse licenses | less"
}

// Run prints the licenses.
func (*licensesCommand) Run(p *program) error {
	_, err := io.WriteString(p.stdout, notices)
	return err
}
