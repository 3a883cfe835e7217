package matching

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rules are the matching rules of a response, by their category.
type Rules struct {
	Status  RuleSet // without matchers = the status must be equal
	Headers map[string]RuleSet
	Body    []Rule
}

// Rule is what the values at a path must fulfil.
type Rule struct {
	Path Path
	Set  RuleSet
}

// RuleSet is a list of matchers. All of them must accept a value, or with Any one of them.
type RuleSet struct {
	Matchers []Matcher
	Any      bool

	// cascaded means that the path of the rule is above the value. Limits of length then say nothing.
	cascaded bool
}

// equal reports whether a matcher wants an equal value.
func (set RuleSet) equal() bool {
	return slices.ContainsFunc(set.Matchers, func(m Matcher) bool { return m.Kind == "equality" })
}

// Matcher is one matcher of the Pact specification.
type Matcher struct {
	Kind     string // such as "type"
	Min, Max int    // of arrays; -1 = no limit
	Text     string // of include, contentType and formats of time
	Regex    *regexp.Regexp
	Statuses []int     // of statusCode; empty = Text names a class
	Each     []Matcher // of eachKey and eachValue
	Variants []Variant // of arrayContains
}

// Variant is an element that an array must contain.
type Variant struct {
	Index int // of its example in the expected array
	Rules []Rule
}

// legacyHeader matches the key of a rule for a header in version 2.
var legacyHeader = regexp.MustCompile(`^\$\.headers?(?:\.([^.\['\]]+)|\['([^']+)'\])`)

// ParseRules parses the member matchingRules of a response, in the form of version 2 or of later
// ones. Its error names the first rule that is malformed.
func ParseRules(given map[string]any) (*Rules, error) {
	r := &Rules{Headers: map[string]RuleSet{}}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value, _ := given[key].(map[string]any)
		if value == nil {
			return nil, fmt.Errorf("the matching rule %q is no object", key)
		}
		if err := r.add(key, value); err != nil {
			return nil, fmt.Errorf("the matching rule %q: %w", key, err)
		}
	}
	return r, nil
}

// add adds the rules of a category, or one rule of version 2.
func (r *Rules) add(key string, value map[string]any) error {
	if strings.HasPrefix(key, "$") {
		return r.addLegacy(key, value)
	}
	switch key {
	case "body":
		rules, err := parsePaths(value)
		r.Body = rules
		return err
	case "status":
		set, err := parseSet(value)
		r.Status = set
		return err
	case "header":
		for _, name := range slices.Sorted(maps.Keys(value)) {
			set, err := parseSet(value[name])
			if err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
			r.Headers[headerOf(name)] = set
		}
		return nil
	case "path", "query", "method", "metadata", "content":
		return nil // no response has them
	}
	return errors.New("there is no such category; want body, header or status")
}

func (r *Rules) addLegacy(key string, value map[string]any) error {
	m, err := parseMatcher(value)
	if err != nil {
		return err
	}
	set := RuleSet{Matchers: []Matcher{m}}
	if name := legacyHeader.FindStringSubmatch(key); name != nil {
		r.Headers[strings.ToLower(name[1]+name[2])] = set
		return nil
	}
	rest, ok := strings.CutPrefix(key, "$.body")
	if !ok {
		return nil // a rule for a request
	}
	path, err := ParsePath("$" + rest)
	r.Body = append(r.Body, Rule{path, set})
	return err
}

// headerOf returns the name of a header in the key of a rule, such as X or $.X[0], in lower case.
func headerOf(key string) string {
	if path, err := ParsePath(key); err == nil && len(path) > 0 {
		key = path[0].Name
	}
	return strings.ToLower(key)
}

// parsePaths parses rules by their paths.
func parsePaths(value map[string]any) (all []Rule, err error) {
	for _, key := range slices.Sorted(maps.Keys(value)) {
		path, err := ParsePath(key)
		if err != nil {
			return nil, err
		}
		set, err := parseSet(value[key])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", key, err)
		}
		all = append(all, Rule{path, set})
	}
	return all, nil
}

