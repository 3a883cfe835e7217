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

// ErrSchema says that the database's schema is not the one of this program.
var ErrSchema = errors.New("the database schema is not up to date: run gatehouse migrate up")

// Migration is a step of the schema.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time // zero = not yet
}

// Migrate brings the schema up to date and returns the steps that it took, none when there was nothing to do. Only URL,
// Logger and WriteTimeout of config matter.
func Migrate(ctx context.Context, config Config) ([]Migration, error) {
	var taken []Migration
	err := withDatabase(ctx, config, func(db *sql.DB, e engine) (err error) {
		taken, err = migrate(ctx, db, e)
		return err
	})
	return taken, err
}

// Migrations returns all steps of the schema, in order. It changes nothing in a database that was migrated once.
func Migrations(ctx context.Context, config Config) ([]Migration, error) {
	var all []Migration
	err := withDatabase(ctx, config, func(db *sql.DB, e engine) error {
		provider, err := newProvider(db, e)
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

func withDatabase(ctx context.Context, config Config, use func(*sql.DB, engine) error) error {
	config, err := config.complete()
	if err != nil {
		return err
	}
	pools, err := openPools(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(use(pools.write, pools.engine), pools.close())
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
		locker, err := lock.NewPostgresSessionLocker() // so that two processes do not migrate at once
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

func migrate(ctx context.Context, db *sql.DB, e engine) ([]Migration, error) {
	provider, err := newProvider(db, e)
	if err != nil {
		return nil, err
	}
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

// checkSchema returns ErrSchema unless the schema is the newest that this program knows.
func checkSchema(ctx context.Context, db *sql.DB, e engine) error {
	provider, err := newProvider(db, e)
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if current != target {
		return fmt.Errorf("schema version is %d, not %d: %w", current, target, ErrSchema)
	}
	return nil
}
