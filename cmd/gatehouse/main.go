// Command gatehouse serves an OAuth 2.0 identity service, and a geolocation service for IP
// addresses and domains.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"reflect"
	"strings"
	_ "time/tzdata" // machines and containers may have no zone files

	"github.com/alecthomas/kong"
)

// The exit codes of every command.
const (
	exitDone   = 0
	exitFailed = 1 // refused or failed
	exitUsage  = 2 // a wrong flag, setting or argument: nothing was started
)

func main() {
	log.SetOutput(io.Discard) // net/http prints unexpected responses, which may hold a query
	ctx := interruptible(context.Background())
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// commands is the command line as kong reads it, with a field for each command.
type commands struct {
	Serve    serveCommand    `cmd:"" group:"serve" help:"Serve identity and lookups over HTTP."`
	Demo     demoCommand     `kong:"cmd,group='serve',set='ptr=off',set='trusted_proxies=127.0.0.0/8,::1/128',set='messenger=log',set='agents=on',set='log_format=text',help='Serve a demo that needs no network, with demo accounts and clients and a simulated upstream.'"`
	Sim      simCommand      `cmd:"" group:"serve" help:"Run a simulator of the upstream, for tests and load tests."`
	Init     initCommand     `cmd:"" group:"serve" help:"Prepare the database and create the first operator client."`
	Config   configCommand   `cmd:"" group:"serve" help:"Print every setting with its value and its source."`
	Version  versionCommand  `cmd:"" group:"serve" help:"Print the version."`
	Licenses licensesCommand `cmd:"" group:"serve" help:"Print the licenses of the program and of all that it consists of."`
	Health   healthCommand   `cmd:"" group:"serve" help:"Ask a running server whether it is ready."`
	Client   clientCommand   `cmd:"" group:"apps" set:"id=The client_id." help:"Manage client applications."`
	Resource resourceCommand `cmd:"" group:"apps" help:"Manage APIs that take access tokens of this service."`
	Provider providerCommand `cmd:"" group:"apps" help:"Manage other providers with which people sign in."`
	Group    groupCommand    `cmd:"" group:"apps" help:"Manage groups of people."`
	Apply    applyCommand    `cmd:"" group:"apps" help:"Make clients and resources those that files describe."`
	Export   exportCommand   `cmd:"" group:"apps" help:"Print clients and resources as such files."`
	Secret   secretCommand   `cmd:"" group:"apps" help:"Make a client secret for such files."`
	User     userCommand     `cmd:"" group:"apps" set:"id=The user's id, a number." help:"Manage users."`
	Audit    auditCommand    `cmd:"" group:"apps" help:"Print the audit trail: who did what."`
	Lookup   lookupCommand   `cmd:"" group:"lookups" help:"Look up addresses and domains, one or files of millions."`
	MMDB     mmdbCommand     `cmd:"" name:"mmdb" group:"lookups" help:"Show what database files have."`
	GeoKey   geoKeyCommand   `cmd:"" name:"geo-key" group:"lookups" help:"Make an API key for a caller of lookups."`
	Keys     keysCommand     `cmd:"" group:"keys" help:"Manage the secret keys."`
	Migrate  migrateCommand  `cmd:"" group:"keys" help:"Show the database's schema version, or bring it up to date."`
	Backup   backupCommand   `cmd:"" group:"keys" help:"Copy a SQLite database to a file, also while a server runs."`
	Cluster  clusterCommand  `cmd:"" group:"clusters" help:"Show the nodes of a cluster, or drain one."`
}

// program is the process that a command runs in.
type program struct {
	ctx            context.Context // ends when the program is asked to stop
	args           []string        // the command line
	stdin          io.Reader
	stdout, stderr io.Writer
	environment    environment
	resolver       *resolver
	given          map[string]any // the value of each flag by name, as the program began with
}

// run runs the command that args name and returns the exit code. A command stops when ctx ends. env
// is in the form of os.Environ.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{ctx: ctx, args: args, stdin: stdin, stdout: stdout, stderr: stderr,
		environment: newEnvironment(env)}
	p.resolver = newResolver(p.environment)
	helped := false
	parser, err := newParser(p, args, stdout, func(int) { helped = true })
	if err != nil {
		return p.fail(err)
	}
	if len(args) == 0 {
		return usage(p)
	}
	selected, err := parser.Parse(args)
	switch {
	case helped:
		return exitDone
	case err != nil:
		return p.fail(commandLineError(err))
	}
	p.given = given(selected) // a command changes some
	return p.fail(selected.Run(p))
}

// grammar returns the command that args begin with, or all commands. Kong reads the tags of what it
// gets each time: those of all commands take longer than many commands run.
func grammar(args []string) any {
	all := reflect.ValueOf(&commands{Client: newClientCommand(), User: newUserCommand()}).Elem()
	for field, value := range all.Fields() {
		if len(args) > 0 && args[0] == cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name)) {
			one := reflect.New(reflect.StructOf([]reflect.StructField{field}))
			one.Elem().Field(0).Set(value)
			return one.Interface()
		}
	}
	return all.Addr().Interface()
}

func newParser(p *program, args []string, stdout io.Writer, exit func(int)) (*kong.Kong, error) {
	options := append(settingTypes(),
		kong.Name("gatehouse"),
		kong.Description("gatehouse is an OAuth 2.0 identity service, and a geolocation service for "+
			"IP addresses and domains.\n\n"+
			"Example:\n\n    gatehouse demo\n    gatehouse init && gatehouse serve"),
		kong.Writers(stdout, p.stderr),
		kong.Exit(exit),
		kong.Resolvers(p.resolver),
		kong.Bind(p),
		kong.ValueFormatter(helpText),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.ExplicitGroups(groups),
		// The defaults that a demo sets for itself.
		kong.Vars{"ptr": "", "trusted_proxies": "", "messenger": "", "agents": "off",
			"log_format": "json"},
	)
	return kong.New(grammar(args), options...)
}

// usage prints the help of the program to stderr, since it was not requested.
func usage(p *program) int {
	parser, err := newParser(p, nil, p.stderr, func(int) {})
	if err != nil {
		return p.fail(err)
	}
	trace, err := kong.Trace(parser, nil)
	if err != nil {
		return p.fail(err)
	}
	if err := trace.PrintUsage(false); err != nil {
		return p.fail(err)
	}
	return exitUsage
}

// fail prints err on one line and returns its exit code.
func (p *program) fail(err error) int {
	if err == nil {
		return exitDone
	}
	var quiet *exitError
	if errors.As(err, &quiet) {
		return quiet.code
	}
	code, line := p.explain(err)
	if _, err := fmt.Fprintf(p.stderr, "gatehouse: %s\n", line); err != nil {
		return exitFailed
	}
	return code
}

// explain returns the exit code of an error and the line that says what is wrong. Parts of the line
// may be the text of a server, so it is made safe for a terminal.
func (p *program) explain(err error) (code int, line string) {
	code, line = exitFailed, err.Error()
	var wrong *usageError
	var setting *settingError
	switch {
	case errors.As(err, &setting):
		code, line = exitUsage, setting.line(p.resolver.given(setting.setting))
	case errors.As(err, &wrong):
		code, line = exitUsage, wrong.message
	}
	return code, oneLine(printable(line))
}
