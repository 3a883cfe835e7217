package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// steps are all migrations that this program knows, in order, as none is applied.
var steps = func() (all []Migration) {
	files, err := migrations.ReadDir("migrations")
	for _, file := range files {
		version, wrong := goose.NumericComponent(file.Name())
		err = errors.Join(err, wrong)
		all = append(all, Migration{Version: version, Name: file.Name()})
	}
	if err != nil {
		panic(err) // a wrong name
	}
	return all
}()

// newestMigration is the last migration that this program knows.
var newestMigration = steps[len(steps)-1].Version

// Errors about the version of a database's schema.
var (
	// ErrSchema: the schema is older than this program.
	ErrSchema = errors.New("the database schema is not up to date: run gatehouse migrate up")
	// ErrNewer: the schema is newer than this program, which might misread or damage the data.
	ErrNewer = errors.New("the database was made by a newer gatehouse, and does not allow this one")
)

// A migration waits lockTimeout for a table of PostgreSQL, again and again until lockTries are used
// up. Other statements that use the table wait behind it, and go on in the pauses.
const (
	lockTimeout = 500 * time.Millisecond
	lockPause   = time.Second
	lockTries   = 7
)

// Migration is a migration of the schema.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time // zero = not applied
}

// Migrate brings the schema up to date and returns the migrations that it applied, possibly none.
// It only uses URL, Logger and WriteTimeout of config. It logs the steps of a schema that is not new,
// at level info. A migration that fails has no effect. It returns ErrNewer if the schema is newer and
// does not allow this program.
func Migrate(ctx context.Context, config Config) (taken []Migration, err error) {
	config.lockTimeout = lockTimeout
	err = withDatabase(ctx, config, func(p pools) error {
		provider, old, err := openProvider(ctx, p, config.Logger)
		log := config.Logger
		if err == nil && isNew(ctx, provider) {
			log = slog.New(slog.DiscardHandler) // nothing takes long
		}
		for err == nil && old {
			var m Migration
			if m, old, err = migrateOnce(ctx, p, provider, log); old {
				taken = append(taken, m)
			}
		}
		return err
	})
	return taken, err
}

// isNew reports whether a database has no step of the schema.
func isNew(ctx context.Context, provider *goose.Provider) bool {
	current, err := provider.GetDBVersion(ctx)
	return err == nil && current == 0
}

// migrateOnce applies the next migration; false = there is none.
func migrateOnce(ctx context.Context, p pools, provider *goose.Provider,
	log *slog.Logger) (_ Migration, applied bool, err error) {
	current, err := provider.GetDBVersion(ctx)
	if err != nil {
		return Migration{}, false, fmt.Errorf("read schema version: %w", err)
	}
	next := slices.IndexFunc(steps, func(m Migration) bool { return m.Version > current })
	if next < 0 {
		return Migration{}, false, nil
	}
	name := steps[next].Name
	log.Info("applying a step of the database schema", "step", name)
	result, err := upByOne(ctx, provider)
	switch {
	case errors.Is(err, goose.ErrNoNextVersion): // another process has applied it
		return Migration{}, false, nil
	case isLockTimeout(err):
		return Migration{}, false, fmt.Errorf("%s tried %d times in %v to lock a table%s: nothing of "+
			"this step is applied; wait for that session or end it (SELECT "+
			"pg_terminate_backend(PID)), and run gatehouse migrate up again", name, lockTries,
			lockTries*lockTimeout+(lockTries-1)*lockPause, tableHolder(ctx, p.read))
	case err != nil:
		return Migration{}, false, fmt.Errorf("%s: nothing of this step is applied, and all before it "+
			"are; mend the cause and run gatehouse migrate up again: %w", name, err)
	}
	log.Info("applied a step of the database schema", "step", name, "duration",
		result.Duration.Round(time.Millisecond).String())
	return Migration{result.Source.Version, name, time.Now()}, true, nil
}

