//go:build pact

// Command pactcheck checks contracts of client programs with gatehouse.
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
	_ "time/tzdata" // zones are needed on machines and in containers without them too

	"github.com/alecthomas/kong"
)

// The exit codes of every command.
const (
	exitDone   = 0 // all verified
	exitFailed = 1 // a contract fails, or a result could not be published or written
	exitUsage  = 2 // wrong usage, or nothing to verify
)

func main() {
	log.SetOutput(io.Discard) // net/http prints what a broken provider sends unasked for
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := stayLocal(); err != nil {
		fmt.Fprintf(os.Stderr, "pactcheck: %s\n", err)
		os.Exit(exitFailed)
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// stayLocal keeps requests to this machine from the proxy that the environment names: the library would send them there.
func stayLocal() error {
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		value := strings.TrimPrefix(os.Getenv(name)+",127.0.0.1,localhost", ",")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// commands is the command line as kong reads it: one field a command.
type commands struct {
	Verify   verifyCommand   `cmd:"" help:"Verify pacts: of files, of folders, or of a Pact Broker."`
	States   statesCommand   `cmd:"" help:"Print the provider states that pacts may ask for."`
	Serve    serveCommand    `cmd:"" help:"Serve gatehouse and its states for a verifier in another language."`
	Prepare  prepareCommand  `cmd:"" help:"Copy pacts for a verifier that follows redirects."`
	Coverage coverageCommand `cmd:"" help:"Say which parts of gatehouse's interface pacts pin, and which they do not."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// program is what a command gets beside its own flags.
type program struct {
	ctx            context.Context // ends when the program is asked to stop
	stdout, stderr io.Writer
}

// run does what args ask for and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := &program{ctx, stdout, stderr}
	helped := false
	parser, err := kong.New(&commands{},
		kong.Name("pactcheck"),
		kong.Description("pactcheck says whether what a client program expects of gatehouse holds. It brings gatehouse along.\n\n"+
			"Exit codes: 0 all verified; 1 a contract fails; 2 wrong usage, or nothing to verify.\n\n"+
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
		return p.fail(usagef("say what to do: pactcheck --help lists the commands"))
	}
	selected, err := parser.Parse(args)
	switch {
	case helped:
		return exitDone
	case err != nil:
		return p.fail(usagef("%s", err))
	}
	return p.fail(selected.Run(p))
}

// errUnverified says that a contract fails; what and why has been printed.
var errUnverified = errors.New("a contract fails")

// usageError is wrong usage, or nothing to verify.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// fail prints err and returns the exit code that it stands for.
func (p *program) fail(err error) int {
	if err == nil {
		return exitDone
	}
	if !errors.Is(err, errUnverified) {
		for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
			if _, werr := fmt.Fprintf(p.stderr, "pactcheck: %s\n", line); werr != nil {
				return exitFailed
			}
		}
	}
	var wrong *usageError
	if errors.As(err, &wrong) {
		return exitUsage
	}
	return exitFailed
}
