package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"gatehouse/actors/oauth"
)

// clientColumns and clientParts read a client with one row for each pair of redirect URI and
// secret, so that one statement reads all of it.
const clientColumns = `SELECT c.id, c.name, c.uri, c.public, c.operator, c.introspect_any, c.loopback_any_port, c.disabled,
c.detail_approved, c.scopes, c.grants, c.created, c.version, c.epoch, c.tokens_per_minute, c.options, c.awaits,
COALESCE(u.position, -1), COALESCE(u.uri, ''), COALESCE(s.position, -1), COALESCE(s.id, ''), s.hash, COALESCE(s.created, 0)
FROM `

const clientParts = ` c LEFT JOIN redirect_uris u ON u.client_id = c.id LEFT JOIN client_secrets s ON s.client_id = c.id
ORDER BY c.id, u.position, s.position`

const (
	selectClient  = clientColumns + `(SELECT * FROM clients WHERE id = $1)` + clientParts
	selectClients = clientColumns + `(SELECT * FROM clients WHERE id > $1 ORDER BY id LIMIT CAST($2 AS BIGINT))` +
		clientParts
	selectSettled = clientColumns +
		`(SELECT * FROM clients WHERE id > $1 AND awaits = 0 ORDER BY id LIMIT CAST($2 AS BIGINT))` + clientParts
	selectExchangers = clientColumns +
		`(SELECT * FROM clients WHERE options LIKE '%"exchange":%')` + clientParts // as the index says
)

// Client implements oauth.Store.
func (s *Store) Client(ctx context.Context, id string) (*oauth.Client, error) {
	if !isText(id) {
		return nil, fmt.Errorf("read client: %w", oauth.ErrNotFound)
	}
	clients, err := s.readClients(ctx, selectClient, id)
	if err == nil && len(clients) == 0 {
		err = oauth.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read client: %w", err)
	}
	return clients[0], nil
}

// Clients implements oauth.Store.
func (s *Store) Clients(ctx context.Context, after string, limit int) ([]*oauth.Client, error) {
	return s.clientPage(ctx, selectClients, after, limit)
}

// Exchangers implements oauth.Store.
func (s *Store) Exchangers(ctx context.Context) ([]*oauth.Client, error) {
	clients, err := s.readClients(ctx, selectExchangers)
	return clients, wrap("read clients", err)
}

func (s *Store) clientPage(
	ctx context.Context, text, after string, limit int,
) ([]*oauth.Client, error) {
	if !isText(after) {
		return nil, fmt.Errorf("read clients: %w", errText)
	}
	clients, err := s.readClients(ctx, text, after, max(0, limit))
	return clients, wrap("read clients", err)
}

func (s *Store) readClients(ctx context.Context, text string,
	args ...any) (clients []*oauth.Client, err error) {
	err = readAll(ctx, s, text, args, scanClients(&clients))
	return clients, err
}

// scanClients returns a function that takes the rows of one statement and appends their clients.
func scanClients(clients *[]*oauth.Client) func(row) error {
	return func(r row) (err error) {
		var c oauth.Client
		var uri, options string
		var secret oauth.Secret
		var hash []byte
		var created, awaits, uriPosition, secretPosition, secretCreated int64
		if err := r.Scan(&c.ID, &c.Name, &c.URI, &c.Public, &c.Operator, &c.IntrospectAny,
			&c.LoopbackAnyPort, &c.Disabled, &c.DetailApproved, &c.Scopes, &c.Grants,
			&created, &c.Version, &c.Epoch, &c.TokensPerMinute, &options, &awaits,
			&uriPosition, &uri, &secretPosition, &secret.ID, &hash, &secretCreated); err != nil {
			return err
		}
		all := *clients
		if len(all) == 0 || all[len(all)-1].ID != c.ID {
			c.Created, c.Awaits = fromMillis(created), fromMillis(awaits)
			if c.Options, err = parseOptions(options); err != nil {
				return err
			}
			all = append(all, &c)
			*clients = all
		}
		last := all[len(all)-1]
		if uriPosition == int64(len(last.RedirectURIs)) {
			last.RedirectURIs = append(last.RedirectURIs, uri)
		}
		if secretPosition == int64(len(last.Secrets)) {
			secret.Hash, secret.Created = oauth.Hash(hash), fromMillis(secretCreated)
			last.Secrets = append(last.Secrets, secret)
		}
		return nil
	}
}

