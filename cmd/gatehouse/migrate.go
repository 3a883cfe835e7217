package main

import (
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/providers/sqlstore"
)

// migrateCommand is gatehouse migrate.
type migrateCommand struct {
	Status migrateStatus `cmd:"" help:"List the schema's migrations and which the database has."`
	Up     migrateUp     `cmd:"" help:"Apply the missing migrations."`
}

// Help is shown by gatehouse migrate --help.
func (*migrateCommand) Help() string {
	return "Example:\n\n    gatehouse migrate up --database-url sqlite:gatehouse.db\n    gatehouse migrate status --database-url sqlite:gatehouse.db"
}

// migrateFlags are the flags of both.
type migrateFlags struct {
	JSON bool `name:"json" help:"Print JSON."`
	databaseSettings
	ConfigFile configFile `name:"config" placeholder:"FILE" help:"Settings file, as of gatehouse serve."`
}

func (f *migrateFlags) config(p *program) sqlstore.Config {
	return sqlstore.Config{URL: string(f.DatabaseURL), Logger: p.progressLog()}
}

type migrateStatus struct{ migrateFlags }

// Help is shown by gatehouse migrate status --help.
func (*migrateStatus) Help() string {
	return "Example:\n\n    gatehouse migrate status --database-url sqlite:gatehouse.db"
}

// Run prints all migrations.
func (c *migrateStatus) Run(p *program) error {
	migrations, err := sqlstore.Migrations(p.ctx, c.config(p))
	if err != nil {
		return fmt.Errorf("%s: %w", p.resolver.given("database-url"), err)
	}
	return c.print(p, migrations)
}

type migrateUp struct{ migrateFlags }

// Help is shown by gatehouse migrate up --help.
func (*migrateUp) Help() string {
	return "Example:\n\n    gatehouse migrate up --database-url sqlite:gatehouse.db"
}

// Run applies the missing migrations and prints them.
func (c *migrateUp) Run(p *program) error {
	applied, err := sqlstore.Migrate(p.ctx, c.config(p))
	if err != nil {
		return fmt.Errorf("%s: %w", p.resolver.given("database-url"), err)
	}
	if len(applied) == 0 && !c.JSON {
		_, err := fmt.Fprintln(p.stdout, "The schema is up to date.")
		return err
	}
	return c.print(p, applied)
}

// migrationRow is a migration as it is printed.
type migrationRow struct {
	Version int64   `json:"version"`
	Name    string  `json:"name"`
	Applied *string `json:"applied_at"` // RFC 3339; null = not yet
}

func (f *migrateFlags) print(p *program, migrations []sqlstore.Migration) error {
	rows := make([]migrationRow, len(migrations))
	for i, s := range migrations {
		rows[i] = migrationRow{Version: s.Version, Name: s.Name}
		if !s.Applied.IsZero() {
			at := s.Applied.UTC().Format(time.RFC3339)
			rows[i].Applied = &at
		}
	}
	if f.JSON {
		text, err := json.Marshal(rows)
		if err != nil {
			return fmt.Errorf("print migrations: %w", err)
		}
		return printJSON(p.stdout, text)
	}
	table := newTable(p.stdout)
	fmt.Fprintln(table, "VERSION\tNAME\tAPPLIED")
	for _, row := range rows {
		applied := "not yet"
		if row.Applied != nil {
			applied = *row.Applied
		}
		fmt.Fprintf(table, "%d\t%s\t%s\n", row.Version, row.Name, applied)
	}
	return table.Flush()
}
