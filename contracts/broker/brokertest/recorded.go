package brokertest

import (
	"embed"
	"encoding/json"
	"net/url"
	"strings"
)

//go:embed recorded/*.json
var recordings embed.FS

// recordedAt is the address of the broker that was recorded.
const recordedAt = "http://127.0.0.1:18420"

// names replace the names in a recording. They alternate between the old and the new name.
type names []string

// replay returns a recorded document with other names.
func (b *Broker) replay(name string, replaced names) object {
	text, err := recordings.ReadFile("recorded/" + name + ".json")
	if err != nil {
		panic(err) // it is embedded
	}
	var document object
	if err := json.Unmarshal(text, &document); err != nil {
		panic(err)
	}
	escaped := append(names{recordedAt, b.URL}, replaced...)
	for i := 3; i < len(escaped); i += 2 {
		escaped[i] = url.PathEscape(escaped[i])
	}
	return rename(document, strings.NewReplacer(replaced...),
		strings.NewReplacer(escaped...)).(object)
}

// rename replaces the names in texts, and in URLs, where names are escaped.
func rename(v any, texts, urls *strings.Replacer) any {
	switch v := v.(type) {
	case object:
		for name, member := range v {
			v[name] = rename(member, texts, urls)
		}
		return v
	case []any:
		for i, element := range v {
			v[i] = rename(element, texts, urls)
		}
		return v
	case string:
		if strings.HasPrefix(v, recordedAt) {
			return urls.Replace(v)
		}
		return texts.Replace(v)
	}
	return v
}
