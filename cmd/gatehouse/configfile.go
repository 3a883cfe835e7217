package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// configFile is the flag that names a settings file.
type configFile string

// BeforeResolve reads the file before kong resolves the settings.
func (configFile) BeforeResolve(p *program, parsed *kong.Context, at *kong.Path) error {
	path, _ := parsed.FlagValue(at.Flag).(configFile)
	return p.resolver.readFile(string(path))
}

// readFile reads settings from a YAML or TOML file, by its extension. Errors hold no value of the
// file, since that may be a secret.
func (r *resolver) readFile(path string) error {
	parse, ok := map[string]func([]byte) (map[string]string, error){
		".yaml": parseYAML, ".yml": parseYAML, ".toml": parseTOML,
	}[strings.ToLower(filepath.Ext(path))]
	if !ok {
		return usagef("--config %q: must be a file that ends in .yaml, .yml or .toml", path)
	}
	text, err := os.ReadFile(path)
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return usagef("--config %q: must be a file that can be read: %v", path, pathError.Err)
	}
	if r.file, err = parse(text); err != nil {
		return usagef("--config %q: %v", path, err)
	}
	r.path = path
	return nil
}

// parseYAML returns the values of a flat mapping as they are written; a sequence becomes a comma
// list.
func parseYAML(text []byte) (map[string]string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%sis not YAML", yamlLine(err))
	}
	found := map[string]string{}
	if document.Kind == 0 {
		return found, nil
	}
	mapping := document.Content[0]
	if mapping.Kind != yaml.MappingNode {
		return nil, errors.New("must be a mapping of settings")
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i].Value, mapping.Content[i+1]
		if err := checkKey(found, key); err != nil {
			return nil, err
		}
		texts := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			texts = value.Content
		}
		var parts []string
		for _, t := range texts {
			if t.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("%s: must be a plain value or a list of them", key)
			}
			parts = append(parts, t.Value)
		}
		found[key] = strings.Join(parts, ",")
	}
	return found, nil
}

var lineNumber = regexp.MustCompile(`line \d+`)

// yamlLine returns where a YAML error is, which is all that may be shown of it.
func yamlLine(err error) string {
	if line := lineNumber.FindString(err.Error()); line != "" {
		return line + " "
	}
	return ""
}

// parseTOML returns the values of the top-level table; an array becomes a comma list.
func parseTOML(text []byte) (map[string]string, error) {
	var table map[string]any
	meta, err := toml.Decode(string(text), &table)
	if err != nil {
		var parseError toml.ParseError
		if errors.As(err, &parseError) {
			return nil, fmt.Errorf("line %d is not TOML", parseError.Position.Line)
		}
		return nil, errors.New("is not TOML")
	}
	found := map[string]string{}
	for _, path := range meta.Keys() {
		if len(path) > 1 {
			continue // inside a table, which is refused by its own key
		}
		key := path[0]
		if err := checkKey(found, key); err != nil {
			return nil, err
		}
		if found[key], err = tomlText(table[key]); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return found, nil
}

func tomlText(value any) (string, error) {
	switch value := value.(type) {
	case string, int64, float64, bool:
		return fmt.Sprint(value), nil
	case []any:
		parts := make([]string, len(value))
		for i, v := range value {
			part, ok := v.(string)
			if !ok {
				return "", errors.New("must be a list of strings")
			}
			parts[i] = part
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("must be a plain value or a list of them")
}

// checkKey returns an error for a key that is no setting or is repeated.
func checkKey(found map[string]string, key string) error {
	if !slices.ContainsFunc(slices.Concat(allSettings, operatorSettings), func(s setting) bool { return s.name == key }) {
		return fmt.Errorf("%s: no such setting (gatehouse config lists them)", key)
	}
	if _, ok := found[key]; ok {
		return fmt.Errorf("%s: must be given only once", key)
	}
	return nil
}
