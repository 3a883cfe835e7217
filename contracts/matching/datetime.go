package matching

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// field is a part of a format of time: letters of one kind, or text.
type field struct {
	letter byte // 0 = text
	count  int
	text   string
}

// parseFormat parses a format in the letters of Java's SimpleDateFormat, such as
// yyyy-MM-dd'T'HH:mm:ssXXX.
func parseFormat(format string) (all []field, err error) {
	for rest := format; rest != ""; {
		switch c := rest[0]; {
		case c == '\'':
			quoted, after, found := strings.Cut(rest[1:], "'")
			if !found {
				return nil, fmt.Errorf("the format %q: a quote is not closed", format)
			}
			if quoted == "" {
				quoted = "'"
			}
			all, rest = append(all, field{text: quoted}), after
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			n := len(rest) - len(strings.TrimLeft(rest, string(c)))
			if patternOf(c, n) == "" {
				return nil, fmt.Errorf("the format %q: %s has no meaning", format, rest[:n])
			}
			all, rest = append(all, field{letter: c, count: n}), rest[n:]
		default:
			all, rest = append(all, field{text: rest[:1]}), rest[1:]
		}
	}
	return all, nil
}

const (
	months   = `(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)`
	weekdays = `(?:Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)`
	offset   = `[+-]\d{2}(?::?\d{2})?`
)

// patternOf returns a regular expression for letters; "" = they have no meaning.
func patternOf(letter byte, count int) string {
	const digits = `\d{1,2}` // libpact_ffi also reads one digit for two letters
	switch letter {
	case 'y', 'u', 'Y':
		if count == 2 {
			return `\d{2}`
		}
		return `[+-]?\d{4,}`
	case 'M', 'L':
		if count > 2 {
			return "(?i:" + months + ")"
		}
		return digits
	case 'd', 'H', 'h', 'k', 'K', 'm', 's', 'w':
		return digits
	case 'D':
		return `\d{1,3}`
	case 'E', 'e', 'c':
		return "(?i:" + weekdays + `|\d)`
	case 'a':
		return `(?i:am|pm)`
	case 'S':
		return `\d{1,9}`
	case 'n', 'A', 'N', 'Q', 'q', 'F', 'W':
		return `\d+`
	case 'G':
		return `(?i:ad|bc)`
	case 'X':
		return "(?:Z|" + offsetOf(count) + ")"
	case 'x':
		return offsetOf(count)
	case 'Z':
		return offsetOf(2)
	case 'z', 'O', 'V':
		return `(?:Z|(?:GMT|UTC)?` + offset + `|[A-Za-z]+(?:/[A-Za-z_]+)*)`
	}
	return ""
}

// offsetOf returns a regular expression for an offset with so many letters.
func offsetOf(count int) string {
	switch count {
	case 1:
		return `[+-]\d{2}(?:\d{2})?`
	case 2:
		return `[+-]\d{4}`
	}
	return `[+-]\d{2}:\d{2}`
}

// formats keeps the regular expressions of formats.
var formats sync.Map

// compiled is a format as a regular expression with a group for each field with letters.
type compiled struct {
	fields  []field
	pattern *regexp.Regexp
}

func compile(format string) (*compiled, error) {
	if known, ok := formats.Load(format); ok {
		return known.(*compiled), nil
	}
	fields, err := parseFormat(format)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("^")
	c := &compiled{}
	for _, f := range fields {
		if f.letter == 0 {
			b.WriteString(regexp.QuoteMeta(f.text))
			continue
		}
		b.WriteString("(" + patternOf(f.letter, f.count) + ")")
		c.fields = append(c.fields, f)
	}
	b.WriteString("$")
	if c.pattern, err = regexp.Compile(b.String()); err != nil {
		return nil, err
	}
	formats.Store(format, c)
	return c, nil
}

// acceptTime returns why a text is no date or time of the format; "" = it is one.
func acceptTime(format, s string) string {
	c, err := compile(format)
	if err != nil {
		return err.Error()
	}
	found := c.pattern.FindStringSubmatch(s)
	if found == nil {
		return "want the format " + format
	}
	if err := c.check(found[1:]); err != nil {
		return err.Error()
	}
	return ""
}

// limits are the ranges of fields.
var limits = map[byte][2]int{'M': {1, 12}, 'L': {1, 12}, 'd': {1, 31}, 'H': {0, 23}, 'k': {1, 24},
	'K': {0, 11}, 'h': {1, 12}, 'm': {0, 59}, 's': {0, 60}, 'D': {1, 366}, 'w': {1, 53}}

// check returns an error for a value out of range, and for a day that the month does not have.
func (c *compiled) check(values []string) error {
	year, month, day := 2000, 0, 1
	for i, f := range c.fields {
		n, err := strconv.Atoi(values[i])
		if err != nil {
			if f.letter == 'M' || f.letter == 'L' {
				month = monthOf(values[i])
			}
			continue
		}
		if r, ok := limits[f.letter]; ok && (n < r[0] || n > r[1]) {
			return fmt.Errorf("%s is out of range", values[i])
		}
		switch f.letter {
		case 'y', 'u':
			year = n
		case 'M', 'L':
			month = n
		case 'd':
			day = n
		}
	}
	if month > 0 && time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() != day {
		return errors.New("the month does not have this day")
	}
	return nil
}

// monthOf returns the number of a month by its name.
func monthOf(name string) int {
	for m := time.January; m <= time.December; m++ {
		if strings.EqualFold(name[:3], m.String()[:3]) {
			return int(m)
		}
	}
	return 0
}