const (
	insertClient = `INSERT INTO clients
(id, name, public, operator, introspect_any, loopback_any_port, disabled, detail_approved, scopes, grants, created, version, uri,
tokens_per_minute, options, awaits, epoch, review)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) ON CONFLICT (id) DO NOTHING RETURNING epoch`
	formerEpoch = `SELECT epoch FROM former_clients WHERE id = $1`
	keepEpoch   = `INSERT INTO former_clients (id, epoch) SELECT id, epoch FROM clients WHERE id = $1
ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch`
	updateClient = `UPDATE clients SET name = $2, public = $3, operator = $4, introspect_any = $5, loopback_any_port = $6,
disabled = $7, detail_approved = $8, scopes = $9, grants = $10, created = $11, uri = $13,
tokens_per_minute = $14, options = $15, awaits = CAST($16 AS BIGINT), network = CASE WHEN CAST($16 AS BIGINT) = 0 THEN '' ELSE network END,
caller = CASE WHEN CAST($16 AS BIGINT) = 0 THEN '' ELSE caller END, review = CASE WHEN review = 0 THEN 0 ELSE CAST($17 AS BIGINT) END,
version = version + 1
WHERE id = $1 AND version = $12 RETURNING epoch`
	clientExists  = `SELECT id FROM clients WHERE id = $1`
	storedOptions = `SELECT options FROM clients WHERE id = $1 AND version = $2`

	selectLogo = `SELECT type, data FROM client_logos WHERE client_id = $1`
	deleteLogo = `DELETE FROM client_logos WHERE client_id = $1`
	putLogo    = `INSERT INTO client_logos (client_id, type, data) VALUES ($1, $2, $3)
ON CONFLICT (client_id) DO UPDATE SET type = excluded.type, data = excluded.data`

	deleteRedirectURIs = `DELETE FROM redirect_uris WHERE client_id = $1`
	insertRedirectURI  = `INSERT INTO redirect_uris (client_id, position, uri) VALUES ($1, $2, $3)`
	deleteSecrets      = `DELETE FROM client_secrets WHERE client_id = $1`
	insertSecret       = `INSERT INTO client_secrets (client_id, position, id, hash, created) VALUES ($1, $2, $3, $4, $5)`
)

var errText = errors.New("text must be UTF-8 without NUL")

// CreateClient implements oauth.Store.
func (s *Store) CreateClient(ctx context.Context, c *oauth.Client) error {
	none := func(*batch) error { return nil }
	return s.createClient(ctx, c, none, none)
}

// createClient inserts a client between check and then, unless one of them returns an error.
func (s *Store) createClient(
	ctx context.Context, c *oauth.Client, check, then func(*batch) error,
) error {
	created := *c
	created.Version, created.Epoch = 0, time.Now().UnixMicro()
	err := s.do(ctx, func(b *batch) error {
		if err := check(b); err != nil {
			return err
		}
		if err := b.createClient(&created); err != nil {
			return err
		}
		return then(b)
	})
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	c.Version, c.Epoch = created.Version, created.Epoch
	return nil
}

// UpdateClient implements oauth.Store. It sets c's Epoch.
func (s *Store) UpdateClient(ctx context.Context, c *oauth.Client) error {
	var epoch int64
	err := s.do(ctx, func(b *batch) (err error) {
		epoch, err = b.updateClient(c)
		return err
	})
	if err != nil {
		return fmt.Errorf("update client: %w", err)
	}
	c.Version++
	c.Epoch = epoch
	return nil
}

func (b *batch) createClient(c *oauth.Client) error {
	var former int64
	err := b.conn.one(b.ctx, formerEpoch, []any{c.ID}, &former)
	switch {
	case err == nil:
		c.Epoch = max(c.Epoch, former+1) // the clock may have been set back since
		b.note(clientChange, c.ID)       // others may know the former client
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	_, err = b.putClient(insertClient, "", c, c.Epoch, reviewOf(c, time.Now()))
	if errors.Is(err, sql.ErrNoRows) {
		return refusal{oauth.ErrClientIDTaken}
	}
	return err
}

func (b *batch) updateClient(c *oauth.Client) (epoch int64, err error) {
	var stored string
	err = b.conn.one(b.ctx, storedOptions, []any{c.ID, c.Version}, &stored)
	if err == nil {
		epoch, err = b.putClient(updateClient, stored, c, millis(time.Now().Add(oauth.ConsentWithin)))
	}
	if err == nil {
		b.note(clientChange, c.ID)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return epoch, err
	}
	err = b.conn.one(b.ctx, clientExists, []any{c.ID}, new(string))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, refusal{oauth.ErrNotFound}
	case err != nil:
		return 0, err
	}
	return 0, refusal{oauth.ErrConflict}
}

