package lint

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// lineTypes are the content types whose bodies are lines of JSON.
var lineTypes = []string{"application/x-ndjson", "application/jsonl", "application/x-jsonlines"}

// withLines returns a document in which the schema of a body of lines is that of a list: the
// extension x-line-schema is the schema of each line. OpenAPI 3.1 has no words for them.
func withLines(data []byte) ([]byte, error) {
	if !bytes.Contains(data, []byte("x-line-schema")) {
		return data, nil
	}
	var document any
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	asLists(document)
	return yaml.Marshal(document)
}

// asLists changes every media type with the extension.
func asLists(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			asLists(one)
		}
	case map[string]any:
		if line, ok := v["x-line-schema"].(map[string]any); ok {
			v["schema"] = map[string]any{"type": "array", "items": line}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			asLists(v[name])
		}
	}
}
