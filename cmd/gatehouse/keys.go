package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// keysCommand is gatehouse keys.
type keysCommand struct {
	List   keysList   `cmd:"" help:"List the secret keys, without their values."`
	Rotate keysRotate `cmd:"" help:"Make a new key. What was made with the key before stays valid."`
	Rewrap keysRewrap `cmd:"" help:"Wrap the keys in the database under another key file."`
	Drop   keysDrop   `cmd:"" help:"End all access tokens of a database that was restored from a backup."`
}

// Help is shown by gatehouse keys --help.
func (*keysCommand) Help() string {
	return "Secret keys are in the database, wrapped under a key file. They have seven purposes: " +
		"tokens seals access tokens, forms seals the forms of pages, browsers marks the browsers " +
		"that an account is known in, and cluster signs the certificates of a cluster's nodes. " +
		"rs256 and es256 sign id_tokens, and factors seals the secrets of authenticator apps.\n\n" +
		"Example:\n\n    gatehouse keys list --demo ./gatehouse-demo\n" +
		"    gatehouse keys rotate --demo ./gatehouse-demo"
}

type keysList struct{ remoteFlags }

// Help is shown by gatehouse keys list --help.
func (*keysList) Help() string {
	return "Example:\n\n    gatehouse keys list --demo ./gatehouse-demo"
}

// Run lists the keys.
func (c *keysList) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	response, err := r.call(http.MethodGet, "/admin/v1/keys", nil)
	if err != nil {
		return err
	}
	var list struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(response, &list); err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	return r.printList(list.Keys, []column{
		member("PURPOSE", "purpose"), member("NUMBER", "number"), member("CREATED", "created_at"), member("STARTS", "starts_at"),
		member("EXPIRES", "expires_at"), member("KEY FILE", "key_file"),
	})
}

type keysRotate struct {
	remoteFlags
	Purpose choice `name:"purpose" default:"tokens" oneof:"tokens forms browsers cluster factors rs256 es256" placeholder:"PURPOSE" help:"What the key is for: tokens, forms, browsers, cluster, factors, rs256 or es256 (${default})."`
	Now     bool   `name:"now" help:"Drop all former keys at once, also when they are in use. Of rs256 and es256: sign with the new key at once."`
	Yes     bool   `name:"yes" help:"With --now: do not ask."`
}

// Help is shown by gatehouse keys rotate --help.
func (*keysRotate) Help() string {
	return "The key before stays until what was made with it has expired. The rotation is refused " +
		"while the one before that is still needed.\n\n" +
		"A new key of rs256 or es256 is published at once and signs a day later, when clients have " +
		"read it. Servers rotate these keys by themselves (--signing-key-age).\n\n" +
		"With the purpose factors, the secrets of authenticator apps are sealed again under the new key. " +
		"No key of factors is ever dropped, not even with --now.\n\n" +
		"--now is for an emergency, such as a stolen key: it drops the former keys. With the " +
		"purpose tokens, every access token ends at once; refresh tokens stay valid. A key of rs256 " +
		"or es256 signs at once, and the former ones stay published for what they signed. On a " +
		"terminal it asks first, unless --yes is given.\n\n" +
		"Example:\n\n    gatehouse keys rotate --demo ./gatehouse-demo\n" +
		"    gatehouse keys rotate --demo ./gatehouse-demo --purpose tokens --now --yes"
}

// endsNow says what a rotation with --now ends.
var endsNow = map[oauth.Purpose]string{
	oauth.TokenKeys: "Every access token ends now. Refresh tokens, codes and sessions stay valid.",
	oauth.FormKeys:  "Every page that is open now must be loaded again before its form is sent.",
	oauth.BrowserKeys: "No account has a known browser until people sign in again: " +
		"after wrong passwords of others, they wait as well.",
	oauth.ClusterKeys: "The nodes of a cluster do not speak to each other until each has a new certificate.",
	oauth.RS256Keys:   endsSigned,
	oauth.ES256Keys:   endsSigned,
	oauth.FactorKeys:  "Nothing ends: secrets of authenticator apps are sealed again, and former keys stay.",
}

