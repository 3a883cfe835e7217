package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Errors about the version of a database's schema.
var (
	// ErrSchema: the schema is older than this program.
	ErrSchema = errors.New("the database schema is not up to date: run gatehouse migrate up")
	// ErrNewer: the schema is newer than this program, which might misread or damage the data.
	ErrNewer = errors.New("the database was made by a newer gatehouse")
)

// Migration is a migration of the schema.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time // zero = not applied
}

// Migrate brings the schema up to date and returns the migrations that it applied, possibly none.
// It only uses URL, Logger and WriteTimeout of config. It returns ErrNewer if the schema is newer.
func Migrate(ctx context.Context, config Config) ([]Migration, error) {
	var taken []Migration
	err := withDatabase(ctx, config, func(p pools) error {
		provider, _, err := openProvider(ctx, p.write, p.engine)
		if err == nil {
			taken, err = migrate(ctx, provider)
		}
		return err
	})
	return taken, err
}

// Migrations returns all migrations in order. It creates goose's version table if that is missing,
// and changes nothing else. It returns ErrNewer if the schema is newer.
func Migrations(ctx context.Context, config Config) ([]Migration, error) {
	var all []Migration
	err := withDatabase(ctx, config, func(p pools) error {
		provider, _, err := openProvider(ctx, p.write, p.engine)
		if err != nil {
			return err
		}
		states, err := provider.Status(ctx)
		if err != nil {
			return fmt.Errorf("read schema version: %w", err)
		}
		for _, s := range states {
			all = append(all, Migration{s.Source.Version, s.Source.Path, s.AppliedAt})
		}
		return nil
	})
	return all, err
}

func withDatabase(ctx context.Context, config Config, use func(pools) error) error {
	config, err := config.complete()
	if err != nil {
		return err
	}
	p, err := openPools(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(use(p), p.close())
}

func newProvider(db *sql.DB, e engine) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	dialect := goose.DialectSQLite3
	if e == postgresEngine {
		dialect = goose.DialectPostgres
		// Two processes must not migrate concurrently.
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, fmt.Errorf("read migrations: %w", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, db, files, options...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}

// openProvider returns the migrations of db, and whether its schema is old. It returns ErrNewer if
// the schema is newer than this program.
func openProvider(ctx context.Context, db *sql.DB, e engine) (provider *goose.Provider,
	old bool, err error) {
	if provider, err = newProvider(db, e); err != nil {
		return nil, false, err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read schema version: %w", err)
	}
	if current > target {
		return nil, false, fmt.Errorf("schema version is %d, not %d: %w", current, target, ErrNewer)
	}
	return provider, current < target, nil
}

func migrate(ctx context.Context, provider *goose.Provider) ([]Migration, error) {
	results, err := provider.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate database: %w", err)
	}
	var taken []Migration
	for _, r := range results {
		taken = append(taken, Migration{r.Source.Version, r.Source.Path, time.Now()})
	}
	return taken, nil
}

// settleSchema returns ErrNewer if the schema is newer than this program. It migrates an older one,
// or returns ErrSchema if config does not ask for that. It does not migrate for a process that
// could not start afterwards: the version before could no longer start either.
func settleSchema(ctx context.Context, p pools, config Config) error {
	provider, old, err := openProvider(ctx, p.write, p.engine)
	switch {
	case err != nil || !old:
		return err
	case !config.Migrate:
		return ErrSchema
	}
	if err := checkKeyFiles(p, config); err != nil {
		return err
	}
	_, err = migrate(ctx, provider)
	return err
}
