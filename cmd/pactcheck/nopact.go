//go:build !pact

// Command pactcheck checks contracts of client programs with gatehouse. It is linked with
// libpact_ffi, and so this is a stand-in for it unless the build tag pact is set.
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
