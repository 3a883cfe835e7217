package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

type initCommand struct {
	JSON        bool `name:"json" help:"Print JSON."`
	NewOperator bool `name:"new-operator" help:"Create another operator client, also if there is one."`
	databaseSettings
	keySettings
	ConfigFile configFile `name:"config" placeholder:"FILE" help:"Settings file, as of gatehouse serve."`
}

// Help is shown by gatehouse init --help.
func (*initCommand) Help() string {
	return "Brings the database up to date, creates the first operator client, and prints its id " +
		"and secret once. For SQLite it makes the key file if there is none and --key-file is not " +
		"given. It opens the database itself, also while a server runs on it. If there is an " +
		"operator client, it exits 1 unless --new-operator is given.\n\n" +
		"Example:\n\n    gatehouse init --database-url sqlite:gatehouse.db --new-operator"
}

// operator is what init prints.
type operator struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// Run creates an operator client.
func (c *initCommand) Run(p *program) error {
	config := c.storeConfig(p, c.databaseSettings)
	config.Migrate = true
	made, err := p.makeOperator(config, c.NewOperator)
	if err != nil {
		return err
	}
	if c.JSON {
		text, err := json.Marshal(made)
		if err != nil {
			return fmt.Errorf("print operator: %w", err)
		}
		return printJSON(p.stdout, text)
	}
	_, err = fmt.Fprintf(p.stdout,
		"The operator client is created. Keep its secret: it is not shown again.\n\n"+
			"    export GATEHOUSE_CLIENT_ID=%s\n    export GATEHOUSE_CLIENT_SECRET=%s\n\n"+
			"With these, gatehouse client, user, keys and audit work.\n",
		made.ClientID, made.ClientSecret)
	return err
}

// makeOperator stores a new operator client. If there is one, another must be requested.
func (p *program) makeOperator(
	config sqlstore.Config, another bool,
) (made operator, err error) {
	store, err := sqlstore.Open(p.ctx, config)
	if err != nil {
		return operator{}, p.storeError(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if !another {
		there, err := hasOperator(p.ctx, store)
		if err != nil {
			return operator{}, err
		}
		if there {
			return operator{}, errors.New(
				"there is an operator client already: --new-operator creates another one")
		}
	}
	secret, kept := oauth.NewSecret(time.Now())
	client := &oauth.Client{
		ID: uuid.NewString(), Name: "Operator", Operator: true, Scopes: oauth.ServerOperations,
		Grants:  oauth.ClientCredentialsGrant,
		Secrets: []oauth.Secret{kept}, Created: kept.Created,
	}
	if err := client.CheckRegistration(); err != nil {
		return operator{}, err
	}
	ctx := audit.With(p.ctx, audit.Event{Action: audit.ClientCreated,
		Subject: audit.OfClient(client.ID)})
	if err := store.CreateClient(ctx, client); err != nil {
		return operator{}, fmt.Errorf("keep the operator client: %w", err)
	}
	return operator{client.ID, secret}, nil
}

// hasOperator reports whether there is an operator client that is not disabled.
func hasOperator(ctx context.Context, store oauth.Store) (bool, error) {
	const page = 200
	for after := ""; ; {
		clients, err := store.Clients(ctx, after, page)
		if err != nil {
			return false, fmt.Errorf("read clients: %w", err)
		}
		for _, c := range clients {
			if c.Operator && !c.Disabled {
				return true, nil
			}
			after = c.ID
		}
		if len(clients) < page {
			return false, nil
		}
	}
}

// plainLog is the log of a command that does not serve: warnings as text on stderr.
func (p *program) plainLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// progressLog also says what a long command does.
func (p *program) progressLog() *slog.Logger { return slog.New(slog.NewTextHandler(p.stderr, nil)) }
