package update

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config says which files are updated, and from where.
type Config struct {
	State    string        // path of the file that remembers requests
	Interval time.Duration // between two runs of a server
	Sources  []Source

	Transport http.RoundTripper // optional: nil = the one of the system
}

// Source is a file and where it comes from: an edition of a publisher with geoipupdate's protocol, or
// a URL.
type Source struct {
	File string // its path

	Edition, Account string // of geoipupdate's protocol
	Host             string // its URL

	URL      string // may have {YYYY}, {MM} and {secret}
	Checksum string // likewise; or a path; with a dot at its beginning, it comes after the URL's path
	Header   string // header that has the secret
	Prefix   string // before the secret in the header, such as "Bearer "
	Query    string // parameter that has the secret

	Secret    string
	Daily     int // requests a day; 0 = as the publisher allows
	MayShrink int // percent by which a new file may be smaller; 0 = no smaller one is taken
}

const (
	defaultHost     = "https://updates.maxmind.com"
	defaultInterval = 6 * time.Hour
	minInterval     = 10 * time.Minute
)

// document is the form of a settings file.
type document struct {
	Directory string        `yaml:"directory"`
	State     string        `yaml:"state"`
	Interval  time.Duration `yaml:"interval"`
	Files     []entry       `yaml:"files"`
}

// entry is a file of such a document.
type entry struct {
	File       string `yaml:"file"`
	Edition    string `yaml:"edition"`
	Account    string `yaml:"account"`
	Host       string `yaml:"host"`
	URL        string `yaml:"url"`
	Checksum   string `yaml:"checksum"`
	Header     string `yaml:"header"`
	Query      string `yaml:"query"`
	Secret     string `yaml:"secret"`
	SecretFile string `yaml:"secret-file"`
	Daily      int    `yaml:"daily"`
	MayShrink  int    `yaml:"may-shrink"`
}

