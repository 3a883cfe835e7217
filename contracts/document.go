package contracts

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Title returns the name of s as people read it.
func (s *State) Title() string {
	if s.Name == "" {
		return "(none)"
	}
	return s.Name
}

// ParameterNames lists the parameters of s.
func (s *State) ParameterNames() string {
	return names(s.Parameters, func(p Parameter) string { return p.Name })
}

// ValueNames lists the values of s.
func (s *State) ValueNames() string {
	return names(s.Values, func(v Value) string { return v.Name })
}

func names[T any](all []T, name func(T) string) string {
	if len(all) == 0 {
		return "none"
	}
	var list []string
	for _, v := range all {
		list = append(list, name(v))
	}
	return strings.Join(list, ", ")
}

// Document returns the Catalogue as Markdown, the content of contracts/STATES.md.
func Document() string {
	var b strings.Builder
	b.WriteString("# Provider states\n\n" +
		"A pact with gatehouse names these states with \"given\". This page is generated; `pactcheck states` prints the same list.\n\n" +
		"Each interaction has a gatehouse of its own. Its states are set up in order, and everything is removed afterwards. " +
		"A state creates with defaults what it needs and no earlier state has created. For example, an access token " +
		"without an earlier client belongs to a confidential client and to a user whose profile is complete. " +
		"Unknown states and parameters and impossible values are rejected before anything runs. Every parameter is optional.\n\n" +
		"A request can use the values in its path, query, headers and JSON (\"from provider state\"). Verifiers do not put values into form bodies: " +
		"pass those as parameters, such as `code`. An access token is sealed, so a given one is not valid by itself: it stands in for the real one " +
		"in the header Authorization, the query and the form of the interaction's request.\n")
	for _, s := range Catalogue() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.Title(), s.Description)
		if len(s.Parameters) > 0 {
			b.WriteString("\n| Parameter | Type | Default | What it is |\n|---|---|---|---|\n")
		}
		for _, p := range s.Parameters {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, p.kind(), p.standard(),
				p.Description)
		}
		if len(s.Values) > 0 {
			b.WriteString("\n| Value | What it is |\n|---|---|\n")
		}
		for _, v := range s.Values {
			fmt.Fprintf(&b, "| `%s` | %s |\n", v.Name, v.Description)
		}
	}
	return wrapped(b.String())
}

// wrapped breaks the lines of Markdown at 100 columns, except those of tables.
func wrapped(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		column := 0
		for word := range strings.SplitAfterSeq(line, " ") {
			length := utf8.RuneCountInString(strings.TrimSpace(word))
			if column+length > 100 && !strings.HasPrefix(line, "|") {
				b.WriteString("\n")
				column = 0
			}
			b.WriteString(word)
			column += utf8.RuneCountInString(word)
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

// kind returns the type, or the choices.
func (p *Parameter) kind() string {
	if len(p.Choices) > 0 {
		return "`" + strings.Join(p.Choices, "`, `") + "`"
	}
	return string(p.Type)
}

// standard returns the default as JSON; "" = none.
func (p *Parameter) standard() string {
	if p.Default == nil {
		return ""
	}
	text, err := json.Marshal(p.Default)
	if err != nil {
		return ""
	}
	return "`" + string(text) + "`"
}
