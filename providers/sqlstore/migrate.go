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

// What else may be wrong with a database's schema.
var (
	// ErrSchema says that the schema is older than that of this program.
	ErrSchema = errors.New("the database schema is not up to date: run gatehouse migrate up")
	// ErrNewer says that the schema is newer: this program could read it wrongly, or write what the newer one cannot read.
	ErrNewer = errors.New("the database was made by a newer gatehouse")
)

// Migration is a step of the schema.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time // zero = not yet
}

// Migrate brings the schema up to date and returns the steps that it took, none when there was nothing to do. Only URL,
// Logger and WriteTimeout of config matter. Its error is ErrNewer or another.
func Migrate(ctx context.Context, config Config) ([]Migration, error) {
	var taken []Migration
	err := withDatabase(ctx, config, func(db *sql.DB, e engine) (err error) {
		taken, err = migrate(ctx, db, e)
		return err
	})
	return taken, err
}

// Migrations returns all steps of the schema, in order. It changes nothing in a database that was migrated once. Its error is ErrNewer
// or another.
func Migrations(ctx context.Context, config Config) ([]Migration, error) {
	var all []Migration
	err := withDatabase(ctx, config, func(db *sql.DB, e engine) error {
		provider, _, err := openProvider(ctx, db, e)
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

// openProvider returns what migrates db, and whether there is something to migrate; ErrNewer when it was migrated further than this
// program can.
func openProvider(ctx context.Context, db *sql.DB, e engine) (provider *goose.Provider, old bool, err error) {
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

func migrate(ctx context.Context, db *sql.DB, e engine) ([]Migration, error) {
	provider, _, err := openProvider(ctx, db, e)
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

// checkSchema returns ErrSchema or ErrNewer unless the schema is that of this program.
func checkSchema(ctx context.Context, db *sql.DB, e engine) error {
	_, old, err := openProvider(ctx, db, e)
	if err == nil && old {
		err = ErrSchema
	}
	return err
}