// parseSet parses {"matchers":[…],"combine":"AND"}.
func parseSet(value any) (RuleSet, error) {
	o, _ := value.(map[string]any)
	list, ok := o["matchers"].([]any)
	if !ok {
		return RuleSet{}, errors.New("it has no list matchers")
	}
	set := RuleSet{}
	combine, _ := o["combine"].(string)
	set.Any = strings.EqualFold(combine, "OR")
	for _, one := range list {
		m, err := parseMatcher(one)
		if err != nil {
			return RuleSet{}, err
		}
		set.Matchers = append(set.Matchers, m)
	}
	return set, nil
}

// plain are the matchers without parameters.
var plain = []string{"equality", "null", "integer", "decimal", "number", "boolean", "values",
	"notEmpty", "semver"}

// defaults are the formats of matchers of time without a format.
var defaults = map[string]string{"date": "yyyy-MM-dd", "time": "HH:mm:ss",
	"datetime": "yyyy-MM-dd'T'HH:mm:ss", "timestamp": "yyyy-MM-dd'T'HH:mm:ss"}

// aliases are other names of matchers.
var aliases = map[string]string{"real": "decimal", "not-empty": "notEmpty", "min": "type",
	"max": "type", "min-type": "type", "max-type": "type", "min-max-type": "type",
	"status-code": "statusCode", "content-type": "contentType", "each-key": "eachKey",
	"each-value": "eachValue", "array-contains": "arrayContains", "timestamp": "datetime"}

// parseMatcher parses a matcher. Versions 1 and 2 may leave out "match".
func parseMatcher(value any) (m Matcher, err error) {
	o, ok := value.(map[string]any)
	if !ok {
		return m, errors.New("a matcher is no object")
	}
	m.Kind, ok = o["match"].(string)
	if !ok {
		m.Kind = guess(o)
	}
	if alias := aliases[m.Kind]; alias != "" {
		m.Kind = alias
	}
	if m.Min, err = limit(o, "min"); err != nil {
		return m, err
	}
	if m.Max, err = limit(o, "max"); err != nil {
		return m, err
	}
	return m, m.parseRest(o)
}

// guess returns the kind of a matcher that names none.
func guess(o map[string]any) string {
	for _, kind := range []string{"regex", "min", "max", "date", "time", "timestamp"} {
		if o[kind] != nil {
			return kind
		}
	}
	return ""
}

// limit returns a length; -1 = none.
func limit(o map[string]any, name string) (int, error) {
	if o[name] == nil {
		return -1, nil
	}
	n, err := strconv.Atoi(fmt.Sprint(o[name]))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %v, want an integer from 0", name, o[name])
	}
	return n, nil
}

// parseRest parses what depends on the kind.
func (m *Matcher) parseRest(o map[string]any) (err error) {
	text := func(name string) (string, error) {
		s, ok := o[name].(string)
		if !ok {
			return "", fmt.Errorf("the matcher %s has no %s", m.Kind, name)
		}
		return s, nil
	}
	switch m.Kind {
	case "regex":
		pattern, err := text("regex")
		if err != nil {
			return err
		}
		m.Text = pattern
		m.Regex, err = regexp.Compile(`^(?:` + pattern + `)$`) // the whole text must match
		return err
	case "include", "contentType":
		m.Text, err = text("value")
		return err
	case "date", "time", "datetime":
		m.Text = formatOf(o, m.Kind)
		_, err := parseFormat(m.Text)
		return err
	case "statusCode":
		return m.parseStatus(o["status"])
	case "eachKey", "eachValue":
		return m.parseEach(o["rules"])
	case "arrayContains":
		return m.parseVariants(o["variants"])
	case "type":
		return nil
	}
	if !slices.Contains(plain, m.Kind) {
		return fmt.Errorf("there is no matcher %q", m.Kind)
	}
	return nil
}

