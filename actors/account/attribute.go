package account

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxAttributes is the size of a person's attributes, as a JSON object in bytes.
const MaxAttributes = 4 << 10

// MostAttributes is how many attributes may be declared.
const MostAttributes = 100

// Attribute is a member that the attributes of people may have.
type Attribute struct {
	Name   string
	Type   string // one of AttributeTypes
	Change string // one of AttributeChangers: who may change the value
	// Set and Declared are those of Group.
	Set      string
	Declared bool
}

// AttributeTypes are the types of values: a text, a number, true or false, a list of texts.
var AttributeTypes = []string{"string", "number", "boolean", "strings"}

// ChangedByPerson is the Change of an attribute that people may change themselves. Operators may
// change all.
const ChangedByPerson = "person"

// AttributeChangers are who may change values, besides operators.
var AttributeChangers = []string{"operator", ChangedByPerson}

var attributeName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Check returns a FieldError, or nil if a can be declared.
func (a *Attribute) Check() error {
	switch {
	case !attributeName.MatchString(a.Name):
		return FieldError{Field: "name",
			Message: "must have 1 to 64 characters of a to z, 0 to 9 and underscore, a letter first"}
	case !slices.Contains(AttributeTypes, a.Type):
		return FieldError{Field: "type", Message: "must be string, number, boolean or strings"}
	case !slices.Contains(AttributeChangers, a.Change):
		return FieldError{Field: "change", Message: "must be operator or person"}
	}
	return nil
}

// accepts reports whether a value, which is JSON, has the type of the attribute.
func (a *Attribute) accepts(value json.RawMessage) bool { return IsOfType(value, a.Type) }

// IsOfType reports whether a value, which is JSON, is of one of AttributeTypes.
func IsOfType(value json.RawMessage, typ string) bool {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || value[0] == 'n' {
		return false
	}
	var into any
	switch typ {
	case "string":
		into = new(string)
	case "number":
		into = new(float64)
	case "boolean":
		into = new(bool)
	case "strings":
		var list []*string
		return json.Unmarshal(value, &list) == nil && !slices.Contains(list, nil)
	default:
		return false
	}
	return json.Unmarshal(value, into) == nil
}

// FromText returns the value that a person has entered in a form, as JSON: null for "". The items of a
// list are separated by commas. It may be of another type.
func (a *Attribute) FromText(text string) json.RawMessage {
	var value any = text
	switch text = strings.TrimSpace(text); {
	case text == "":
		return json.RawMessage("null")
	case a.Type == "strings":
		items := strings.Split(text, ",")
		for i := range items {
			items[i] = strings.TrimSpace(items[i])
		}
		value = items
	case a.Type != "string" && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // texts can be encoded
	}
	return encoded
}

// Text is the inverse of FromText; "" for a value of another type.
func (a *Attribute) Text(value json.RawMessage) string {
	if !a.accepts(value) {
		return ""
	}
	var text string
	var items []string
	switch {
	case json.Unmarshal(value, &text) == nil:
		return text
	case json.Unmarshal(value, &items) == nil:
		return strings.Join(items, ", ")
	}
	return string(value)
}

// Attributes are the attributes of a person: a JSON object with sorted members; "" = none.
type Attributes string

// Members returns the values by name.
func (a Attributes) Members() (members map[string]json.RawMessage) {
	if a != "" && json.Unmarshal([]byte(a), &members) != nil {
		return nil // never: the Store keeps objects only
	}
	return members
}

// With returns a with the changed members; null removes one. Only declared members of their type may
// be changed, by a person only those that people may change. The error is FieldErrors.
func (a Attributes) With(
	changes map[string]json.RawMessage, declared []Attribute, byPerson bool,
) (Attributes, error) {
	members := a.Members()
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	var problems FieldErrors
	refuse := func(name, message string) {
		if !attributeName.MatchString(name) {
			name = "…" // it may be anything
		}
		problems = append(problems, FieldError{Field: "attributes." + name, Message: message})
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		i := slices.IndexFunc(declared, func(d Attribute) bool { return d.Name == name })
		var value bytes.Buffer
		switch {
		case i < 0:
			refuse(name, "is not declared")
		case byPerson && declared[i].Change != ChangedByPerson:
			refuse(name, "is changed by operators only")
		case string(bytes.TrimSpace(changes[name])) == "null":
			delete(members, name)
		case !declared[i].accepts(changes[name]) || json.Compact(&value, changes[name]) != nil ||
			bytes.Contains(value.Bytes(), []byte(`\u0000`)):
			refuse(name, "must be of the type "+declared[i].Type)
		default:
			members[name] = value.Bytes()
		}
	}
	if problems != nil {
		return "", problems
	}
	if len(members) == 0 {
		return "", nil
	}
	text, err := json.Marshal(members) // sorted
	if err != nil {
		return "", err
	}
	if len(text) > MaxAttributes {
		return "", FieldErrors{{Field: "attributes", Message: "must have at most " +
			strconv.Itoa(MaxAttributes) + " bytes as JSON"}}
	}
	return Attributes(text), nil
}
