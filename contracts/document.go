package contracts

import (
	"encoding/json"
	"fmt"
	"strings"
)

// StateTitle is the name of a state as people read it.
func StateTitle(s State) string {
	if s.Name == "" {
		return "(none)"
	}
	return s.Name
}

// ParameterNames lists the parameters of a state.
func ParameterNames(s State) string { return parameterNames(s) }

// ValueNames lists the values of a state.
func ValueNames(s State) string {
	var names []string
	for _, v := range s.Values {
		names = append(names, v.Name)
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
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
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", StateTitle(s), s.Description)
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
