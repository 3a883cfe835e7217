// Command loadtest sends a gatehouse the requests of its users, and reports how long the responses
// took.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"gatehouse/loadtest"
	"gatehouse/loadtest/plan"
)

// The exit codes.
const (
	exitDone        = 0
	exitCrossed     = 1 // a threshold was crossed, a check failed, or there was no run
	exitUsage       = 2 // a wrong flag or argument: nothing was started
	exitInvalid     = 3 // the schedule was not kept, or an agent lost: it was another load
	exitInterrupted = 4 // SIGINT or SIGTERM ended the run: the reports are of the part before
)

// version is set when the program is built.
var version = "unknown"

func main() {
	log.SetOutput(io.Discard) // libraries print unexpected responses
	loadtest.CollectRarely()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// commands is the command line as kong reads it.
type commands struct {
	Run     runCommand       `cmd:"" help:"Run one scenario."`
	Round   roundCommand     `cmd:"" help:"Run every scenario for a short time against its own gatehouse, with thresholds."`
	Agent   agentCommand     `cmd:"" help:"Send parts of the load of loadtest run --agents from this machine."`
	List    listCommand      `cmd:"" help:"List the scenarios."`
	Schema  schemaCommand    `cmd:"" help:"Print the JSON Schema of a scenario in a file."`
	Version versionCommand   `cmd:"" help:"Print the version."`
	Tell    kong.VersionFlag `name:"version" help:"Print the version."`
}

// program is the process that a command runs in.
type program struct {
	ctx            context.Context // ends when the program is asked to stop
	stdout, stderr io.Writer
	live           bool // stderr is a terminal: lines can be written over
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code    int
	message string // "" = it is printed already
}

func (e *exitError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...)}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := &program{ctx: ctx, stdout: stdout, stderr: stderr, live: isTerminal(stderr)}
	helped := false
	parser, err := kong.New(&commands{}, kong.Name("loadtest"),
		kong.Description("loadtest sends a gatehouse the requests of its users, at a rate (open model) or by "+
			"a number of users (closed model), and reports how long the responses took.\n\n"+
			"Example:\n\n    loadtest run lookup-hot --rate 5000 --duration 30s --html report.html --expect 'lookup p99<10ms' --expect 'errors<0.1%'\n\n"+
			"Exit codes: 0 done, 1 a threshold was crossed or the run failed, 2 wrong usage, 3 the schedule was not kept or an agent was lost, 4 interrupted."),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { helped = true }), kong.Bind(p),
		kong.Vars{"version": "loadtest " + version},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}))
	if err != nil {
		return p.fail(err)
	}
	if len(args) == 0 {
		return p.fail(usagef("give a command: loadtest run SCENARIO, loadtest round or loadtest list (loadtest --help has more)"))
	}
	selected, err := parser.Parse(args)
	switch {
	case helped:
		return exitDone
	case err != nil:
		return p.fail(usagef("%s", err))
	}
	err = selected.Run(p)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = &exitError{exitInterrupted, "interrupted before the load began"}
	}
	return p.fail(err)
}

// fail prints err on one line and returns its exit code.
func (p *program) fail(err error) int {
	if err == nil {
		return exitDone
	}
	code := exitCrossed
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
		if exit.message == "" {
			return code
		}
	}
	if _, werr := fmt.Fprintf(p.stderr, "loadtest: %s\n",
		strings.Join(strings.Fields(err.Error()), " ")); werr != nil {
		return exitCrossed
	}
	return code
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(p *program) error {
	_, err := fmt.Fprintln(p.stdout, "loadtest", version)
	return err
}

type schemaCommand struct{}

// Help is shown by loadtest schema --help.
func (schemaCommand) Help() string { return "Example:\n\n    loadtest schema > scenario.schema.json" }

// Run prints the schema.
func (schemaCommand) Run(p *program) error {
	_, err := fmt.Fprint(p.stdout, plan.Schema)
	return err
}

type listCommand struct{}

// Help is shown by loadtest list --help.
func (listCommand) Help() string { return "Example:\n\n    loadtest list" }

// Run prints the scenarios with their own rates and durations, and the steps that --expect can
// name.
func (listCommand) Run(p *program) error {
	for _, s := range loadtest.Scenarios {
		if _, err := fmt.Fprintf(p.stdout, "%-12s %s\n%-12s %g/s for %v; steps: %s\n", s.Name,
			s.About, "", s.Rate, s.Duration, strings.Join(s.Steps(nil), ", ")); err != nil {
			return err
		}
	}
	return nil
}
