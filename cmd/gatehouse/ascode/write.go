package ascode

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Write returns a document for each set of the records, which are those of a kind by its List, as Read
// reads them. Values that a new object has anyway are left out.
func Write(records map[string][]Record) ([]byte, error) {
	setOf := func(r Record) string { return cmp.Or(r.Text("set"), defaultSet) }
	var names []string
	for _, kind := range Kinds {
		for _, r := range records[kind.List] {
			names = append(names, setOf(r))
		}
	}
	slices.Sort(names)
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	for _, name := range slices.Compact(names) {
		document := &yaml.Node{Kind: yaml.MappingNode}
		put(document, "set", name)
		for _, kind := range Kinds {
			list := &yaml.Node{Kind: yaml.SequenceNode}
			for _, r := range records[kind.List] {
				if setOf(r) == name {
					list.Content = append(list.Content, item(r, kind.Keys))
				}
			}
			if list.Content != nil {
				document.Content = append(document.Content, scalar(kind.List), list)
			}
		}
		if err := encoder.Encode(document); err != nil {
			return nil, fmt.Errorf("write objects: %w", err)
		}
	}
	return text.Bytes(), encoder.Close()
}

// item returns the description of a record.
func item(r Record, keys []Key) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range keys {
		value := r[k.Name]
		switch {
		case k.Type == "secretfile" && r.Text(secretSet) != "":
			put(n, k.Name, r.Text("id")+".secret") // for the operator to fill
		case k.Type == "secrets":
			var hashes []map[string]string
			list, _ := value.([]any)
			for _, s := range list {
				secret, _ := s.(map[string]any)
				hashes = append(hashes, map[string]string{"hash": fmt.Sprint(secret["hash"])})
			}
			if hashes != nil {
				put(n, k.Name, hashes)
			}
		case k.Type == "scopes" && !sameValue(r[scopeTexts], nil):
			described := &yaml.Node{Kind: yaml.MappingNode}
			said, _ := r[scopeTexts].(map[string]any)
			for _, scope := range texts(value) {
				text, _ := said[scope].(string)
				put(described, scope, text)
			}
			n.Content = append(n.Content, scalar(k.Name), described)
		case k.Name == "scopes" || k.Name == "grants" || k.Name == "kind" || !sameValue(value, nil):
			put(n, k.Name, value)
		}
	}
	return n
}

func put(n *yaml.Node, key string, value any) {
	var node yaml.Node
	if number, ok := value.(float64); ok {
		value = int64(number)
	}
	if err := node.Encode(value); err != nil {
		panic(err) // values of JSON can be encoded
	}
	n.Content = append(n.Content, scalar(key), &node)
}

func scalar(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }
