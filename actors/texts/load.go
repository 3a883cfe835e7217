package texts

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
	"golang.org/x/text/language"
)

//go:embed languages/*.toml
var embedded embed.FS

// own are our languages, in the order of the pages. Drafts show that the pages fit scripts of another
// direction and without spaces. A text that they lack is the English one.
var own = []struct {
	tag   string
	draft bool
}{{tag: "en"}, {tag: "de"}, {tag: "fr"}, {tag: "es"}, {tag: "pt-BR"}, {tag: "id"},
	{tag: "ar", draft: true}, {tag: "ja", draft: true}}

// maxFile limits a file of an operator, in bytes.
const maxFile = 256 << 10

// kind is the kind of a part of a message.
type kind uint8

const (
	words kind = iota
	slot
	strong
	strongEnd
	anchor
	anchorEnd
)

// part is a piece of a message: words, the name of a slot, or markup.
type part struct {
	kind kind
	text string
}

// message is an entry of a catalogue: parts, or the parts of each plural form.
type message struct {
	parts []part
	forms map[string][]part
}

// formNames are the plural forms of CLDR.
var formNames = []string{"zero", "one", "two", "few", "many", "other"}

// Set is the languages of a service. Make it with Load. It may be used by many goroutines.
type Set struct {
	all     []*Language
	matcher language.Matcher
	initial *Language
}

// Default returns our languages without drafts. English is that of people whose own is not known.
var Default = sync.OnceValue(func() *Set {
	s, err := Load(Options{})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return s
})

// Options say which languages a service has.
type Options struct {
	Initial string // the language of people whose own is not known; "" = en
	Drafts  bool   // also those that are drafts
	Dir     fs.FS  // files LANGUAGE.toml that add or replace texts; nil = none
}

// finished and withDrafts are the languages of own. They take longer to read than most commands, and a
// start asks for them more than once.
var (
	finished   = sync.OnceValue(func() []*Language { return readOwn(nil, false) })
	withDrafts = sync.OnceValue(func() []*Language { return readOwn(finished(), true) })
)

// readOwn returns these languages and those of own that are drafts, or are not.
func readOwn(former []*Language, drafts bool) []*Language {
	s := &Set{all: slices.Clone(former)}
	for _, l := range own {
		if l.draft != drafts {
			continue
		}
		data, err := embedded.ReadFile("languages/" + l.tag + ".toml")
		if err = cmp.Or(err, s.add(l.tag, string(data), l.draft)); err != nil {
			panic(fmt.Errorf("%s.toml: %w", l.tag, err)) // the files are part of the program
		}
	}
	return s.all
}

// Load reads the catalogues. The error is one line that says what is wrong in which file.
func Load(o Options) (*Set, error) {
	read := finished
	if o.Drafts {
		read = withDrafts
	}
	s := &Set{all: slices.Clone(read())}
	if o.Dir != nil {
		if err := s.addDir(o.Dir); err != nil {
			return nil, err
		}
	}
	var tags []language.Tag
	for _, l := range s.all {
		if l.Tag == cmp.Or(o.Initial, "en") {
			s.initial = l
		}
		tags = append(tags, l.tag)
	}
	if s.initial == nil {
		return nil, fmt.Errorf("must be one of %s", strings.Join(s.Tags(), ", "))
	}
	s.matcher = language.NewMatcher(tags)
	return s, nil
}

func (s *Set) addDir(dir fs.FS) error {
	names, err := fs.Glob(dir, "*.toml")
	if err != nil || len(names) == 0 {
		return errors.New("has no file LANGUAGE.toml that the server can read")
	}
	for _, name := range names {
		info, err := fs.Stat(dir, name)
		if err != nil || info.Size() > maxFile {
			return fmt.Errorf("%s: must be a file of at most 256 KB that the server can read", name)
		}
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return fmt.Errorf("%s: must be a file of at most 256 KB that the server can read", name)
		}
		if err := s.add(strings.TrimSuffix(path.Base(name), ".toml"), string(data), false); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// add adds a language, or texts to one that is there. A draft need not have every text.
func (s *Set) add(name, source string, isDraft bool) error {
	tag, err := language.Parse(name)
	if err != nil || tag.String() != name {
		return errors.New("the file's name must be a language such as it.toml or pt-BR.toml")
	}
	var tree map[string]any
	if _, err := toml.Decode(source, &tree); err != nil {
		return fmt.Errorf("is not TOML: %w", err)
	}
	l := &Language{Tag: name, tag: tag, texts: map[string]*message{}}
	at := slices.IndexFunc(s.all, func(l *Language) bool { return l.Tag == name })
	if at >= 0 {
		*l = *s.all[at]
		l.texts = maps.Clone(l.texts) // the former texts say which keys and slots there are
	}
	if err := l.read("", tree); err != nil {
		return err
	}
	if isDraft {
		for key, english := range s.english().texts {
			if l.texts[key] == nil {
				l.texts[key] = english.invariable()
			}
		}
	}
	if err := l.check(s.english()); err != nil {
		return err
	}
	if at >= 0 {
		s.all[at] = l
		return nil
	}
	s.all = append(s.all, l)
	return nil
}

// english returns the language that has every key; nil = it is being read.
func (s *Set) english() *Language {
	if len(s.all) == 0 {
		return nil
	}
	return s.all[0]
}

// read adds the entries of a table.
func (l *Language) read(prefix string, tree map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		key := prefix + name
		switch value := tree[name].(type) {
		case string:
			if err := l.set(key, value); err != nil {
				return err
			}
		case map[string]any:
			forms, isForms := formsOf(value)
			if !isForms {
				if err := l.read(key+".", value); err != nil {
					return err
				}
				continue
			}
			m := &message{forms: map[string][]part{}}
			for form, text := range forms {
				var err error
				if m.forms[form], err = parse(text); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
			l.texts[key] = m
		case []any:
			months, ok := monthsOf(value)
			if key != "date.months" || !ok {
				return fmt.Errorf("%s: must be a text; date.months has 12", key)
			}
			l.months = months
		default:
			return fmt.Errorf("%s: must be a text in quotation marks", key)
		}
	}
	return nil
}

// set adds a text.
func (l *Language) set(key, text string) error {
	switch key {
	case "language.name":
		l.Name = text
		return nil
	case "language.direction":
		if text != "ltr" && text != "rtl" {
			return errors.New("language.direction: must be ltr or rtl")
		}
		l.Direction = text
		return nil
	}
	parts, err := parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	l.texts[key] = &message{parts: parts}
	return nil
}

// formsOf returns a table of plural forms; false = it is another table.
func formsOf(table map[string]any) (map[string]string, bool) {
	forms := map[string]string{}
	for name, value := range table {
		text, isText := value.(string)
		if !isText || !slices.Contains(formNames, name) {
			return nil, false
		}
		forms[name] = text
	}
	return forms, forms["other"] != ""
}

func monthsOf(values []any) (months []string, ok bool) {
	for _, value := range values {
		text, isText := value.(string)
		if !isText {
			return nil, false
		}
		months = append(months, text)
	}
	return months, len(months) == 12
}

// parse returns the parts of a text.
func parse(text string) (parts []part, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("must not be empty")
	}
	isStrong, isLink := false, false
	for text != "" {
		at := strings.IndexAny(text, "{}[]*")
		if at < 0 {
			at = len(text)
		}
		if at > 0 {
			parts, text = append(parts, part{words, text[:at]}), text[at:]
			continue
		}
		switch name, rest, found := strings.Cut(text[1:], "}"); {
		case text[0] == '{' && found && name != "" && !strings.ContainsAny(name, "{[]* "):
			parts, text = append(parts, part{slot, name}), rest
		case strings.HasPrefix(text, "**"):
			mark := map[bool]kind{false: strong, true: strongEnd}[isStrong]
			parts, text, isStrong = append(parts, part{kind: mark}), text[2:], !isStrong
		case text[0] == '[' && !isLink, text[0] == ']' && isLink:
			mark := map[bool]kind{false: anchor, true: anchorEnd}[isLink]
			parts, text, isLink = append(parts, part{kind: mark}), text[1:], !isLink
		default:
			return nil, errors.New("must close each {slot}, **bold** and [link]")
		}
	}
	if isStrong || isLink {
		return nil, errors.New("must close each {slot}, **bold** and [link]")
	}
	return parts, nil
}

