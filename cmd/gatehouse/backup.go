package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"gatehouse/providers/sqlstore"
)

type backupCommand struct {
	File string `arg:"" name:"file" placeholder:"FILE" help:"The file to write. It must not exist."`
	JSON bool   `name:"json" help:"Print JSON."`
	databaseSettings
	keySettings
	ConfigFile configFile `name:"config" placeholder:"FILE" help:"Settings file, as of gatehouse serve."`
}

// Help is shown by gatehouse backup --help.
func (*backupCommand) Help() string {
	return "Writes a consistent copy of a SQLite database, also while a server runs on it. The copy " +
		"has everything that was acknowledged before the command began. Only its owner may read it. " +
		"The key file is not in it: keep a copy of that elsewhere. A PostgreSQL database is backed " +
		"up with pg_dump.\n\n" +
		"Example:\n\n    gatehouse backup --database-url sqlite:gatehouse.db gatehouse-backup.db"
}

// Run writes the backup.
func (c *backupCommand) Run(p *program) error {
	var progress func(written, all int64)
	if isTerminal(p.stderr) {
		progress = func(written, all int64) {
			fmt.Fprintf(p.stderr, "\r%d of about %d MB", written>>20, all>>20)
		}
		defer fmt.Fprint(p.stderr, "\r\033[K")
	}
	size, err := sqlstore.Backup(p.ctx, c.storeConfig(p, c.databaseSettings), c.File, progress)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: choose another name; nothing is overwritten", err)
	case err != nil:
		return err
	}
	keys := c.shown(p, c.DatabaseURL)
	if !c.JSON {
		_, err := fmt.Fprintf(p.stdout,
			"%s is written: %d bytes.\nThe key file (%s) is not in it. Keep a copy of it elsewhere: "+
				"without it the backup's keys are of no use.\n", c.File, size, strings.Join(keys, ", "))
		return err
	}
	text, err := json.Marshal(map[string]any{"file": c.File, "bytes": size, "key_files_left_out": keys})
	if err != nil {
		return fmt.Errorf("print backup: %w", err)
	}
	return printJSON(p.stdout, text)
}
