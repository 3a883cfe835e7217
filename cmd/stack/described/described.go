// Package described checks responses against the OpenAPI document that the service serves.
package described

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Document is the OpenAPI document of the service.
type Document struct {
	Doc   *openapi3.T
	whole *openapi3.T // Doc for requests without fields: no result is a selection of members
}

// lines is the media type of streams.
const lines = "application/x-ndjson"

func init() {
	for _, kind := range []string{"text/html", lines} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.PlainBodyDecoder)
	}
}

// Read reads a document.
func Read(text []byte) (*Document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	whole, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	*whole.Components.Schemas["LookupSelection"].Value = openapi3.Schema{Enum: []any{"never"}}
	return &Document{doc, whole}, nil
}

// Check returns an error unless the document describes the response: its status, headers and body.
// path is that of the operation in the document, "" for an operation that the document does not
// have.
func (d *Document) Check(r *http.Request, status int, header http.Header, body []byte) (path string,
	err error) {
	doc := d.whole
	if r.URL.Query().Has("fields") {
		doc = d.Doc
	}
	path, item := find(doc, r.URL.Path)
	operation := item.GetOperation(r.Method)
	if operation == nil {
		return "", nil
	}
	err = openapi3filter.ValidateResponse(context.Background(),
		&openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{
				Request: r, Route: &routers.Route{Spec: doc, Path: path, PathItem: item,
					Method: r.Method, Operation: operation},
			},
			Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
			Options: &openapi3filter.Options{IncludeResponseStatus: true},
		})
	if header.Get("Content-Type") == lines {
		err = errors.Join(err, checkLines(doc, body))
	}
	return path, err
}

// checkLines returns an error unless each line of a stream is a StreamLine, and only the last one is
// a StreamEnd.
func checkLines(doc *openapi3.T, body []byte) error {
	line, end := doc.Components.Schemas["StreamLine"].Value, doc.Components.Schemas["StreamEnd"].Value
	all := bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))
	for i, text := range all {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		if err := line.VisitJSON(value); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		if ends := end.VisitJSON(value) == nil; ends != (i == len(all)-1) {
			return fmt.Errorf("line %d of %d: got StreamEnd %v", i+1, len(all), ends)
		}
	}
	return nil
}

// find returns the path of the document that is meant; one without parameters wins.
func find(doc *openapi3.T, path string) (string, *openapi3.PathItem) {
	if item := doc.Paths.Value(path); item != nil {
		return path, item
	}
	parts := strings.Split(path, "/")
	for pattern, item := range doc.Paths.Map() {
		matches := strings.Split(pattern, "/")
		if len(matches) != len(parts) {
			continue
		}
		fits := true
		for i, m := range matches {
			fits = fits && (m == parts[i] || strings.HasPrefix(m, "{"))
		}
		if fits {
			return pattern, item
		}
	}
	return "", &openapi3.PathItem{}
}