// check compares the catalogue with the English one. nil = it is that.
func (l *Language) check(english *Language) error {
	if l.Name == "" || l.Direction == "" || l.months == nil {
		return errors.New("needs language.name, language.direction and date.months")
	}
	if english == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(l.texts)) {
		pattern, known := english.texts[key]
		if !known {
			return fmt.Errorf("%s: is no key; docs/branding.md says where the keys are", key)
		}
		if err := l.checkText(l.texts[key], pattern); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	var missing []string
	for _, key := range slices.Sorted(maps.Keys(english.texts)) {
		if l.texts[key] == nil {
			missing = append(missing, key)
		}
	}
	if missing != nil {
		return fmt.Errorf("%s: is missing, and so are %d more; a new language needs every text",
			missing[0], len(missing)-1)
	}
	return nil
}

// checkText wants the slots and links of the English text, and the plural forms of the language.
func (l *Language) checkText(m, pattern *message) error {
	want := marksOf(pattern.any())
	if m.forms == nil {
		return sameMarks(marksOf(m.parts), want)
	}
	if pattern.forms == nil && !slices.Contains(want, "n") {
		return errors.New("must be a text: it has no number")
	}
	for n := range 200 {
		if form := formOf(l.tag, n); m.forms[form] == nil {
			return fmt.Errorf("needs the form %q, which the language has for %d", form, n)
		}
	}
	for form, parts := range m.forms {
		marks := marksOf(parts)
		if form != "other" && !slices.Contains(marks, "n") { // as in "an hour ago"
			marks = append(marks, "n")
			slices.Sort(marks)
		}
		if err := sameMarks(marks, want); err != nil {
			return err
		}
	}
	return nil
}

// invariable returns m with one form for all numbers.
func (m *message) invariable() *message { return &message{parts: m.any()} }

// any returns the parts of a form that has all slots.
func (m *message) any() []part {
	if m.forms != nil {
		return m.forms["other"]
	}
	return m.parts
}

// marksOf returns the slots and links of parts, sorted, each once.
func marksOf(parts []part) (marks []string) {
	for _, p := range parts {
		switch p.kind {
		case slot:
			marks = append(marks, p.text)
		case anchor:
			marks = append(marks, "[")
		}
	}
	slices.Sort(marks)
	return slices.Compact(marks)
}

func sameMarks(got, want []string) error {
	if slices.Equal(got, want) {
		return nil
	}
	var shown []string
	for _, mark := range want {
		if mark == "[" {
			shown = append(shown, "[words]")
			continue
		}
		shown = append(shown, "{"+mark+"}")
	}
	if shown == nil {
		return errors.New("must have no {slot} and no [link]")
	}
	return fmt.Errorf("must have %s and no others", strings.Join(shown, " "))
}

// Tags returns the tags of the languages, in the order of the pages.
func (s *Set) Tags() (tags []string) {
	for _, l := range s.all {
		tags = append(tags, l.Tag)
	}
	return tags
}

// All returns the languages, in the order of the pages.
func (s *Set) All() []*Language { return s.all }

// Initial returns the language of people whose own is not known.
func (s *Set) Initial() *Language { return s.initial }

// Of returns the language with that tag, or nil.
func (s *Set) Of(tag string) *Language {
	for _, l := range s.all {
		if l.Tag == tag {
			return l
		}
	}
	return nil
}

// Match returns the language that fits best what a person prefers: tags as in Accept-Language, or
// separated by spaces. nil = none fits.
func (s *Set) Match(preferred string) *Language {
	const limit = 256 // bytes: no browser has more, and others cost time
	tags, _, err := language.ParseAcceptLanguage(strings.ReplaceAll(
		preferred[:min(limit, len(preferred))], " ", ","))
	if err != nil || len(tags) == 0 {
		return nil
	}
	_, at, confidence := s.matcher.Match(tags...)
	if confidence == language.No {
		return nil
	}
	return s.all[at]
}
