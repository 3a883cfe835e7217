package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"gatehouse/actors/account"
	"gatehouse/loadtest"
	"gatehouse/providers/sqlstore"
)

// sessions measures a database with users who each have a session.
func sessions(ctx context.Context, c config, database string) (err error) {
	if err := fillSessions(ctx, database, c); err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	fmt.Printf("%d users with a session each\n", c.sessions)
	local, err := startOften(ctx, c, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Stop()) }()
	for _, load := range []struct {
		scenario, what string
		users          int
	}{
		{"openid", "codes for an id_token by RS256", 16},
		{"authorize", "sign-ins with a password", 4},
	} {
		scenario, err := loadtest.ScenarioNamed(load.scenario)
		if err != nil {
			return err
		}
		result, err := scenario.Run(ctx, loadtest.Setup{Target: local.Target},
			loadtest.Config{Concurrency: load.users, Duration: c.length})
		if err != nil {
			return err
		}
		fmt.Printf("%s: %.0f/s, %d of %d requests failed\n", load.what, result.Achieved,
			result.All.Failed, result.All.Attempts)
	}
	return printMemory(ctx, local)
}

// fillSessions creates the database with users, and a session of each.
func fillSessions(ctx context.Context, url string, c config) (err error) {
	store, err := sqlstore.Open(ctx, sqlstore.Config{
		URL: url, Migrate: true, Exclusive: true, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	now := time.Now()
	users, err := createUsers(ctx, store, c.sessions, c.passkeys, now)
	if err != nil {
		return err
	}
	errs := make([]error, len(users))
	var made sync.WaitGroup
	slots := make(chan struct{}, 256)
	for i, id := range users {
		slots <- struct{}{}
		made.Go(func() {
			s := &account.Session{UserID: id, Created: now, SignedIn: now, Seen: now,
				Expires: now.Add(14 * 24 * time.Hour), Device: "Firefox on Linux", AMR: []string{"pwd"}}
			rand.Read(s.Hash[:])
			_, errs[i] = store.CreateSession(ctx, s)
			<-slots
		})
	}
	made.Wait()
	return errors.Join(errs...)
}
