package main

import (
	_ "embed"
	"io"
)

// notices has the licenses of gatehouse, of Go and of each module linked to pactcheck. make notices
// writes it.
//
//go:embed notices.txt
var notices string

// licensesCommand is pactcheck licenses.
type licensesCommand struct{}

// Help is shown by pactcheck licenses --help.
func (*licensesCommand) Help() string {
	return "Prints the license of gatehouse, which pactcheck is part of, and the licenses and notices of everything in the program: " +
		"Go and modules of others.\n\nExample:\n\n    pactcheck licenses | less"
}

// Run prints the licenses.
func (*licensesCommand) Run(p *program) error {
	_, err := io.WriteString(p.stdout, notices)
	return err
}
