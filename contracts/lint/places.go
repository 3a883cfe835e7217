package lint

import "regexp"

// last is the position of the last argument, none that of no argument.
const (
	last = -1
	none = -2
)

// places says which arguments of oasdiff's rules about responses name a member, a header or a media
// type, and the status. The first entry that matches counts. oasdiff 1.35 has them in no common
// order.
var places = []struct {
	rule         *regexp.Regexp
	name, status int
}{
	{regexp.MustCompile(`^response-property-list-of-types-`), 0, last},
	{regexp.MustCompile(`^response-property-dependent-required-(added|removed)$`), 0, 1},
	{regexp.MustCompile(`^response-property-dependent-required-changed$`), 0, 2},
	{regexp.MustCompile(`^response-property-discriminator-mapping-(added|deleted)$`), 1, last},
	{regexp.MustCompile(`^response-property-discriminator-mapping-changed$`), 3, last},
	{regexp.MustCompile(`^response-(write-only-)?property-(enum-value|all-of|any-of|one-of|dependent-schema|pattern-property|prefix-items)-`), 1, last},
	{regexp.MustCompile(`^response-property-(deprecated|reactivated|sunset|stability)`), 0, none},
	{regexp.MustCompile(`^response-body-dependent-required-(added|removed)$`), none, 0},
	{regexp.MustCompile(`^response-body-dependent-required-changed$`), none, 1},
	{regexp.MustCompile(`^response-required-property-removed-before-sunset$`), 0, 1},
	{regexp.MustCompile(`^response-mediatype-enum-value-removed$`), 0, none},
	{regexp.MustCompile(`^response-mediatype-enum-value-added$`), 1, last},
	{regexp.MustCompile(`^response-media-type-parameter-`), 1, last},
	{regexp.MustCompile(`^response-(.*-)?(property|header|mediatype|media-type)-`), 0, last},
	{regexp.MustCompile(`^response-`), none, last},
}

// status matches a status of a document.
var status = regexp.MustCompile(`^([1-5](\d\d|XX)|default)$`)

// placeOf returns the member, header or media type and the status that a change is about; "" = it
// names none.
func placeOf(rule string, args []any) (name, at string) {
	text := func(i int) string {
		if i == last {
			i = len(args) - 1
		}
		if i < 0 || i >= len(args) {
			return ""
		}
		s, _ := args[i].(string)
		return s
	}
	for _, p := range places {
		if p.rule.MatchString(rule) {
			name, at = text(p.name), text(p.status)
			break
		}
	}
	if !status.MatchString(at) {
		at = "" // of a body, whose rules about limits name no status
	}
	return name, at
}