// Read reads a settings file: YAML, or a GeoIP.conf of geoipupdate. Variables of geoipupdate in env
// go before a GeoIP.conf; without a path they are all. readSecret reads a file with a secret. No
// error has a secret.
func Read(
	path string, env func(name string) (string, bool), readSecret func(path string) (string, error),
) (c Config, err error) {
	var text []byte
	if path != "" {
		if text, err = os.ReadFile(path); err != nil {
			return Config{}, err
		}
	}
	if path == "" || strings.HasSuffix(path, ".conf") {
		c, err = parseConf(text, env, readSecret)
	} else {
		c, err = parseYAML(text, filepath.Dir(path), readSecret)
	}
	path = cmp.Or(path, "GEOIPUPDATE_… in the environment")
	for i := range c.Sources {
		if err == nil {
			err = c.Sources[i].check()
		}
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// unknownMember is the error of a member that a settings file may not have.
var unknownMember = regexp.MustCompile(`field (\S+) not found in type .*`)

// explain returns an error of YAML without the types of this program.
func explain(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	for i, e := range wrong.Errors {
		wrong.Errors[i] = unknownMember.ReplaceAllString(e, "$1 is not known")
	}
	return errors.New(strings.Join(wrong.Errors, "; "))
}

func parseYAML(text []byte, folder string, readSecret func(string) (string, error)) (c Config, err error) {
	var d document
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&d); errors.Is(err, io.EOF) {
		return c, errors.New("it is empty")
	} else if err != nil {
		return c, explain(err)
	}
	within := func(base, path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(base, path)
	}
	directory := cmp.Or(within(folder, d.Directory), folder)
	c = Config{State: cmp.Or(within(directory, d.State), filepath.Join(directory, ".gatehouse-update.json")),
		Interval: cmp.Or(d.Interval, defaultInterval)}
	if c.Interval < minInterval {
		return c, fmt.Errorf("interval must be %s or more", minInterval)
	}
	taken := map[string]bool{}
	for _, f := range d.Files {
		s := Source{File: within(directory, cmp.Or(f.File, editionFile(f.Edition))), Edition: f.Edition, Account: f.Account,
			Host: f.Host, URL: f.URL, Checksum: f.Checksum, Query: f.Query, Secret: f.Secret, Daily: f.Daily,
			MayShrink: f.MayShrink}
		s.Header, s.Prefix, _ = strings.Cut(f.Header, ":")
		if s.Prefix = strings.TrimLeft(s.Prefix, " "); s.Prefix != "" {
			s.Prefix += " "
		}
		if s.Edition != "" {
			s.Host = cmp.Or(s.Host, defaultHost)
		}
		if f.SecretFile != "" {
			if s.Secret, err = readSecret(within(folder, f.SecretFile)); err != nil {
				return c, fmt.Errorf("secret-file: %w", err)
			}
		}
		if taken[s.File] {
			return c, fmt.Errorf("the file %s is there twice", s.File)
		}
		taken[s.File] = true
		c.Sources = append(c.Sources, s)
	}
	if len(c.Sources) == 0 {
		return c, errors.New("it names no files")
	}
	return c, nil
}

func editionFile(edition string) string {
	if edition == "" {
		return ""
	}
	return edition + ".mmdb"
}

// check returns an error about settings that do not go together.
func (s *Source) check() error {
	name := filepath.Base(s.File)
	address := cmp.Or(s.URL, s.Host)
	at, err := url.Parse(address)
	switch {
	case s.File == "":
		return errors.New("each file needs file: its name")
	case (s.Edition == "") == (s.URL == ""):
		return fmt.Errorf("%s: give either edition or url", name)
	case err != nil || at.Host == "":
		return fmt.Errorf("%s: the URL is malformed", name)
	case at.User != nil:
		return fmt.Errorf("%s: give a secret by header, query or secret, not before the host", name)
	case at.Scheme != "https" && !(at.Scheme == "http" && isLoopback(at.Hostname())):
		return fmt.Errorf("%s: the URL needs https", name)
	case s.Edition != "" && (s.Account == "" || s.Secret == ""):
		return fmt.Errorf("%s: an edition needs account and secret or secret-file: the licence key", name)
	case s.Edition != "" && (s.Header != "" || s.Query != "" || s.Checksum != ""):
		return fmt.Errorf("%s: header, query and checksum are for url", name)
	case strings.Contains(s.Checksum, "{secret}") && !s.ownsChecksum():
		return fmt.Errorf("%s: the secret in checksum goes to the host of the url only", name)
	case s.Header != "" && s.Query != "":
		return fmt.Errorf("%s: give either header or query", name)
	case s.URL != "" && s.Secret != "" && s.Header == "" && s.Query == "" && !strings.Contains(s.URL, "{secret}"):
		return fmt.Errorf("%s: say where the secret goes: header, query or {secret} in the url", name)
	case s.Secret == "" && (s.Header != "" || s.Query != "" || strings.Contains(s.URL, "{secret}")):
		return fmt.Errorf("%s: header, query and {secret} need secret or secret-file", name)
	case s.Daily < 0 || s.MayShrink < 0 || s.MayShrink > 100:
		return fmt.Errorf("%s: daily is a number of requests, and may-shrink one of percent", name)
	}
	return nil
}

// ownsChecksum reports whether the checksum is at the host of the URL.
func (s *Source) ownsChecksum() bool {
	at, err := url.Parse(s.URL)
	sum, err2 := url.Parse(s.Checksum)
	return err == nil && err2 == nil && (!strings.Contains(s.Checksum, "://") || sameOrigin(at, sum))
}

// variables are those of geoipupdate, by the keys of a GeoIP.conf.
var variables = map[string]string{
	"AccountID": "GEOIPUPDATE_ACCOUNT_ID", "LicenseKey": "GEOIPUPDATE_LICENSE_KEY",
	"EditionIDs": "GEOIPUPDATE_EDITION_IDS", "DatabaseDirectory": "GEOIPUPDATE_DB_DIR",
	"Host": "GEOIPUPDATE_HOST",
}

// readVariables replaces values by those of variables. NAME_FILE names a file with the value of NAME.
func readVariables(values map[string]string, env func(string) (string, bool),
	readSecret func(string) (string, error)) error {
	for key, name := range variables {
		if value, ok := env(name); ok {
			values[key] = value
		}
		file, ok := env(name + "_FILE")
		if !ok || key != "AccountID" && key != "LicenseKey" {
			continue
		}
		value, err := readSecret(file)
		if err != nil {
			return fmt.Errorf("%s_FILE: %w", name, err)
		}
		values[key] = value
	}
	for _, name := range []string{"GEOIPUPDATE_PROXY", "GEOIPUPDATE_PROXY_USER_PASSWORD"} {
		if _, ok := env(name); ok {
			return fmt.Errorf("%s: set HTTPS_PROXY in the environment instead", name)
		}
	}
	return nil
}

// parseConf reads a GeoIP.conf, and then the variables.
func parseConf(text []byte, env func(string) (string, bool), readSecret func(string) (string, error)) (
	c Config, err error) {
	values := map[string]string{}
	for lines, n := bufio.NewScanner(bytes.NewReader(text)), 1; lines.Scan(); n++ {
		key, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if key == "" || key[0] == '#' {
			continue
		}
		key = cmp.Or(map[string]string{"UserId": "AccountID", "ProductIds": "EditionIDs"}[key], key)
		if _, twice := values[key]; twice {
			return c, fmt.Errorf("line %d: %s is there twice", n, key)
		}
		switch key {
		case "AccountID", "LicenseKey", "EditionIDs", "DatabaseDirectory", "Host", "PreserveFileTimes", "LockFile",
			"RetryFor", "Parallelism", "Protocol", "SkipPeerVerification", "SkipHostnameVerification":
		case "Proxy", "ProxyUserPassword":
			return c, fmt.Errorf("line %d: %s: set HTTPS_PROXY in the environment instead", n, key)
		default:
			return c, fmt.Errorf("line %d: unknown key %s", n, key)
		}
		values[key] = strings.TrimSpace(value)
	}
	if err := readVariables(values, env, readSecret); err != nil {
		return c, err
	}
	folder := cmp.Or(values["DatabaseDirectory"], "/usr/local/share/GeoIP")
	c = Config{State: filepath.Join(folder, ".gatehouse-update.json"), Interval: defaultInterval}
	host := cmp.Or(values["Host"], defaultHost)
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	for edition := range strings.FieldsSeq(values["EditionIDs"]) {
		c.Sources = append(c.Sources, Source{File: filepath.Join(folder, edition+".mmdb"), Edition: edition,
			Account: values["AccountID"], Secret: values["LicenseKey"], Host: host})
	}
	if len(c.Sources) == 0 {
		return c, errors.New("EditionIDs (GEOIPUPDATE_EDITION_IDS) names no editions")
	}
	return c, nil
}
