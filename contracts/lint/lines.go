package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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

// Line returns the line of a text of JSON, 1 for the first, where the value of a pointer (RFC 6901)
// begins. For a value that is not there, it is that of the nearest one above it.
func Line(text []byte, pointer string) int {
	d := json.NewDecoder(bytes.NewReader(text))
	line := 1
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		line = 1 + bytes.Count(text[:start(text, d.InputOffset())], []byte("\n"))
		if pointer == "" || !enter(d, strings.NewReplacer("~1", "/", "~0", "~").Replace(part)) {
			return line
		}
	}
	return 1 + bytes.Count(text[:start(text, d.InputOffset())], []byte("\n"))
}

// start returns where the next token begins.
func start(text []byte, offset int64) int64 {
	for offset < int64(len(text)) && strings.IndexByte(" \t\r\n:,", text[offset]) >= 0 {
		offset++
	}
	return offset
}

// enter moves a decoder from before an object or array to before its member or element. It reports
// whether there is one.
func enter(d *json.Decoder, name string) bool {
	opening, err := d.Token()
	if err != nil || opening != json.Delim('{') && opening != json.Delim('[') {
		return false
	}
	for i := 0; d.More(); i++ {
		own := strconv.Itoa(i)
		if opening == json.Delim('{') {
			token, err := d.Token()
			if err != nil {
				return false
			}
			own, _ = token.(string)
		}
		if own == name {
			return true
		}
		if err := d.Decode(new(json.RawMessage)); err != nil {
			return false
		}
	}
	return false
}
