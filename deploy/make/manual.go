package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// command is a command of the program, by what its --help says.
type command struct {
	name  []string // "client", "create"
	help  string
	flags []string // "--name"
}

var (
	listedCommand = regexp.MustCompile(`(?m)^  ([a-z-]+(?: [a-z-]+)?)  `)
	listedFlag    = regexp.MustCompile(`(?m)^  (?:-\w, |    )?(--[a-z-]+)`)
)

// commandsOf returns the help of the program itself, and its commands.
func commandsOf(program string) (help string, commands []command, err error) {
	if help, err = helpOf(program); err != nil {
		return "", nil, err
	}
	_, list, _ := strings.Cut(help, "Serve:\n")
	for _, found := range listedCommand.FindAllStringSubmatch(list, -1) {
		c := command{name: strings.Fields(found[1])}
		if c.help, err = helpOf(program, c.name...); err != nil {
			return "", nil, err
		}
		for _, flag := range listedFlag.FindAllStringSubmatch(c.help, -1) {
			c.flags = append(c.flags, flag[1])
		}
		commands = append(commands, c)
	}
	if len(commands) == 0 {
		return "", nil, errors.New("the help lists no commands")
	}
	return help, commands, nil
}

func helpOf(program string, command ...string) (string, error) {
	run := exec.Command(program, append(command, "--help")...)
	run.Stderr = os.Stderr
	text, err := run.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s --help: %w", program, strings.Join(command, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// roff makes text safe for a line of a manual page: a dot or an apostrophe at its beginning would
// be a request, and a hyphen would be one of typesetting.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// writeManual writes a manual page in roff: the help of the program and of its commands.
func writeManual(out io.Writer, program string) error {
	help, commands, err := commandsOf(program)
	if err != nil {
		return err
	}
	var page strings.Builder
	section := func(macro, title, text string) {
		fmt.Fprintf(&page, ".%s %q\n.nf\n%s\n.fi\n", macro, title, roff.Replace("\n" + text)[1:])
	}
	fmt.Fprintf(&page, ".TH GATEHOUSE 1 \"\" \"gatehouse %s\" \"User Commands\"\n", os.Getenv("VERSION"))
	page.WriteString(".SH NAME\ngatehouse \\- OAuth 2.0 identity service, and geolocation of addresses\n")
	page.WriteString(".SH SYNOPSIS\n.B gatehouse\n.I command\n[\\fIflags\\fR]\n")
	section("SH", "DESCRIPTION", help)
	page.WriteString(".SH COMMANDS\n")
	for _, c := range commands {
		section("SS", "gatehouse "+strings.Join(c.name, " "), c.help)
	}
	section("SH", "EXIT STATUS", "0  Done.\n1  Refused or failed.\n"+
		"2  A wrong flag, setting or argument. Nothing was started.\n3  gatehouse lookup: some rows failed. gatehouse apply --dry-run: something would change.")
	section("SH", "FILES", "/etc/gatehouse/gatehouse.yaml  settings of the service\n"+
		"/etc/gatehouse/gatehouse.key   key file of the service\n/var/lib/gatehouse             its SQLite database")
	_, err = io.WriteString(out, page.String())
	return err
}

// words are what may follow a command: commands of its group, or its flags.
func words(commands []command) (groups []string, following map[string][]string) {
	following = map[string][]string{}
	for _, c := range commands {
		if len(following[c.name[0]]) == 0 {
			groups = append(groups, c.name[0])
		}
		if len(c.name) > 1 {
			following[c.name[0]] = append(following[c.name[0]], c.name[1])
		}
		path := strings.Join(c.name, " ")
		following[path] = append(following[path], c.flags...)
	}
	return groups, following
}

// writeBash writes a completion for bash: commands, flags, else files.
func writeBash(out io.Writer, program string) error {
	_, commands, err := commandsOf(program)
	if err != nil {
		return err
	}
	groups, following := words(commands)
	var script strings.Builder
	script.WriteString("# bash completion of gatehouse\n_gatehouse() {\n" +
		"\tlocal word=${COMP_WORDS[COMP_CWORD]} choices\n\tCOMPREPLY=()\n" +
		"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tchoices=\"" + strings.Join(groups, " ") + " --help\"\n" +
		"\telse\n\t\tcase \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n")
	for _, c := range commands {
		pattern := strings.Join(c.name, " ")
		fmt.Fprintf(&script, "\t\t%q*) choices=%q ;;\n", pattern+strings.Repeat(" ", 2-len(c.name)),
			strings.Join(following[pattern], " "))
	}
	for _, group := range groups { // what follows a command without others has its case above
		fmt.Fprintf(&script, "\t\t%q*) choices=%q ;;\n", group+" ", strings.Join(following[group], " "))
	}
	script.WriteString("\t\tesac\n\tfi\n" +
		"\tmapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$word\")\n}\n" +
		"complete -o default -F _gatehouse gatehouse\n")
	_, err = io.WriteString(out, script.String())
	return err
}

// writeZsh writes a completion for zsh, which runs that for bash.
func writeZsh(out io.Writer, program string) error {
	if _, err := io.WriteString(out, "#compdef gatehouse\nautoload -U +X bashcompinit && bashcompinit\n"); err != nil {
		return err
	}
	return writeBash(out, program)
}

// writeFish writes a completion for fish.
func writeFish(out io.Writer, program string) error {
	_, commands, err := commandsOf(program)
	if err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("# fish completion of gatehouse\n")
	groups, _ := words(commands)
	fmt.Fprintf(&script, "complete -c gatehouse -n __fish_use_subcommand -f -a %q\n", strings.Join(groups, " "))
	for _, c := range commands {
		condition := "__fish_seen_subcommand_from " + c.name[0]
		if len(c.name) > 1 {
			fmt.Fprintf(&script, "complete -c gatehouse -n '%s' -f -a %s\n", condition, c.name[1])
			condition += "; and __fish_seen_subcommand_from " + c.name[1]
		}
		for _, flag := range c.flags {
			fmt.Fprintf(&script, "complete -c gatehouse -n '%s' -l %s\n", condition, flag[2:])
		}
	}
	_, err = io.WriteString(out, script.String())
	return err
}
