package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"gatehouse/cmd/gatehouse/ascode"
)

// secretFile names a file with the value of another setting, whose name is that of this one without
// fileSuffix. A name without a folder may be a credential of a systemd service.
type secretFile string

const (
	fileSuffix     = "-file"
	maxSecretBytes = 64 << 10 // of a file that is read
)

// BeforeResolve remembers the file for the setting that it has the value of.
func (secretFile) BeforeResolve(p *program, parsed *kong.Context, at *kong.Path) error {
	name := at.Flag.Name
	if p.resolver.isFlag(parsed, strings.TrimSuffix(name, fileSuffix)) {
		return bothGiven(name)
	}
	path, _ := parsed.FlagValue(at.Flag).(secretFile)
	p.resolver.secretFlags[name] = string(path)
	return nil
}

func bothGiven(name string) error {
	return refuse(name, "", "give either this or %s, not both", strings.TrimSuffix(name, fileSuffix))
}

// secret returns the value of a setting from a file that another setting names; "" = there is none,
// or the value that was found at direct wins.
func (r *resolver) secret(name string, direct origin, given bool) (string, error) {
	file := name + fileSuffix
	if _, ok := settingNamed(file); !ok {
		return "", nil
	}
	path, isFlag := r.secretFlags[file]
	from := origin{}
	if !isFlag {
		var ok bool
		if path, from, ok = r.lookUp(file); !ok {
			return "", nil
		}
	}
	r.origins[file] = from
	switch {
	case given && from.rank() == direct.rank():
		return "", bothGiven(file)
	case given && from.rank() < direct.rank():
		return "", nil
	}
	value, err := readSecret(path, "", r.environment[credentialsFolder])
	if err != nil {
		return "", refuse(file, path, "%v", err)
	}
	r.origins[name] = from
	return value, nil
}

// readSecret returns the content of a file without the end of its line. A name without a folder is
// one of the credentials, if it is there. Another relative path is one in folder; "" = the current
// one.
func readSecret(path, folder, credentials string) (string, error) {
	inside := filepath.Join(credentials, path)
	switch {
	case credentials != "" && filepath.Base(path) == path && isFile(inside):
		path = inside
	case !filepath.IsAbs(path):
		path = filepath.Join(folder, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", errors.New("must be a file that can be read: " + reasonOf(err))
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	value := strings.TrimRight(string(content), "\r\n")
	switch {
	case err != nil:
		return "", errors.New("must be a file that can be read: " + reasonOf(err))
	case len(content) > maxSecretBytes:
		return "", errors.New("must be a file of at most 64 KiB")
	case value == "":
		return "", errors.New("must be a file that is not empty")
	}
	return value, nil
}

// secretsOfClients returns where files of clients have secrets from.
func (p *program) secretsOfClients() ascode.Secrets {
	return ascode.Secrets{Env: p.environment.get, File: func(path, folder string) (string, error) {
		return readSecret(path, folder, p.credentials())
	}}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// reasonOf returns why a file cannot be used, without its name.
func reasonOf(err error) string {
	var failed *os.PathError
	if errors.As(err, &failed) {
		return failed.Err.Error()
	}
	return err.Error()
}
