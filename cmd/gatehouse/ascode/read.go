package ascode

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gatehouse/actors/oauth"
)

// The names of Kinds.
const (
	Group     = "group"
	Attribute = "attribute"
	Claim     = "claim"
	Resource  = "resource"
	Provider  = "provider"
	Client    = "client"
)

// Object is what a file describes, such as a client.
type Object struct {
	Kind  string
	ID    string // client_id, uri, id or name
	Set   string
	Where string         // file and line
	Body  map[string]any // of the PUT request of the admin API
}

// Set is what the files say of one set.
type Set struct {
	Name     string
	Revision int64
	Objects  []Object // in the order of Kinds

	revised string // where Revision is; "" = nowhere
}

// defaultSet is the name of a set that has none.
const defaultSet = "default"

// largestFile is the size that a file may have in bytes.
const largestFile = 64 << 20

// Secrets are where the secrets of clients come from.
type Secrets struct {
	Env func(name string) (value string, ok bool)
	// File returns the content of a file with a path, which is one in folder if it is relative.
	File func(path, folder string) (string, error)
}

// reader reads files.
type reader struct {
	secrets Secrets
	sets    map[string]*Set
	where   map[string]string // of objects, by kind and ID
	file    string
}

// Read reads a file, the files *.yaml and *.yml of a folder, or stdin for the path "-". The sets are
// sorted by name, and their objects by kind and ID. Errors name file and line and hold no secret.
func Read(path string, stdin io.Reader, secrets Secrets) ([]*Set, error) {
	r := &reader{secrets: secrets, sets: map[string]*Set{}, where: map[string]string{}}
	files, err := filesAt(path)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := r.readFile(file, stdin); err != nil {
			return nil, err
		}
	}
	var all []*Set
	for _, s := range r.sets {
		slices.SortFunc(s.Objects, func(a, b Object) int {
			return cmp.Or(cmp.Compare(placeOf(a.Kind), placeOf(b.Kind)), strings.Compare(a.ID, b.ID))
		})
		all = append(all, s)
	}
	if all == nil {
		return nil, fmt.Errorf("%s: it describes nothing; a file has at least a key such as clients", path)
	}
	slices.SortFunc(all, func(a, b *Set) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// placeOf returns the place of a kind in the order of Kinds.
func placeOf(name string) int {
	return slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
}

func filesAt(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	about, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !about.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if files == nil {
		return nil, fmt.Errorf("%s: the folder has no file *.yaml or *.yml", path)
	}
	return files, nil
}

func (r *reader) readFile(file string, stdin io.Reader) error {
	r.file = file
	if file == "-" {
		r.file = "stdin"
	} else {
		opened, err := os.Open(file)
		if err != nil {
			return err
		}
		defer opened.Close()
		stdin = opened
	}
	text, err := io.ReadAll(io.LimitReader(stdin, largestFile+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", r.file, err)
	case len(text) > largestFile:
		return fmt.Errorf("%s: it has more than 64 MiB", r.file)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.file, err)
		}
		if err := r.document(document.Content[0]); err != nil {
			return err
		}
	}
}

// at returns an error about the line of a node.
func (r *reader) at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.file, n.Line, fmt.Sprintf(format, args...))
}

