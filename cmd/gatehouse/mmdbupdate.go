package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"gatehouse/providers/mmdb/update"
)

type mmdbUpdate struct {
	File string `arg:"" optional:"" placeholder:"FILE" help:"Settings of the update: YAML, or a GeoIP.conf of geoipupdate. Variables GEOIPUPDATE_… go before such a one, or take its place."`

	Force bool `name:"force" help:"Take files that are smaller or older than the present ones, and download those that have not changed."`
	JSON  bool `name:"json" help:"Print JSON."`
}

// Help is shown by gatehouse mmdb update --help.
func (*mmdbUpdate) Help() string {
	return "Downloads what has changed, and puts each file in the place of the former one at once. A server " +
		"loads it by itself. A file that is smaller or older than the present one is refused. Requests " +
		"are counted in a file, so that no publisher is asked more often than it allows.\n\n" +
		"Exit codes: 0 every file is up to date or may not be asked for at present, 1 a file could not be " +
		"updated, 2 wrong usage.\n\nExample of a settings file:\n\n" +
		"    directory: /var/lib/gatehouse\n" +
		"    files:\n" +
		"      - edition: GeoLite2-City\n" +
		"        account: 12345\n" +
		"        secret-file: /etc/gatehouse/maxmind-key\n" +
		"      - file: country.mmdb\n" +
		"        url: https://example.com/country-{YYYY}-{MM}.mmdb.gz\n" +
		"        checksum: .sha256"
}

// updateSettings is a file that says which database files are updated.
type updateSettings struct {
	path   string
	config *update.Config // nil = none
}

// String returns the file's name.
func (f updateSettings) String() string { return f.path }

func parseUpdateSettings(text string, _ *kong.Tag) (updateSettings, error) {
	if text == "" {
		return updateSettings{}, nil
	}
	config, err := update.Read(text, environment{}.get, readUpdateSecret)
	return updateSettings{text, &config}, err
}

func readUpdateSecret(path string) (string, error) { return readSecret(path, "", "") }

// updated is a result as --json prints it.
type updated struct {
	File    string         `json:"file"`
	Outcome update.Outcome `json:"outcome"`
	Error   string         `json:"error,omitempty"`
	Built   *time.Time     `json:"built"`
	Next    *time.Time     `json:"next,omitempty"`
}

// Run updates the files and prints what became of each.
func (c *mmdbUpdate) Run(p *program) error {
	config, err := update.Read(c.File, p.environment.get, readUpdateSecret)
	switch {
	case err != nil && c.File == "":
		return usagef("give a FILE, or geoipupdate's variables: %v", err)
	case err != nil:
		return usagef("%v", err)
	}
	results, err := update.New(config).Run(p.ctx, c.Force)
	all, bad := []updated{}, 0
	for _, r := range results {
		one := updated{File: r.File, Outcome: r.Outcome}
		if r.Err != nil {
			one.Error = printable(r.Err.Error())
			bad++
		}
		if !r.Built.IsZero() {
			one.Built = &r.Built
		}
		if !r.Next.IsZero() {
			one.Next = &r.Next
		}
		all = append(all, one)
	}
	if c.JSON {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		err = errors.Join(err, encoder.Encode(all))
	}
	for _, one := range all {
		if c.JSON {
			break
		}
		note := one.Error
		switch {
		case one.Next != nil:
			note = "no request before " + one.Next.Format(time.RFC3339)
		case note == "" && one.Built != nil:
			note = "built on " + one.Built.Format(time.DateOnly)
		}
		fmt.Fprintf(p.stdout, "%s: %s, %s\n", printable(one.File), one.Outcome, note)
	}
	if err == nil && bad > 0 {
		return &exitError{exitFailed}
	}
	return err
}