const endsSigned = "The new key signs now. JWTs that were signed before stay valid. A client that " +
	"keeps the old key set may refuse new ones for up to an hour."

// Run rotates the keys of a running server.
func (c *keysRotate) Run(p *program) error {
	if c.Yes && !c.Now {
		return usagef("--yes: is of use with --now only")
	}
	if c.Now {
		if err := p.confirm(endsNow[oauth.Purpose(c.Purpose)], c.Yes); err != nil {
			return err
		}
	}
	return c.act(p, http.MethodPost, "/admin/v1/keys/rotate",
		map[string]any{"purpose": c.Purpose, "now": c.Now})
}

// storedKeysFlags are the flags of commands that change the keys in the database itself.
type storedKeysFlags struct {
	JSON bool `name:"json" help:"Print JSON."`
	databaseSettings
	keySettings
	ConfigFile configFile `name:"config" placeholder:"FILE" help:"Settings file, as of gatehouse serve."`
}

// done prints what was done, or about with --json.
func (f *storedKeysFlags) done(p *program, done string, about map[string]any) error {
	if !f.JSON {
		_, err := fmt.Fprintln(p.stdout, done)
		return err
	}
	text, err := json.Marshal(about)
	if err != nil {
		return fmt.Errorf("print response: %w", err)
	}
	return printJSON(p.stdout, text)
}

type keysRewrap struct {
	NewKeyFile string `name:"new-key-file" required:"" placeholder:"FILE" help:"The key file that the keys are wrapped under from now on. For SQLite it is made if it does not exist."`
	storedKeysFlags
}

// Help is shown by gatehouse keys rewrap --help.
func (*keysRewrap) Help() string {
	return "Works on the database itself, also while servers run on it. No key and no token " +
		"changes. Servers need both key files until the last of them has started with the new " +
		"one alone: give them --key-file OLD,NEW first.\n\n" +
		"Example:\n\n    gatehouse keys rewrap --database-url sqlite:gatehouse.db --new-key-file new.key"
}

// Run wraps the keys under the new key file.
func (c *keysRewrap) Run(p *program) error {
	n, err := sqlstore.Rewrap(p.ctx, c.storeConfig(p, c.databaseSettings), c.NewKeyFile)
	if sqlstore.IsNewKeyFile(err) {
		return &settingError{setting: "new-key-file", must: err}
	}
	if err != nil {
		return p.storeError(err)
	}
	return c.done(p, fmt.Sprintf("%d keys are wrapped under %s", n, c.NewKeyFile),
		map[string]any{"keys": n, "key_file": c.NewKeyFile})
}

type keysDrop struct{ storedKeysFlags }

// Help is shown by gatehouse keys drop --help.
func (*keysDrop) Help() string {
	return "A backup does not know what was revoked after it was made. Run this on a database that " +
		"was restored, before the server starts: it makes a new key for access tokens and forgets " +
		"all others, so every access token ends. The keys that sign id_tokens are made anew too, and " +
		"no id that a user got after the backup is given again. Links of notices and codes that wait " +
		"to be entered are deleted. Refresh tokens, authorization codes and sessions are as the backup " +
		"has them. It works on the database itself. On SQLite it is refused while a server has the " +
		"database open.\n\n" +
		"Example:\n\n    gatehouse keys drop --database-url sqlite:gatehouse.db"
}

// Run forgets the keys of access tokens.
func (c *keysDrop) Run(p *program) error {
	err := sqlstore.DropTokenKeys(p.ctx, c.storeConfig(p, c.databaseSettings))
	if err != nil {
		return p.storeError(err)
	}
	return c.done(p, "all access tokens have ended", map[string]any{"purpose": oauth.TokenKeys})
}