// upByOne applies the next migration, whose locks it waits for.
func upByOne(ctx context.Context, provider *goose.Provider) (*goose.MigrationResult, error) {
	for try := 1; ; try++ {
		result, err := provider.UpByOne(ctx)
		if !isLockTimeout(err) || try == lockTries {
			return result, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

// Migrations returns all migrations in order. It writes nothing. It returns ErrNewer if the schema
// is newer and does not allow this program.
func Migrations(ctx context.Context, config Config) ([]Migration, error) {
	e, path, err := locate(config.URL)
	if err != nil {
		return nil, err
	}
	applied := map[int64]time.Time{}
	if _, err := os.Stat(path); e != sqliteEngine || !errors.Is(err, fs.ErrNotExist) {
		err := withDatabase(ctx, config, func(p pools) (err error) {
			applied, err = readApplied(ctx, p)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	all := slices.Clone(steps)
	for i, m := range all {
		all[i].Applied = applied[m.Version]
	}
	return all, nil
}

// readApplied returns the migrations that a database has, and when they were applied.
func readApplied(ctx context.Context, p pools) (map[int64]time.Time, error) {
	applied := map[int64]time.Time{}
	exists := "SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version'"
	if p.engine == postgresEngine {
		exists = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('goose_db_version')"
	}
	var n int
	if err := p.read.QueryRowContext(ctx, exists).Scan(&n); err != nil || n == 0 {
		return applied, wrap("read schema version", err)
	}
	rows, err := p.read.QueryContext(ctx, "SELECT version_id, tstamp FROM goose_db_version "+
		"WHERE is_applied AND version_id > 0 ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	defer rows.Close()
	newest := int64(0)
	for rows.Next() {
		var version int64
		var at time.Time
		if err := rows.Scan(&version, &at); err != nil {
			return nil, fmt.Errorf("read schema version: %w", err)
		}
		applied[version], newest = at, max(newest, version)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	return applied, checkAllowed(ctx, p, newest)
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

// newProvider gives goose each file whole. Where goose itself looks for the ends of statements, it
// needs 4 MiB for each line.
func newProvider(p pools, log *slog.Logger) (*goose.Provider, error) {
	all := make([]*goose.Migration, len(steps))
	for i, m := range steps {
		all[i] = goose.NewGoMigration(m.Version, &goose.GoFunc{
			RunTx: func(ctx context.Context, tx *sql.Tx) error {
				text, err := migrations.ReadFile("migrations/" + m.Name)
				if err == nil {
					_, err = tx.ExecContext(ctx, string(text))
				}
				return err
			}}, nil)
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(all...)}
	dialect := goose.DialectSQLite3
	if p.engine == postgresEngine {
		dialect = goose.DialectPostgres
		options = append(options, goose.WithSessionLocker(migrationLock{p.read, log}))
	}
	provider, err := goose.NewProvider(dialect, p.write, nil, options...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}

// openProvider returns the migrations of a database, and whether its schema is old. It returns
// ErrNewer if the schema is newer than this program and does not allow it.
func openProvider(ctx context.Context, p pools, log *slog.Logger) (provider *goose.Provider,
	old bool, err error) {
	if provider, err = newProvider(p, log); err != nil {
		return nil, false, err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read schema version: %w", err)
	}
	return provider, current < target, checkAllowed(ctx, p, current)
}

// checkAllowed returns ErrNewer unless a program that knows newestMigration may use a schema at
// current (migration 18).
func checkAllowed(ctx context.Context, p pools, current int64) error {
	if current <= newestMigration {
		return nil
	}
	var oldest int64
	err := p.read.QueryRowContext(ctx, "SELECT oldest FROM schema_versions WHERE version = $1",
		current).Scan(&oldest)
	if err != nil || oldest > newestMigration {
		return fmt.Errorf("schema version is %d, not %d: %w", current, newestMigration, ErrNewer)
	}
	return nil
}

// settleSchema returns ErrNewer if the schema is newer than this program and does not allow it. It
// migrates an older one, or returns ErrSchema if config does not ask for that. It does not migrate
// for a process that could not start afterwards: the version before could no longer start either.
func settleSchema(ctx context.Context, p pools, config Config) error {
	_, old, err := openProvider(ctx, p, config.Logger)
	switch {
	case err != nil || !old:
		return err
	case !config.Migrate:
		return ErrSchema
	}
	if err := checkKeyFiles(p, config); err != nil {
		return err
	}
	_, err = Migrate(ctx, config)
	return err
}

// migrationLock lets one process at a time migrate a PostgreSQL database.
type migrationLock struct {
	read *sql.DB
	log  *slog.Logger
}

// SessionLock waits for the lock, for five minutes at most. It logs whom it waits for.
func (l migrationLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	for range 30 {
		within, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 10))
		if err == nil {
			err = within.SessionLock(ctx, conn)
		}
		holder := ""
		if err != nil {
			holder = holderOf(ctx, l.read, fmt.Sprintf("l.locktype = 'advisory' AND "+
				"(l.classid::bigint << 32) + l.objid::bigint = %d", lock.DefaultLockID))
		}
		if holder == "" {
			return err
		}
		l.log.Warn("another process migrates this database: waiting for it", "holder", holder)
	}
	return errors.New("another process has migrated this database for five minutes")
}

// SessionUnlock releases the lock.
func (migrationLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	held, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	return held.SessionUnlock(ctx, conn)
}

// isLockTimeout reports whether err is that of lock_timeout of PostgreSQL.
func isLockTimeout(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "55P03"
}

// tableHolder returns the table of the schema that is held the longest, and by whom, as part of a
// sentence.
func tableHolder(ctx context.Context, read *sql.DB) string {
	holder := holderOf(ctx, read, "l.locktype = 'relation' AND l.relation IN (SELECT oid FROM "+
		"pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(current_schema()))")
	if holder == "" {
		return ", which was locked until now"
	}
	return ": " + holder
}

// holderOf returns the session that has held one of those locks for the longest, what it holds, its
// state and its last query; "" = none does.
func holderOf(ctx context.Context, read *sql.DB, locks string) string {
	var pid int
	var name, state, query, held string
	err := read.QueryRowContext(ctx, `SELECT a.pid, a.application_name,
		coalesce(a.state, 'unknown'), left(regexp_replace(a.query, '\s+', ' ', 'g'), 200),
		coalesce('table ' || CAST(CAST(l.relation AS regclass) AS TEXT), 'the lock')
		FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.granted AND a.pid <> pg_backend_pid() AND a.datname = current_database()
		AND `+locks+` ORDER BY a.xact_start NULLS LAST,
		CASE l.mode WHEN 'AccessExclusiveLock' THEN 0 ELSE 1 END LIMIT 1`).Scan(
		&pid, &name, &state, &query, &held)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s that the PostgreSQL session with the PID %d (%s, %s) holds, last "+
		"query %q", held, pid, name, state, query)
}
