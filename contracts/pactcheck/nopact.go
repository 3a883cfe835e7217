//go:build !pact

// Command pactcheck checks contracts of client programs with gatehouse. This build without the tag
// pact only says that libpact_ffi is missing.
package main

import (
	"fmt"
	"os"
)

func main() {
	if _, err := fmt.Fprintln(os.Stderr,
		"pactcheck: this build lacks libpact_ffi: make pactcheck builds bin/pactcheck with it"); err != nil {
		os.Exit(1)
	}
	os.Exit(2)
}
