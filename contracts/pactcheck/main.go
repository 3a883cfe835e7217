// Command pactcheck checks contracts of client programs with gatehouse.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // for machines and containers without time zones

	"github.com/alecthomas/kong"

	"gatehouse/contracts"
	"gatehouse/contracts/report"
	"gatehouse/contracts/verify"
)

// The exit codes of every command.
const (
	exitOK     = 0 // everything was verified
	exitFailed = 1 // a contract fails, or a result could not be published or written
	exitUsage  = 2 // wrong usage, no service, or nothing to verify
)

func main() {
	log.SetOutput(io.Discard) // net/http logs unexpected data from a broken provider
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := stayLocal(); err != nil {
		fmt.Fprintf(os.Stderr, "pactcheck: %s\n", err)
		os.Exit(exitFailed)
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// stayLocal keeps requests to this machine away from the proxy of the environment. The library
// would send them there.
func stayLocal() error {
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		value := strings.TrimPrefix(os.Getenv(name)+",127.0.0.1,localhost", ",")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// commands is the command line for kong, one field for each command.
type commands struct {
	Verify   verifyCommand   `cmd:"" help:"Verify pacts from files, folders or a Pact Broker."`
	Check    checkCommand    `cmd:"" help:"Check pacts against an OpenAPI document, without a service."`
	Diff     diffCommand     `cmd:"" help:"Compare two OpenAPI documents, and name the consumers that a change breaks."`
	States   statesCommand   `cmd:"" help:"Print the provider states that pacts can use."`
	Serve    serveCommand    `cmd:"" help:"Serve gatehouse and its states for a verifier in another language."`
	Stub     stubCommand     `cmd:"" help:"Serve gatehouse for the tests of a client program, with states and faults."`
	Prepare  prepareCommand  `cmd:"" help:"Copy pacts for a verifier that follows redirects."`
	Coverage coverageCommand `cmd:"" help:"Show which parts of gatehouse's interface the pacts pin, and which they do not."`
	Licenses licensesCommand `cmd:"" help:"Print the licenses of pactcheck and of everything in it."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// program is what each command gets besides its flags.
type program struct {
	ctx            context.Context // ends when the program is asked to stop
	stdout, stderr io.Writer
}

// run runs the command of args and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := &program{ctx, stdout, stderr}
	helped := false
	parser, err := kong.New(&commands{},
		kong.Name("pactcheck"),
		kong.Description("pactcheck checks whether gatehouse does what a client program expects. gatehouse is inside pactcheck.\n\n"+
			"Exit codes: 0 everything was verified; 1 a contract fails; 2 wrong usage, no service, or nothing to verify.\n\n"+
			"Example:\n\n    pactcheck verify pacts/my-app-gatehouse.json"),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }),
		kong.Bind(p),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.ExplicitGroups(groups),
	)
	if err != nil {
		return p.fail(err)
	}
	if len(args) == 0 {
		return p.fail(usagef("a command is missing: pactcheck --help lists the commands"))
	}
	selected, err := parser.Parse(args)
	switch {
	case helped:
		return exitOK
	case err != nil:
		return p.fail(usagef("%s", err))
	}
	return p.fail(selected.Run(p))
}

// errUnverified means that a contract fails. The details have been printed.
var errUnverified = errors.New("a contract fails")

// usageError means wrong usage, or nothing to verify.
type usageError struct {
	message string
	causes  []error // optional; each is a line of its own
}

func (e *usageError) Error() string { return e.message }

// Unwrap returns the message and the causes.
func (e *usageError) Unwrap() []error {
	return append([]error{errors.New(e.message)}, e.causes...)
}

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), nil}
}

// unverified returns a usageError for what err joins.
func unverified(err error) error {
	return &usageError{"nothing was verified:", contracts.Errors(err)}
}

// fail prints err and returns its exit code. Each error is one line, whatever it says of a pact.
func (p *program) fail(err error) int {
	if err == nil {
		return exitOK
	}
	for _, one := range contracts.Errors(err) {
		if errors.Is(one, errUnverified) {
			continue
		}
		if _, werr := fmt.Fprintf(p.stderr, "pactcheck: %s\n",
			report.Line(strings.TrimSpace(one.Error()))); werr != nil {
			return exitFailed
		}
	}
	var wrong *usageError
	if errors.As(err, &wrong) {
		return exitUsage
	}
	return exitFailed
}

// version is set by the linker.
var version string

type versionCommand struct{}

// Help is shown by pactcheck version --help.
func (*versionCommand) Help() string { return "Example:\n\n    pactcheck version" }

// Run prints the version of pactcheck, which is gatehouse's own, and that of the library if pactcheck
// has it.
func (*versionCommand) Run(p *program) error {
	library := ""
	if v := verify.LibraryVersion(); v != "" {
		library = ", libpact_ffi " + v
	}
	_, err := fmt.Fprintf(p.stdout, "pactcheck %s%s\n", cmp.Or(version, "(development)"), library)
	return err
}