// formatOf returns the format of a matcher of time.
func formatOf(o map[string]any, kind string) string {
	for _, name := range []string{"format", kind, "timestamp"} {
		if s, ok := o[name].(string); ok && s != "" {
			return s
		}
	}
	return defaults[kind]
}

// classes are the classes of statuses.
var classes = map[string]func(int) bool{
	"info":        func(s int) bool { return s/100 == 1 },
	"success":     func(s int) bool { return s/100 == 2 },
	"redirect":    func(s int) bool { return s/100 == 3 },
	"clientError": func(s int) bool { return s/100 == 4 },
	"serverError": func(s int) bool { return s/100 == 5 },
	"nonError":    func(s int) bool { return s < 400 },
	"error":       func(s int) bool { return s >= 400 },
}

func (m *Matcher) parseStatus(value any) error {
	if name, ok := value.(string); ok && classes[name] != nil {
		m.Text = name
		return nil
	}
	list, _ := value.([]any)
	for _, one := range list {
		n, err := strconv.Atoi(fmt.Sprint(one))
		if err != nil {
			return fmt.Errorf("the status %v is no integer", one)
		}
		m.Statuses = append(m.Statuses, n)
	}
	if len(m.Statuses) == 0 {
		return fmt.Errorf("status is %v, want a list of statuses or one of %s", value,
			strings.Join(slices.Sorted(maps.Keys(classes)), ", "))
	}
	return nil
}

func (m *Matcher) parseEach(value any) error {
	list, ok := value.([]any)
	if !ok {
		return fmt.Errorf("the matcher %s has no list rules", m.Kind)
	}
	for _, one := range list {
		each, err := parseMatcher(one)
		if err != nil {
			return err
		}
		m.Each = append(m.Each, each)
	}
	return nil
}

func (m *Matcher) parseVariants(value any) error {
	list, ok := value.([]any)
	if !ok {
		return errors.New("the matcher arrayContains has no list variants")
	}
	for i, one := range list {
		o, _ := one.(map[string]any)
		v := Variant{Index: i}
		if n, ok := o["index"].(json.Number); ok {
			index, err := strconv.Atoi(n.String())
			if err != nil || index < 0 {
				return fmt.Errorf("the index %s of a variant is no integer from 0", n)
			}
			v.Index = index
		}
		rules, _ := o["rules"].(map[string]any)
		var err error
		if v.Rules, err = parsePaths(rules); err != nil {
			return err
		}
		m.Variants = append(m.Variants, v)
	}
	return nil
}

// Literal reports whether the set wants a value that is equal to the example.
func (set RuleSet) Literal() bool { return len(set.Matchers) == 0 || set.equal() }

// Cascaded reports whether the path of the rule is above the value.
func (set RuleSet) Cascaded() bool { return set.cascaded }

// Best returns the rule for a value: the one whose path is the most specific. ok is false if there
// is none. A rule also holds below its path.
func Best(rules []Rule, at Path) (set RuleSet, ok bool) {
	highest := 0
	for _, rule := range rules {
		if w := weight(rule.Path, at); w > 0 && w >= highest {
			highest, set, ok = w, rule.Set, true
			set.cascaded = len(rule.Path) != len(at)
		}
	}
	return set, ok
}

// weight returns how specific a path of a rule is for a value; 0 = it is not above it. The
// specification gives each step 2 and each wildcard 1, and multiplies.
func weight(rule, at Path) int {
	if len(rule) > len(at) {
		return 0
	}
	product := 2
	for i, step := range rule {
		switch {
		case step.IsIndex && at[i].IsIndex && step.Index == at[i].Index,
			!step.IsIndex && !at[i].IsIndex && step.Name == at[i].Name:
			product *= 2
		case step.IsIndex && at[i].IsIndex && step.Index < 0, step.Any && !at[i].IsIndex:
		case step.Any: // .* also stands for an element
		default:
			return 0
		}
	}
	return product * (len(rule) + 1)
}