func (r *reader) document(n *yaml.Node) error {
	if n.Tag == "!!null" {
		return nil
	}
	values, err := r.members(n, "a file", SetKeys)
	if err != nil {
		return err
	}
	name := defaultSet
	if text, ok := values["set"].(string); ok {
		name = text
	}
	if name == "" || len(name) > 100 {
		return r.at(n, "set: it must have 1 to 100 bytes")
	}
	s := r.sets[name]
	if s == nil {
		s = &Set{Name: name}
		r.sets[name] = s
	}
	if revision, ok := values["revision"].(int); ok {
		if revision < 0 {
			return r.at(n, "revision: it must be 0 or more")
		}
		if s.revised != "" && s.Revision != int64(revision) {
			return r.at(n, "revision: the set %s has another one at %s", name, s.revised)
		}
		s.Revision, s.revised = int64(revision), fmt.Sprintf("%s:%d", r.file, n.Line)
	}
	for _, of := range Kinds {
		list, _ := values[of.List].([]*yaml.Node)
		for _, item := range list {
			body, err := r.members(item, article(of.Name), of.Keys)
			if err != nil {
				return err
			}
			for _, key := range of.required {
				if body[key] == nil || body[key] == "" {
					return r.at(item, "%s needs the key %s", article(of.Name), key)
				}
			}
			if err := r.providerSecret(body, item); err != nil {
				return err
			}
			if scopes, described := body["scopes"].(describedScopes); described {
				body["scopes"], body[scopeTexts] = scopes.names, scopes.texts
			}
			o := Object{Kind: of.Name, ID: body[of.ID].(string), Set: name, Body: body,
				Where: fmt.Sprintf("%s:%d", r.file, item.Line)}
			if err := r.add(s, o, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// article returns a noun with its article.
func article(noun string) string {
	if noun[0] == 'a' {
		return "an " + noun
	}
	return "a " + noun
}

// add adds an object to its set, unless it cannot be one.
func (r *reader) add(s *Set, o Object, n *yaml.Node) error {
	if o.Kind == Client {
		if err := (&oauth.Client{ID: o.ID}).CheckID(); err != nil {
			return r.at(n, "%v", err)
		}
	}
	if o.Kind != Resource {
		delete(o.Body, KindOf(o.Kind).ID) // it is in the path
	}
	if o.Kind == Provider {
		if !oauth.IsProviderID(o.ID) {
			return r.at(n, "id: it must have 1 to 40 letters in lower case, digits and hyphens")
		}
		delete(o.Body, "id")
	}
	if other := r.where[o.Kind+" "+o.ID]; other != "" {
		return r.at(n, "%s %s is described at %s as well", o.Kind, o.ID, other)
	}
	r.where[o.Kind+" "+o.ID] = o.Where
	o.Body["set"] = s.Name
	s.Objects = append(s.Objects, o)
	return nil
}

// providerSecret puts the secret of a provider where the admin API takes it.
func (r *reader) providerSecret(body map[string]any, n *yaml.Node) error {
	for _, key := range []string{clientSecretFile, clientSecretEnv} {
		secret, given := body[key]
		if !given {
			continue
		}
		if body["client_secret"] != nil {
			return r.at(n, "a provider has only one of %s and %s", clientSecretFile, clientSecretEnv)
		}
		body["client_secret"] = secret
		delete(body, key)
	}
	return nil
}

// secretOfProvider returns the secret that a file or a variable has.
func (r *reader) secretOfProvider(k Key, n *yaml.Node) (secret string, err error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", r.at(n, "%s: it must be a text", k.Name)
	}
	found := true
	if k.Type == "secretenv" {
		secret, found = r.secrets.Env(n.Value)
	} else {
		secret, err = r.secrets.File(n.Value, filepath.Dir(r.file))
	}
	secret = strings.TrimSpace(secret)
	switch {
	case err != nil:
		return "", r.at(n, "%s: file %s: %v", k.Name, n.Value, err)
	case !found:
		return "", r.at(n, "%s: the variable %s is not set", k.Name, n.Value)
	case secret == "":
		return "", r.at(n, "%s: %s is empty", k.Name, n.Value)
	}
	return secret, nil
}

// members returns the values of a mapping by key. of says what it describes.
func (r *reader) members(n *yaml.Node, of string, keys []Key) (map[string]any, error) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		return nil, r.at(n, "%s is a mapping of keys to values", of)
	}
	values := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], resolved(n.Content[i+1])
		at := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name.Value })
		if at < 0 {
			return nil, r.at(name, "the key %q is not known; %s has %s", name.Value, of, namesOf(keys))
		}
		if _, repeated := values[name.Value]; repeated {
			return nil, r.at(name, "the key %s is there twice", name.Value)
		}
		v, err := r.value(keys[at], value)
		if err != nil {
			return nil, err
		}
		values[name.Value] = v
	}
	return values, nil
}

func namesOf(keys []Key) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

