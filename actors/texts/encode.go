package texts

import (
	"encoding/json"
	"errors"
	"fmt"
)

var errNoText = errors.New("is no text")

// MarshalJSON returns a text that another request can write, as an array: the key, then the names
// and values of its slots. A text of the page itself (template.HTML) cannot be kept.
func (t Text) MarshalJSON() ([]byte, error) {
	all := make([]any, 0, len(t))
	for i, value := range t {
		switch v := value.(type) {
		case literal:
			all = append(all, map[string]string{"literal": string(v)})
		case month:
			all = append(all, map[string]int{"month": int(v)})
		case string, int, Text:
			all = append(all, v)
		default:
			return nil, fmt.Errorf("part %d: %w", i, errNoText)
		}
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads what MarshalJSON returns.
func (t *Text) UnmarshalJSON(data []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*t = nil
	for _, raw := range all {
		var value any
		var number int
		var text Text
		var other struct {
			Literal *literal
			Month   *month
		}
		switch raw[0] {
		case '"':
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return err
			}
			value = s
		case '[':
			if err := json.Unmarshal(raw, &text); err != nil {
				return err
			}
			value = text
		case '{':
			if err := json.Unmarshal(raw, &other); err != nil {
				return err
			}
			switch {
			case other.Literal != nil:
				value = *other.Literal
			case other.Month != nil && *other.Month >= 0 && *other.Month < 12:
				value = *other.Month
			default:
				return errNoText
			}
		default:
			if err := json.Unmarshal(raw, &number); err != nil {
				return err
			}
			value = number
		}
		*t = append(*t, value)
	}
	return nil
}
