package contracts

import (
	"encoding/json"
	"fmt"
	"strings"
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

// Document is the Catalogue as Markdown: what contracts/STATES.md holds.
func Document() string {
	var b strings.Builder
	b.WriteString("# Provider states\n\n" +
		"What a pact with gatehouse may ask for with \"given\". This page is made from the catalogue in code; `pactcheck states` prints the same.\n\n" +
		"Each interaction has a gatehouse of its own, in which its states are set up in their order; afterwards all of it is gone. What a state needs and " +
		"no state before it has made, it makes with defaults: an access token without a client before it is that of a confidential client with a user whose " +
		"profile is complete. A state or a parameter that is not on this page, and a value that cannot be, are refused before anything runs. Every parameter can be left out.\n\n" +
		"Values can stand in paths, queries, headers and JSON of requests (\"from provider state\"). Verifiers put none into form bodies: " +
		"what stands there is given as a parameter, such as `code`.\n")
	for _, s := range Catalogue() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.Title(), s.Description)
		if len(s.Parameters) > 0 {
			b.WriteString("\n| Parameter | Type | Default | What it is |\n|---|---|---|---|\n")
		}
		for _, p := range s.Parameters {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, p.kind(), p.standard(), p.Description)
		}
		if len(s.Values) > 0 {
			b.WriteString("\n| Value | What it is |\n|---|---|\n")
		}
		for _, v := range s.Values {
			fmt.Fprintf(&b, "| `%s` | %s |\n", v.Name, v.Description)
		}
	}
	return b.String()
}

// kind is the type, or the choices that there are.
func (p *Parameter) kind() string {
	if len(p.Choices) > 0 {
		return "`" + strings.Join(p.Choices, "`, `") + "`"
	}
	return string(p.Type)
}

// standard is the default as it would stand in a pact; nothing when there is none.
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
