package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// printJSON writes a JSON text with indentation.
func printJSON(w io.Writer, text []byte) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return fmt.Errorf("print response: %w", err)
	}
	indented.WriteByte('\n')
	_, err := indented.WriteTo(w)
	return err
}

// printRecord writes the members of a JSON object in their order, each on a line.
func printRecord(w io.Writer, text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil { // the brace
		return fmt.Errorf("print response: %w", err)
	}
	table := newTable(w)
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return fmt.Errorf("print response: %w", err)
		}
		var value any
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("print response: %w", err)
		}
		text := cell(value)
		if members, ok := value.(map[string]any); ok && name == "attributes" {
			text = assignments(members)
		}
		fmt.Fprintf(table, "%s\t%s\n", name, text)
	}
	return table.Flush()
}

// assignments returns the members as NAME=VALUE, by name.
func assignments(members map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, printable(name)+"="+cell(members[name]))
	}
	return first(strings.Join(parts, ", "), "-")
}

// newTable returns a writer that aligns columns separated by tabs.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// cell returns a JSON value as text on one line, without control characters.
func cell(value any) string {
	switch value := value.(type) {
	case nil:
		return "-"
	case string:
		return first(printable(value), "-")
	case bool:
		return map[bool]string{true: "yes", false: "no"}[value]
	case float64:
		return fmt.Sprintf("%.0f", value)
	case []any:
		parts := make([]string, len(value))
		for i, v := range value {
			parts[i] = cell(v)
		}
		return first(strings.Join(parts, ", "), "-")
	case map[string]any:
		if _, isKey := value["kty"]; isKey { // a JSON Web Key: its numbers say nothing to people
			return cell(value["kty"]) + " " + cell(value["kid"])
		}
		if to, isRule := value["to"]; isRule { // of token exchange, as --exchange takes it
			scopes, _ := value["scopes"].([]any)
			parts := []string{cell(value["from"]), cell(to)}
			for _, scope := range scopes {
				parts = append(parts, cell(scope))
			}
			return strings.Join(parts, " ")
		}
		var parts []string
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(value))) {
			if name == "hash" { // of a secret: it says nothing to people
				continue
			}
			part := cell(value[name])
			if _, isList := value[name].([]any); isList && name != "keys" { // of ID-JAGs: say which list
				part = name + ": " + part
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, " ")
	}
	return fmt.Sprint(value)
}

// printable replaces characters that move a terminal's cursor or change the direction of text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200e && r <= 0x200f || r >= 0x2028 &&
			r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, s)
}

// fieldList returns the errors of fields on one line.
func fieldList(fields map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, printable(name)+": "+printable(fields[name]))
	}
	return strings.Join(parts, "; ")
}
