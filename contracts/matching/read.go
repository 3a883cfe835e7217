package matching

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// ReadExpected reads the response of an interaction, as encoding/json decodes it with UseNumber.
// version is the major version of the Pact specification.
func ReadExpected(response map[string]any, version int) (*Expected, error) {
	e := &Expected{Status: http.StatusOK}
	if n, ok := response["status"].(json.Number); ok {
		status, err := strconv.Atoi(n.String())
		if err != nil {
			return nil, fmt.Errorf("the status is %s, want an integer", n)
		}
		e.Status = status
	}
	rules, _ := response["matchingRules"].(map[string]any)
	var err error
	if e.Rules, err = ParseRules(rules); err != nil {
		return nil, err
	}
	if e.Headers, err = ReadHeaders(response["headers"]); err != nil {
		return nil, err
	}
	e.Body, err = ReadContent(response, e.Headers, version)
	return e, err
}

// ReadHeaders reads headers: each is a text, whose commas separate values, or an array of values.
func ReadHeaders(given any) (map[string][]string, error) {
	o, _ := given.(map[string]any)
	all := map[string][]string{}
	for name, value := range o {
		switch v := value.(type) {
		case string:
			all[name] = SplitHeader(name, v)
		case []any:
			for _, one := range v {
				all[name] = append(all[name], strings.TrimSpace(text(one)))
			}
		case map[string]any:
			return nil, fmt.Errorf("the header %s is an object, want a text or a list of texts", name)
		default:
			all[name] = []string{text(v)}
		}
	}
	return all, nil
}

// ReadContent reads the body of a request or response. In version 4 it is an object with a content;
// before, it is the JSON itself, or a text.
func ReadContent(part map[string]any, headers map[string][]string, version int) (Content, error) {
	body, present := part["body"]
	if !present {
		return Content{}, nil
	}
	c := Content{}
	for name, values := range headers {
		if strings.EqualFold(name, "Content-Type") && len(values) > 0 {
			c.Type = strings.Join(values, ", ")
		}
	}
	if body == nil {
		c.Bytes = []byte{}
		return c, nil
	}
	if o, ok := body.(map[string]any); ok && version >= 4 {
		return c.readContent(o)
	}
	s, isText := body.(string)
	switch {
	case !isText:
		c.Bytes = []byte(text(body))
		if c.Type == "" {
			c.Type = "application/json"
		}
	case isJSON(base(c.Type)) && s != "" && !json.Valid([]byte(s)):
		c.Bytes = []byte(quote(s))
	default:
		c.Bytes = []byte(s)
	}
	return c, nil
}

// readContent reads the body of version 4.
func (c Content) readContent(o map[string]any) (Content, error) {
	if kind, ok := o["contentType"].(string); ok {
		c.Type = kind
	}
	content, present := o["content"]
	if !present {
		c.Bytes = []byte{}
		return c, nil
	}
	s, isText := content.(string)
	encoded, _ := o["encoded"].(bool)
	if _, named := o["encoded"].(string); encoded || named {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil || !isText {
			return c, errors.New("the content of the body is no Base64")
		}
		c.Bytes = b
		return c, nil
	}
	switch {
	case content == nil, content == "":
		c.Bytes = []byte{}
	case isText && !isJSON(base(c.Type)):
		c.Bytes = []byte(s)
	case isText:
		encoded, err := json.Marshal(s)
		if err != nil {
			return c, err
		}
		c.Bytes = encoded
	default:
		c.Bytes = []byte(text(content))
	}
	return c, nil
}
