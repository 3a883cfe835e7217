// Package sqlstore keeps clients, users, codes and tokens in SQLite or PostgreSQL: it is an oauth.Store and an
// account.Store.
//
// All that is written goes through one goroutine, in the order of submission. It takes whatever waits, executes it in one
// transaction, and answers after the commit: the disk is waited for once a batch and not once a token. What must
// be decided (is this code still unused, is this refresh token the current one) is decided by the condition of an UPDATE, so that
// several processes on one PostgreSQL decide it once.
//
// Times are kept to the millisecond and come back in UTC; a zero time stays zero. Text is UTF-8 without NUL.
package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var (
	_ oauth.Store   = (*Store)(nil)
	_ account.Store = (*Store)(nil)
)

// Store is an open database. Its methods may be called by many goroutines. Close ends it.
type Store struct {
	config   Config
	pools    pools
	lock     *os.File  // on SQLite; nil = none
	server   *sql.Conn // holds the lock on PostgreSQL; nil = none
	queue    *queue
	conn     *conn // of the writer alone
	metrics  *storeMetrics
	pageSize int64         // of SQLite
	logGrew  chan struct{} // tells the checkpointer of commits
	reads    statements

	stop    context.CancelFunc // ends what runs beside the writer
	beside  sync.WaitGroup
	written chan struct{} // closed when the writer has ended

	closing sync.Once
	closed  error
}

// Open opens a database, makes it when it is a SQLite file that does not exist, and starts to write and to clean up. Its error is one
// line without the password of the URL; it is ErrInUse, ErrLinked, ErrSchema, ErrNewer or another.
func Open(ctx context.Context, config Config) (*Store, error) {
	config, err := config.complete()
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	lock, err := lockExclusive(config)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := open(ctx, config)
	if err != nil {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.lock = lock
	return s, nil
}

func lockExclusive(config Config) (*os.File, error) {
	e, path, err := locate(config.URL)
	if err != nil || e != sqliteEngine || !config.Exclusive {
		return nil, err
	}
	if err := checkName(path); err != nil { // before a lock file stands beside the wrong one
		return nil, err
	}
	return lockFile(path)
}

func open(ctx context.Context, config Config) (*Store, error) {
	p, err := openPools(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := p.checkWritable(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if config.Migrate {
		_, err = migrate(ctx, p.write, p.engine)
	} else {
		err = checkSchema(ctx, p.write, p.engine)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	if p.engine == sqliteEngine {
		if err := warm(ctx, p.read); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	s := &Store{
		config: config, pools: p, queue: newQueue(config.QueueLength), conn: newConn(p),
		reads: statements{db: p.read}, written: make(chan struct{}), logGrew: make(chan struct{}, 1),
	}
	if s.metrics, err = newStoreMetrics(s); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if p.engine == sqliteEngine {
		if err := p.write.QueryRowContext(ctx, "PRAGMA page_size").Scan(&s.pageSize); err != nil {
			s.metrics.unregister()
			return nil, errors.Join(fmt.Errorf("open database: %w", err), p.close())
		}
	}
	if p.engine == postgresEngine && config.Exclusive {
		if s.server, err = markServer(ctx, p.write, config.Logger); err != nil {
			s.metrics.unregister()
			return nil, errors.Join(err, p.close())
		}
	}
	s.start()
	return s, nil
}

func (s *Store) start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.write()
	s.beside.Go(func() { s.sweepUntil(ctx) })
	if s.pools.checkpoint != nil {
		s.beside.Go(func() { s.checkpointUntil(ctx) })
	}
}

// Close refuses new writes, makes those that wait durable, and closes the database. It takes no longer than these writes do.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.stop()
		s.queue.close()
		<-s.written
		s.beside.Wait()
		s.metrics.unregister()
		errs := []error{s.conn.close(), s.reads.close()}
		if s.server != nil {
			if err := s.server.Close(); !errors.Is(err, driver.ErrBadConn) { // it may have been lost, and the lock with it
				errs = append(errs, err)
			}
		}
		if s.config.Exclusive {
			errs = append(errs, s.truncateWAL())
		}
		errs = append(errs, s.pools.close())
		if s.lock != nil {
			errs = append(errs, s.lock.Close())
		}
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

// pools are the connections to a database. On PostgreSQL write and read are the same pool and checkpoint is nil.
type pools struct {
	engine                  engine
	path                    string
	write, read, checkpoint *sql.DB
}

func openPools(ctx context.Context, config Config) (p pools, err error) {
	if p.engine, p.path, err = locate(config.URL); err != nil {
		return p, err
	}
	if p.engine == postgresEngine {
		if p.write, err = openPostgres(config); err != nil {
			return p, err
		}
		p.read = p.write
		if err = checkPostgres(ctx, p.write); err != nil {
			return p, errors.Join(err, p.close())
		}
		return p, nil
	}
	if p.write, p.read, p.checkpoint, err = openSQLite(p.path, config); err != nil {
		return p, err
	}
	if err = p.write.PingContext(ctx); err != nil {
		return p, errors.Join(fmt.Errorf("open database: %w", err), p.close())
	}
	return p, nil
}

// checkWritable finds out at once that nothing can be written: a file without the permission, a server that follows another.
func (p pools) checkWritable(ctx context.Context) error {
	if p.engine == sqliteEngine {
		if _, err := p.write.ExecContext(ctx, "BEGIN IMMEDIATE; PRAGMA user_version = 1; ROLLBACK"); err != nil {
			return fmt.Errorf("write to database: %w", err)
		}
		return nil
	}
	var readOnly string
	if err := p.write.QueryRowContext(ctx, "SELECT current_setting('transaction_read_only')").Scan(&readOnly); err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	if readOnly == "on" {
		return errors.New("the database server lets nobody write")
	}
	return nil
}

func (p pools) close() error {
	if p.engine == postgresEngine {
		return p.write.Close()
	}
	return errors.Join(p.read.Close(), p.checkpoint.Close(), p.write.Close())
}

// millis and fromMillis convert between times and what is kept of them.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
