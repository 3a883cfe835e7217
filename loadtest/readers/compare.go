package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The files that make writes.
const (
	cityFile    = "City.mmdb"
	asnFile     = "ASN.mmdb"
	rowsFile    = "rows.csv"
	addressFile = "addresses.txt"
)

// program is a program to measure.
type program struct {
	name     string
	rows     int        // rows it looks up: the slow ones get the first rows only
	commands [][]string // run in turn and measured together
	library  string     // a file that the program needs; "" = none
}

// compare runs gatehouse and the other programs, and prints their figures.
func (o *options) compare() error {
	addresses, err := o.addresses()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(o.program); err != nil {
		return fmt.Errorf("%s is missing: run \"make build\" first", o.program)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("%-24s %9s %8s %9s %8s %14s\n",
		"program", "rows", "seconds", "rows/s", "CPU s", "anonymous MiB")
	for _, p := range o.programs(self, addresses) {
		if !p.installed() {
			fmt.Printf("%-24s is not installed: run scripts/reader-tools\n", p.name)
			continue
		}
		f, err := measure(p.commands)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Printf("%-24s %9d %8.2f %9.0f %8.2f %14s\n", p.name, p.rows, f.took.Seconds(),
			float64(p.rows)/f.took.Seconds(), f.processor.Seconds(), f.memory())
	}
	return nil
}

// addresses returns the addresses of all rows. It fails if a file is missing.
func (o *options) addresses() ([]string, error) {
	for _, name := range []string{cityFile, asnFile, rowsFile, addressFile} {
		if _, err := os.Stat(o.path(name)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is missing: run \"readers make -dir %s\" first", o.path(name), o.dir)
		}
	}
	text, err := os.ReadFile(o.path(addressFile))
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(text)), nil
}

// programs returns the programs. One that reads a single file looks up all addresses in each of the
// two.
func (o *options) programs(self string, addresses []string) []program {
	city, asn, all := o.path(cityFile), o.path(asnFile), o.path(addressFile)
	node := filepath.Join(o.node, "node_modules", "maxmind", "package.json")
	mmdbctl, inspect := o.tool("mmdbctl"), o.tool("mmdbinspect")
	single := addresses[:min(len(addresses), 1000)]
	some := addresses[:min(len(addresses), 200_000)]
	return []program{
		{name: "gatehouse lookup", rows: len(addresses), commands: [][]string{
			{o.program, "lookup", "--mmdb", city + "," + asn, "--file", o.path(rowsFile),
				"--column", "ip", "-q"},
		}},
		{name: "bare loop", rows: len(addresses), commands: [][]string{{self, "loop", "-dir", o.dir}}},
		// An option that its help does not show: it decodes the records and prints none.
		{name: "mmdblookup --ip-file", rows: len(addresses), commands: [][]string{
			{"mmdblookup", "--file", city, "--ip-file", all},
			{"mmdblookup", "--file", asn, "--ip-file", all},
		}},
		{name: "mmdblookup --ip", rows: len(single), commands: eachAddress(single, city, asn)},
		{name: "mmdbctl read", rows: len(addresses), commands: [][]string{
			{mmdbctl, "read", "--format", "json", all, city},
			{mmdbctl, "read", "--format", "json", all, asn},
		}},
		{name: "mmdbinspect", rows: len(some), commands: inChunks(some,
			[]string{inspect, "-db", city, "-db", asn})},
		{name: "npm maxmind", rows: len(addresses), library: node, commands: [][]string{
			{"node", filepath.Join(o.node, "read.js"), city, asn, all},
		}},
	}
}

// tool returns the path of a program in the folder of tools, or else its name.
func (o *options) tool(name string) string {
	path := filepath.Join(o.tools, name)
	if _, err := os.Stat(path); err != nil {
		return name
	}
	return path
}

// eachAddress returns a command for each address and file: mmdblookup prints one record a process.
func eachAddress(addresses []string, files ...string) [][]string {
	var commands [][]string
	for _, addr := range addresses {
		for _, file := range files {
			commands = append(commands, []string{"mmdblookup", "--file", file, "--ip", addr})
		}
	}
	return commands
}

// inChunks returns commands with as many addresses as Linux allows on a command line.
func inChunks(addresses, command []string) [][]string {
	var commands [][]string
	for chunk := range slices.Chunk(addresses, 50_000) {
		commands = append(commands, slices.Concat(command, chunk))
	}
	return commands
}

// installed reports whether the program and its library are here.
func (p *program) installed() bool {
	if _, err := exec.LookPath(p.commands[0][0]); err != nil {
		return false
	}
	if p.library == "" {
		return true
	}
	_, err := os.Stat(p.library)
	return err == nil
}

// figures are what commands took together.
type figures struct {
	took, processor time.Duration
	anonymous       int // largest anonymous memory of a process in KiB; 0 = ended too soon to tell
}

// memory returns the anonymous memory in MiB.
func (f figures) memory() string {
	switch {
	case f.anonymous == 0:
		return "-"
	case f.anonymous < 1<<10:
		return "<1"
	}
	return fmt.Sprint(f.anonymous >> 10)
}

// measure runs the commands in turn, with their output thrown away.
func measure(commands [][]string) (figures, error) {
	var f figures
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return f, err
	}
	defer null.Close()
	began := time.Now()
	for _, command := range commands {
		c := exec.Command(command[0], command[1:]...)
		c.Stdout, c.Stderr = null, os.Stderr
		if err := f.add(c); err != nil {
			return f, err
		}
	}
	f.took = time.Since(began)
	return f, nil
}

// add runs a command, and adds its processor time and memory.
func (f *figures) add(c *exec.Cmd) error {
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.anonymous = max(f.anonymous, anonymousMemory(c.Process.Pid))
		case err := <-ended:
			f.processor += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
			const someFailed = 3 // the addresses of private networks among the rows
			if c.ProcessState.ExitCode() == someFailed {
				return nil
			}
			return err
		}
	}
}

// anonymousMemory returns the anonymous memory of a process in KiB; 0 = not known.
func anonymousMemory(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	kib := 0
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}
