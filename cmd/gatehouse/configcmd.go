package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/alecthomas/kong"
)

type configCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
	serviceSettings
}

// Help is shown by gatehouse config --help.
func (*configCommand) Help() string {
	return "Prints the settings that gatehouse serve would use with the same flags, environment " +
		"and file. Secrets are not shown.\n\n" +
		"Example:\n\n    GATEHOUSE_LOG_LEVEL=debug gatehouse config --listen 127.0.0.1:9090"
}

// settingRow is a setting as it is printed.
type settingRow struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	Source  string `json:"source"`
}

// Run prints the settings in force.
func (c *configCommand) Run(p *program, parsed *kong.Context) error {
	for _, name := range p.environment.unknown() {
		p.plainLog().Warn("unknown variable in the environment", "name", name)
	}
	c.complete(p)
	values := map[string]string{}
	for _, flag := range parsed.Flags() {
		values[flag.Name] = fmt.Sprint(flag.Target.Interface())
	}
	rows := make([]settingRow, len(allSettings))
	for i, s := range allSettings {
		rows[i] = settingRow{s.name, values[s.name], p.resolver.source(parsed, s.name)}
	}
	if c.JSON {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tSOURCE")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\n", row.Setting, first(row.Value, "-"), row.Source)
	}
	return table.Flush()
}
