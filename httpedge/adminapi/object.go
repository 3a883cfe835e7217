package adminapi

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"gatehouse/actors/account"
	"gatehouse/httpedge/endpoint"
)

// object is the JSON object in a request, read member by member. It collects unknown members and
// members of the wrong type; end returns them together.
type object struct {
	members  map[string]json.RawMessage
	known    map[string]bool // members that were read; a retried change reads them again
	problems map[string]string
}

func newObject() *object {
	return &object{members: map[string]json.RawMessage{}, known: map[string]bool{},
		problems: map[string]string{}}
}

// object reads the request's body, which must be one JSON object.
func (c *adminCall) object() (*object, error) {
	if !endpoint.IsJSON(c.Request.Header.ContentType()) {
		return nil, endpoint.ErrNotJSON
	}
	o := newObject()
	if !o.parse(c.PostBody()) {
		return nil, endpoint.ErrInvalidRequest.Saying("The body must be one JSON object.")
	}
	return o, nil
}

// optionalObject is object for a body that may be missing, which is an empty object.
func (c *adminCall) optionalObject() (*object, error) {
	if len(bytes.TrimSpace(c.PostBody())) == 0 {
		return newObject(), nil
	}
	return c.object()
}

// nothing returns an error unless the body is missing or an empty object.
func (c *adminCall) nothing() error {
	o, err := c.optionalObject()
	if err != nil {
		return err
	}
	return o.end()
}

// parse reads a text, and reports whether it is one JSON object.
func (o *object) parse(text []byte) bool {
	return utf8.Valid(text) && o.read(json.NewDecoder(bytes.NewReader(text)))
}

func (o *object) read(d *json.Decoder) bool {
	if brace, err := d.Token(); err != nil || brace != json.Delim('{') {
		return false
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return false
		}
		name, isName := token.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil || !isName {
			return false
		}
		if _, repeated := o.members[name]; repeated {
			o.problems[name] = "is repeated"
		}
		o.members[name] = value
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return false
	}
	_, err := d.Token()
	return err == io.EOF
}

// member decodes a member into to, unless it is absent. must is the error for a wrong type.
func (o *object) member(name, must string, to any) (given bool) {
	value, ok := o.members[name]
	if !ok {
		return false
	}
	o.known[name] = true
	if string(value) == "null" || json.Unmarshal(value, to) != nil {
		o.refuse(name, must)
		return false
	}
	return true
}

func (o *object) refuse(name, message string) {
	if o.problems[name] == "" {
		o.problems[name] = message
	}
}

// text sets *to to a string member.
func (o *object) text(name string, to *string) (given bool) {
	return o.member(name, "must be a string", to)
}

// clearable sets *to to a string member, or to "" when it is null.
func (o *object) clearable(name string, to *string) {
	if string(o.members[name]) == "null" {
		o.known[name] = true
		*to = ""
		return
	}
	o.text(name, to)
}

// flag sets *to to a boolean member.
func (o *object) flag(name string, to *bool) { o.member(name, "must be true or false", to) }

// number sets *to to a member that is a whole number.
func (o *object) number(name string, to *int) { o.member(name, "must be a whole number", to) }

// texts sets *to to a member that is a list of strings.
func (o *object) texts(name string, to *[]string) (given bool) {
	var list []*string
	if !o.member(name, "must be a list of strings", &list) {
		return false
	}
	texts := make([]string, len(list))
	for i, t := range list {
		if t == nil {
			o.refuse(name, "must be a list of strings")
			return false
		}
		texts[i] = *t
	}
	*to = texts
	return true
}

// end returns the errors of all members, unknown ones included, or nil.
func (o *object) end() error {
	for name := range o.members {
		if !o.known[name] {
			o.refuse(name, "is unknown")
		}
	}
	var fields account.FieldErrors
	for _, name := range slices.Sorted(maps.Keys(o.problems)) {
		fields = append(fields, account.FieldError{Field: name, Message: o.problems[name]})
	}
	if fields == nil {
		return nil
	}
	return fields
}
