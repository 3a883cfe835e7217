package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"gatehouse/providers/sqlstore"
)

// keySettings choose the key file. A demo has none of them: its key file is in its folder.
type keySettings struct {
	KeyFile keyFiles `name:"key-file" variable:"GATEHOUSE_KEY_FILE" group:"identity" placeholder:"FILE" help:"File with the key that wraps the secret keys in the database: 32 random bytes in base64, mode 0400 or 0600. Two while keys are wrapped again (default: for SQLite, the database's name with .key; gatehouse.key if systemd gives the service this credential)."`
}

// keyFiles are the names of key files, written with commas between them. They need not exist.
type keyFiles []string

// String returns the files as they are written.
func (f keyFiles) String() string { return strings.Join(f, ",") }

func parseKeyFiles(text string, _ *kong.Tag) (keyFiles, error) { return list(text), nil }

// credential is the name of the key file in the folder of a systemd service's credentials
// (systemd.exec(5): LoadCredential).
const credential = "gatehouse.key"

// credentialsFolder is the variable with the folder of a systemd service's credentials.
const credentialsFolder = "CREDENTIALS_DIRECTORY"

// credentials returns the folder of a systemd service's credentials; "" = there is none.
func (p *program) credentials() string { return p.environment[credentialsFolder] }

// files returns the key files for sqlstore.Config; none = the one beside a SQLite database.
func (k *keySettings) files(p *program) []string {
	if len(k.KeyFile) > 0 {
		return k.KeyFile
	}
	if folder := p.credentials(); folder != "" {
		path := filepath.Join(folder, credential)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return []string{path}
		}
	}
	return nil
}

// shown returns the key files for people, with the default of a SQLite database.
func (k *keySettings) shown(p *program, database databaseURL) keyFiles {
	files := k.files(p)
	if beside := sqlstore.DefaultKeyFile(string(database)); len(files) == 0 && beside != "" {
		return keyFiles{beside}
	}
	return files
}

// storeConfig is how a command opens the database.
func (k *keySettings) storeConfig(p *program, database databaseSettings) sqlstore.Config {
	return sqlstore.Config{
		URL: string(database.DatabaseURL), KeyFiles: k.files(p), Credentials: p.credentials(),
		Logger: p.plainLog(),
	}
}

// storeError names the setting that is to blame when a database cannot be opened. A key file of no
// use is a wrong setting; a database may fail for other reasons.
func (p *program) storeError(err error) error {
	if errors.Is(err, sqlstore.ErrKeyFile) {
		return &settingError{setting: "key-file", must: err}
	}
	return fmt.Errorf("%s: %w", p.resolver.given("database-url"), err)
}
