// Command readers measures gatehouse lookup --mmdb beside other programs that read the same files, and
// compares what it finds with what one of them does.
// "readers -h" shows how to use it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const help = `readers measures gatehouse lookup --mmdb beside other programs that read the same files.

  readers make   write City.mmdb, ASN.mmdb, rows.csv and addresses.txt
  readers run    run gatehouse and the others in turn, and print their figures
  readers loop   be the bare loop, one of the others
  readers check  compare what gatehouse finds with what Python's maxminddb does

scripts/reader-tools installs the others. Those that are missing are left out.

`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "readers:", err)
		os.Exit(1)
	}
}

type options struct {
	dir, program, tools, node, mmdb string

	rows, networks, places int
}

func run(args []string) error {
	var o options
	flags := flag.NewFlagSet("readers", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.dir, "dir", ".", "folder of the files")
	flags.StringVar(&o.program, "program", "bin/gatehouse", "gatehouse to run")
	flags.StringVar(&o.tools, "tools", ".tools/readers", "folder of mmdbctl and mmdbinspect")
	flags.StringVar(&o.node, "node", "loadtest/readers/node", "folder of the program with npm's maxmind")
	flags.StringVar(&o.mmdb, "mmdb", "", "file to check (default: a file of countries below -node)")
	flags.IntVar(&o.rows, "rows", 2_000_000, "rows to make, or addresses to check")
	flags.IntVar(&o.networks, "networks", 500_000, "networks of the files to make")
	flags.IntVar(&o.places, "places", 100_000, "different records of the City file to make")
	command := "-h"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) || command == "-h" || command == "-help" || command == "--help" {
		fmt.Print(help)
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return nil
	}
	if err != nil {
		return err
	}
	switch command {
	case "make":
		return o.make()
	case "run":
		return o.compare()
	case "loop":
		return o.loop()
	case "check":
		return o.check()
	}
	return fmt.Errorf("unknown command %q; readers -h shows the commands", command)
}

func (o *options) path(name string) string { return filepath.Join(o.dir, name) }