// putClient writes c with its redirect URIs and secrets and returns its epoch. If the statement in
// text changes no row, it writes nothing and returns sql.ErrNoRows. stored are the options of the row
// that it replaces; "" = none. more are values after c's.
func (b *batch) putClient(
	text, stored string, c *oauth.Client, more ...any,
) (epoch int64, err error) {
	if !isText(c.ID) || !isText(c.Name) || !isText(c.URI) {
		return 0, refusal{errText}
	}
	options, err := optionsText(&c.Options, stored)
	if err != nil {
		return 0, err
	}
	args := append([]any{c.ID, c.Name, c.Public, c.Operator, c.IntrospectAny,
		c.LoopbackAnyPort, c.Disabled, c.DetailApproved, int64(c.Scopes), int64(c.Grants),
		millis(c.Created), c.Version, c.URI, c.TokensPerMinute, options, millis(c.Awaits)}, more...)
	if err := b.conn.one(b.ctx, text, args, &epoch); err != nil {
		return 0, err
	}
	if err := b.putRedirectURIs(c); err != nil {
		return 0, err
	}
	if err := b.putSecrets(c); err != nil {
		return 0, err
	}
	return epoch, b.putLogo(c)
}

// knownOptions are the names of the members of a client's options that this program knows.
var knownOptions = func() (names []string) {
	for field := range reflect.TypeFor[oauth.ClientOptions]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// optionsText returns the stored form of a client's options: "" for none. It keeps the members of
// stored that this program does not know: a newer one, which shares the database, has set them.
func optionsText(o *oauth.ClientOptions, stored string) (string, error) {
	members := map[string]json.RawMessage{}
	if stored != "" {
		if err := json.Unmarshal([]byte(stored), &members); err != nil {
			return "", fmt.Errorf("parse options: %w", err)
		}
	}
	for _, name := range knownOptions {
		delete(members, name)
	}
	text, err := json.Marshal(o)
	if err == nil && len(members) > 0 {
		if err = json.Unmarshal(text, &members); err == nil {
			text, err = json.Marshal(members)
		}
	}
	if err != nil {
		return "", fmt.Errorf("encode options: %w", err)
	}
	if string(text) == "{}" {
		return "", nil
	}
	if !isText(string(text)) {
		return "", refusal{errText}
	}
	return string(text), nil
}

// parseOptions returns the options of a stored form.
func parseOptions(text string) (o oauth.ClientOptions, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &o)
	}
	return o, wrap("parse options", err)
}

func (b *batch) putRedirectURIs(c *oauth.Client) error {
	_, err := b.conn.exec(b.ctx, deleteRedirectURIs, c.ID)
	for i, uri := range c.RedirectURIs {
		if err == nil {
			_, err = b.conn.exec(b.ctx, insertRedirectURI, c.ID, i, uri)
		}
	}
	return err
}

func (b *batch) putSecrets(c *oauth.Client) error {
	_, err := b.conn.exec(b.ctx, deleteSecrets, c.ID)
	for i, secret := range c.Secrets {
		if err == nil {
			_, err = b.conn.exec(b.ctx, insertSecret, c.ID, i, secret.ID, secret.Hash[:],
				millis(secret.Created))
		}
	}
	return err
}

func (b *batch) putLogo(c *oauth.Client) (err error) {
	switch logo := c.NewLogo; {
	case c.Options.Logo == "":
		_, err = b.conn.exec(b.ctx, deleteLogo, c.ID)
	case logo != nil:
		_, err = b.conn.exec(b.ctx, putLogo, c.ID, logo.Type, logo.Data)
	}
	return err
}

// ClientLogo implements oauth.Store.
func (s *Store) ClientLogo(ctx context.Context, id string) (*oauth.Logo, error) {
	var logo oauth.Logo
	err := readAll(ctx, s, selectLogo, []any{id}, func(r row) error {
		return r.Scan(&logo.Type, &logo.Data)
	})
	if err == nil && logo.Type == "" {
		err = oauth.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read the picture of a client: %w", err)
	}
	return &logo, nil
}

// Deleting a client cascades to its redirect URIs, secrets, picture and consents; deleting a family cascades
// to its refresh tokens.
const (
	deleteClient         = `DELETE FROM clients WHERE id = $1`
	deleteClientCodes    = `DELETE FROM authorization_codes WHERE client_id = $1`
	deleteClientFamilies = `DELETE FROM families WHERE client_id = $1`
)

// DeleteClient implements oauth.Store. It returns ErrNotFound if there is no such client. It scans
// all families and codes, and other writes wait for that.
func (s *Store) DeleteClient(ctx context.Context, id string) error {
	if !isText(id) {
		return fmt.Errorf("delete client: %w", oauth.ErrNotFound)
	}
	return wrap("delete client", s.delete(ctx, func(b *batch) error {
		if _, err := b.conn.exec(b.ctx, keepEpoch, id); err != nil {
			return err
		}
		n, err := b.conn.exec(b.ctx, deleteClient, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return refusal{oauth.ErrNotFound}
		}
		b.note(clientChange, id)
		return b.run(id, deleteClientCodes, deleteClientFamilies)
	}))
}
