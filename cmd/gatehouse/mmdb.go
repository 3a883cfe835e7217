package main

import (
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/providers/mmdb"
)

type mmdbCommand struct {
	Show   mmdbShow   `cmd:"" help:"Print three records of a file and what each member became."`
	Update mmdbUpdate `cmd:"" help:"Download database files that have changed."`
}

// shownRecords is how many records gatehouse mmdb show prints.
const shownRecords = 3

type mmdbShow struct {
	File string `arg:"" placeholder:"FILE" help:"Database file in MaxMind's format."`

	MMDBMap  mappingFile  `name:"mmdb-map" placeholder:"FILE" help:"Where records have what is not recognized, as lines such as country_code: geo.cc."`
	Language nameLanguage `name:"mmdb-language" default:"en" placeholder:"LANGUAGE" help:"Language of names, where the file has it, such as de or pt-BR (${default})."`
	JSON     bool         `name:"json" help:"Print JSON."`
}

// Help is shown by gatehouse mmdb show --help.
func (*mmdbShow) Help() string {
	return "Members are recognized by the keys of records. It prints where they come from, as lines of a " +
		"file for --mmdb-map, and three records. Of a flag that several keys decide, it names the key " +
		"that decided. If nothing is recognized, write such lines yourself. A path has dots between " +
		"keys, and indexes as in places[0].name; of several, with commas between, the first that is " +
		"not empty counts. A member without a path is unknown.\n\n" +
		"Example:\n\n    gatehouse mmdb show City.mmdb\n" +
		"    gatehouse mmdb show own.mmdb --mmdb-map own.yaml"
}

// Run prints the file's description, also if nothing in it is recognized.
func (c *mmdbShow) Run(p *program) error {
	options := mmdb.Options{Mapping: c.MMDBMap.mapping, Language: string(c.Language)}
	d, unrecognized := options.Describe(c.File, shownRecords)
	if c.JSON {
		if unrecognized != nil {
			return unrecognized
		}
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(shownFileOf(d))
	}
	if d.Type == "" && d.Records == nil {
		return unrecognized
	}
	fmt.Fprintf(p.stdout, "Type:   %s\nBuilt:  %s\nIP:     version %d\n", printable(d.Type),
		d.Built.Format(time.DateOnly), d.Version)
	if len(d.Mapping) > 0 {
		fmt.Fprintln(p.stdout, "\nMapping:")
	}
	for _, line := range d.Mapping {
		fmt.Fprintf(p.stdout, "    %s\n", printable(line))
	}
	for _, r := range d.Records {
		fmt.Fprintf(p.stdout, "\n%s %s\n", r.Prefix, printable(r.JSON))
		table := newTable(p.stdout)
		for _, m := range r.Members {
			from := "from " + m.From
			if m.From == "" {
				from = "its key is absent"
			}
			fmt.Fprintf(table, "    %s\t%s\t%s\n", m.Name, printable(m.Value), printable(from))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return unrecognized
}

// shownFile is a file as --json prints it.
type shownFile struct {
	Type      string        `json:"type"`
	Built     time.Time     `json:"built"`
	IPVersion uint          `json:"ipVersion"`
	Mapping   []string      `json:"mapping"`
	Records   []shownRecord `json:"records"`
}

type shownRecord struct {
	Prefix  string                     `json:"prefix"`
	Record  json.RawMessage            `json:"record"`
	Members map[string]json.RawMessage `json:"members"`
	From    map[string]string          `json:"from"`
}

func shownFileOf(d mmdb.Description) shownFile {
	f := shownFile{d.Type, d.Built, d.Version, d.Mapping, nil}
	for _, r := range d.Records {
		one := shownRecord{r.Prefix.String(), json.RawMessage(r.JSON), map[string]json.RawMessage{},
			map[string]string{}}
		for _, m := range r.Members {
			one.Members[m.Name] = json.RawMessage(m.Value)
			if m.From != "" {
				one.From[m.Name] = m.From
			}
		}
		f.Records = append(f.Records, one)
	}
	return f
}
