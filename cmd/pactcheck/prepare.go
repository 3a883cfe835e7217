//go:build pact

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

type prepareCommand struct {
	Files []string `arg:"" name:"pact" help:"A pact file, or a folder of pact files."`
	Out   string   `required:"" type:"path" placeholder:"DIR" help:"Where to write the copies; made when it is not there."`
}

// Help is shown by pactcheck prepare --help.
func (*prepareCommand) Help() string {
	return "Verifiers follow redirects, so that they never see one. In the copies the header Location is called X-Pact-Location, and requests ask " +
		"pactcheck serve to call it so too. The status stays as it is. Challenges in WWW-Authenticate become one value, as verifiers newer than the " +
		"library here compare them.\n\nExample:\n\n    pactcheck prepare --out ready pacts/"
}

// Run writes a copy of each pact under its own name.
func (c *prepareCommand) Run(p *program) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	written := 0
	for _, name := range c.Files {
		files, err := pactFiles(name)
		if err != nil {
			return usagef("%s", err)
		}
		for _, file := range files {
			if err := c.copy(p, file); err != nil {
				return err
			}
			written++
		}
	}
	if written == 0 {
		return usagef("there are no pacts to prepare")
	}
	return nil
}

func (c *prepareCommand) copy(p *program, file string) error {
	pact, err := readFile(file)
	if err != nil {
		return usagef("%s", err)
	}
	prepared, err := pact.Portable()
	if err != nil {
		return err
	}
	to := filepath.Join(c.Out, filepath.Base(file))
	if from, err := os.Stat(file); err == nil {
		if there, err := os.Stat(to); err == nil && os.SameFile(from, there) {
			return usagef("--out: the copy of %s would take its place", file)
		}
	}
	if err := os.WriteFile(to, prepared, 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, to)
	return err
}
