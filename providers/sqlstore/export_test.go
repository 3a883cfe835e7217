package sqlstore

import (
	"context"
	"time"

	"gatehouse/actors/audit"
)

// SetFault sets a function that the writer calls before each statement. Its error replaces the
// statement. nil = none.
func SetFault(ctx context.Context, s *Store, fault func(statement string) error) error {
	return s.do(ctx, func(b *batch) error {
		b.conn.fault = fault
		return nil
	})
}

// Execute executes a statement on the writer's connection, outside a transaction.
func Execute(ctx context.Context, s *Store, text string) error {
	return s.do(ctx, func(b *batch) error {
		for _, statement := range []string{"COMMIT", text, "BEGIN"} {
			if _, err := b.conn.raw.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// Pragmas returns a pragma's value on each connection: writer, readers, checkpointer.
func Pragmas(ctx context.Context, s *Store, name string) (values []string, err error) {
	var value string
	err = s.do(ctx, func(b *batch) error { return b.conn.one(ctx, "PRAGMA "+name, nil, &value) })
	values = append(values, value)
	for range sqliteReaders {
		conn, connErr := s.pools.read.Conn(ctx)
		if connErr != nil {
			return nil, connErr
		}
		defer conn.Close()
		if err == nil {
			err = conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value)
		}
		values = append(values, value)
	}
	if err == nil {
		err = s.pools.checkpoint.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value)
	}
	return append(values, value), err
}

// Readers returns the number of open and of idle connections of the readers.
func Readers(s *Store) (open, idle int) {
	stats := s.pools.read.Stats()
	return stats.OpenConnections, stats.Idle
}

// Plan returns SQLite's query plan of a statement.
func Plan(ctx context.Context, s *Store, text string) (steps []string, err error) {
	rows, err := s.pools.checkpoint.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text,
		make([]any, 64)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, rows.Err()
}

// Statements returns the statements of a server in operation, except those that delete a client.
func Statements() []string {
	texts := []string{
		takeCodes.sqlite[8], usedCode, advanceFamily, repeatAdvance, liveFamily,
		revokeFamily, raiseUserEpoch, revokeUserCodes, revokeUserFamilies, raiseClientEpoch,
		revokeGrantCodes, revokeGrantFamilies, revokeConsent,
		lastChange, selectEnds, selectChanges, countChanges, hasTokenEnd,
		retireKey, deleteKeys, deleteExpired, rewrapKey,
		selectCode, selectRefreshToken, selectClient, selectClients,
		clientExists, updateClient,
		selectUserByID, selectUserByEmail, selectUserByPhone, selectUsers, userVersion, otherUser,
		updateUser, lockUser, sessionOwner, selectLink, linkOwner, dueNotices, deleteUserCodes, deleteUserFamilies,
		countTry, hasCode, takeChallenge, selectSends, lastSend, enterSends, hasLongCode, freeSend,
		insertSession, selectSession, selectSessions, updateSession,
		selectPending, confirmPending, takePending, selectTrust, deleteTrustOf, deletePendingOf,
		selectFactorGuesses, deleteFactorGuess, freeFactorGuesses,
		selectEnding + oneSession + ")", selectEnding + otherSessions + ")", selectEnding + surplusSessions + ")",
		deleteWhich + oneSession, deleteWhich + otherSessions, deleteWhich + surplusSessions,
		selectClientSession, findClientSession, addClientSession, tellClients, revokeSessionCodes, revokeSessionFamilies,
		countLogouts, dueLogouts, delayLogout, endLogout,
		selectConsent, selectConsents, grantConsent, hasGrantParties, useSignIn,
		countEnds, dropAccess,
		countEvents, moveCounts.sqlite[8], takeEvents.sqlite[8], firstSince, sweepAudit,
	}
	for _, f := range auditFilters {
		texts = append(texts, EventsStatement(f))
	}
	for _, step := range sweepSteps {
		texts = append(texts, step.text)
	}
	return texts
}

// auditFilters are filters with each choice of an index.
var auditFilters = []audit.Filter{
	{}, {Newest: true}, {Since: time.Unix(1, 0)}, {Action: audit.SignIn}, {UserID: 1},
	{ClientID: "app"}, {UserID: 1, Action: audit.SignIn, Since: time.Unix(1, 0), Newest: true},
	{ClientID: "app", Action: audit.SignIn, Since: time.Unix(1, 0), Newest: true},
}

// EventsStatement returns the statement of a filter.
func EventsStatement(f audit.Filter) string {
	text, _ := selectEvents(f)
	return text
}

// MigrateTo migrates an empty database to a version of the schema.
func MigrateTo(ctx context.Context, config Config, version int64) error {
	return withDatabase(ctx, config, func(p pools) error {
		provider, _, err := openProvider(ctx, p, config.Logger)
		if err != nil {
			return err
		}
		_, err = provider.UpTo(ctx, version)
		return err
	})
}

// LogLimit returns the size from which SQLite's log is emptied.
func LogLimit(free, database, log int64) int64 { return volume{free, database, log}.logLimit() }
