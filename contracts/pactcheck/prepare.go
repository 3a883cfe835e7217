package main

import (
	"fmt"
	"os"
	"path/filepath"

	"gatehouse/contracts"
	"gatehouse/contracts/report"
)

type prepareCommand struct {
	Files []string `arg:"" name:"pact" help:"A pact file, or a folder of pact files."`
	Out   folder   `required:"" type:"path" placeholder:"DIR" help:"Folder for the copies. It is created if needed."`
}

// Help is shown by pactcheck prepare --help.
func (*prepareCommand) Help() string {
	return "Verifiers follow redirects, so they never see one. In the copies the header Location is named X-Pact-Location. " +
		"Their requests ask pactcheck serve to use that name too. The status stays the same. A challenge in WWW-Authenticate " +
		"becomes one value, as verifiers newer than the library of pactcheck expect.\n\n" +
		"Example:\n\n    pactcheck prepare --out ready pacts/"
}

// Run writes a copy of each pact under the name of its file.
func (c *prepareCommand) Run(p *program) error {
	var names []string
	copies := map[string][]byte{}
	for _, name := range c.Files {
		pacts, err := readPacts(p, name, "")
		if err != nil {
			return usagef("%s", err)
		}
		for _, one := range pacts {
			if err := one.Malformed(); err != nil {
				return &usageError{"nothing was prepared:", contracts.Errors(err)}
			}
			to := filepath.Join(string(c.Out), filepath.Base(one.Source))
			if _, again := copies[to]; again {
				return usagef("--out: two pacts would become %s", to)
			}
			if sameFile(one.Source, to) {
				return usagef("--out: the copy of %s would overwrite it", one.Source)
			}
			names = append(names, to)
			if copies[to], err = one.Portable(); err != nil {
				return err
			}
		}
	}
	if len(names) == 0 {
		return usagef("there are no pacts to prepare")
	}
	if err := os.MkdirAll(string(c.Out), 0o755); err != nil {
		return err
	}
	for _, to := range names {
		if err := os.WriteFile(to, copies[to], 0o644); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(p.stdout, report.Line(to)); err != nil {
			return err
		}
	}
	return nil
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