// resolved returns the node that an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// value returns the value of a key.
func (r *reader) value(k Key, n *yaml.Node) (any, error) {
	switch k.Type {
	case "string":
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return nil, r.at(n, "%s: it must be a text", k.Name)
		}
		if k.Enum != nil && !slices.Contains(k.Enum, n.Value) {
			return nil, r.at(n, "%s: it must be %s", k.Name, strings.Join(k.Enum, " or "))
		}
		return n.Value, nil
	case "boolean":
		var is bool
		if n.Tag != "!!bool" || n.Decode(&is) != nil {
			return nil, r.at(n, "%s: it must be true or false", k.Name)
		}
		return is, nil
	case "integer":
		var number int
		if n.Tag != "!!int" || n.Decode(&number) != nil {
			return nil, r.at(n, "%s: it must be a whole number", k.Name)
		}
		return number, nil
	case "secretfile", "secretenv":
		return r.secretOfProvider(k, n)
	case "object":
		var members map[string]any
		if n.Kind != yaml.MappingNode || n.Decode(&members) != nil {
			return nil, r.at(n, "%s: it must be a mapping of keys to values", k.Name)
		}
		return members, nil
	}
	if k.Type == "scopes" && n.Kind == yaml.MappingNode {
		return r.describedScopes(n)
	}
	return r.list(k, n)
}

// describedScopes are scopes with what people read of them.
type describedScopes struct {
	names []string
	texts map[string]string
}

// describedScopes returns the scopes of a mapping. One without a text has an empty one there.
func (r *reader) describedScopes(n *yaml.Node) (any, error) {
	scopes := describedScopes{texts: map[string]string{}}
	for i := 0; i < len(n.Content); i += 2 {
		name, text := n.Content[i], resolved(n.Content[i+1])
		if text.Kind != yaml.ScalarNode {
			return nil, r.at(text, "scopes: %s must have a text", name.Value)
		}
		if slices.Contains(scopes.names, name.Value) {
			return nil, r.at(name, "scopes: %s is there twice", name.Value)
		}
		scopes.names = append(scopes.names, name.Value)
		if text.Value != "" && text.Tag != "!!null" {
			scopes.texts[name.Value] = text.Value
		}
	}
	return scopes, nil
}

// list returns the value of a key with a list.
func (r *reader) list(k Key, n *yaml.Node) (any, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, r.at(n, "%s: it must be a list", k.Name)
	}
	switch k.Type {
	case "strings", "scopes":
		texts := []string{}
		for _, item := range n.Content {
			item = resolved(item)
			if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
				return nil, r.at(item, "%s: it must be a list of texts", k.Name)
			}
			texts = append(texts, item.Value)
		}
		return texts, nil
	case "secrets":
		secrets := []map[string]string{}
		for _, item := range n.Content {
			secret, err := r.secret(resolved(item))
			if err != nil {
				return nil, err
			}
			secrets = append(secrets, secret)
		}
		return secrets, nil
	case "rules":
		rules := []map[string]any{}
		for _, item := range n.Content {
			var rule map[string]any
			if item = resolved(item); item.Kind != yaml.MappingNode || item.Decode(&rule) != nil {
				return nil, r.at(item, "%s: each must be {from: URI, to: URI, scopes: [SCOPE, ...]}", k.Name)
			}
			rules = append(rules, rule)
		}
		return rules, nil
	}
	return n.Content, nil
}

// secretKinds are the keys of a secret.
var secretKinds = []string{"file", "env", "hash"}

// secret returns a secret as the admin API takes it.
func (r *reader) secret(n *yaml.Node) (map[string]string, error) {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[1].Kind != yaml.ScalarNode ||
		!slices.Contains(secretKinds, n.Content[0].Value) {
		return nil, r.at(n, "secrets: each must be {file: PATH}, {env: NAME} or {hash: HASH}")
	}
	kind, value := n.Content[0].Value, n.Content[1].Value
	secret := ""
	switch kind {
	case "hash":
		if _, ok := oauth.ParseHash(value); !ok {
			return nil, r.at(n, "secrets: the hash must be one that gatehouse export wrote")
		}
		return map[string]string{"hash": value}, nil
	case "env":
		found := false
		if secret, found = r.secrets.Env(value); !found {
			return nil, r.at(n, "secrets: the variable %s is not set", value)
		}
	case "file":
		var err error
		if secret, err = r.secrets.File(value, filepath.Dir(r.file)); err != nil {
			return nil, r.at(n, "secrets: file %s: %v", value, err)
		}
	}
	secret = strings.TrimSpace(secret)
	if !oauth.LooksLikeClientSecret(secret) {
		return nil, r.at(n, "secrets: %s %s has no secret that gatehouse secret made", kind, value)
	}
	return map[string]string{"secret": secret}, nil
}
