// Command make writes what packages and releases have beside the program: notices, a bill of
// materials, a manual page, completions for shells. The Makefile calls it.
package main

import (
	"fmt"
	"io"
	"os"
)

// artefacts are what it writes, each from the program at a path, or of the package with notices.
var artefacts = map[string]func(out io.Writer, program string) error{
	"notices": writeNotices, "sbom": writeSBOM, "man": writeManual,
	"bash": writeBash, "zsh": writeZsh, "fish": writeFish,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || artefacts[args[0]] == nil || args[0] == "notices" && len(args) == 1 {
		return fmt.Errorf("usage: make notices PACKAGE | (sbom | man | bash | zsh | fish) PROGRAM")
	}
	return artefacts[args[0]](os.Stdout, append(args, "")[1])
}
