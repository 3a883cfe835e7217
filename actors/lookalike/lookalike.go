// Package lookalike tells whether people could take one name for another (Unicode Technical Standard
// 39).
package lookalike

import (
	_ "embed"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

//go:embed confusables.txt
var source string

// likes are characters with what they look like.
var likes = read(source)

func read(source string) map[rune]string {
	all := map[rune]string{}
	for line := range strings.Lines(source) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		for _, code := range fields[1:] {
			r, err := strconv.ParseUint(code, 16, 32)
			if err != nil {
				panic("confusables.txt: " + err.Error()) // it is part of the program
			}
			all[rune(r)] = fields[0]
		}
	}
	return all
}

// digits are the digits and letters of ASCII that look alike, after lower case.
var digits = strings.NewReplacer("0", "o", "1", "l", "i", "l", "rn", "m", "vv", "w")

// Skeleton returns what names that look the same have in common. It is not for display.
func Skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		like, ok := likes[r]
		switch {
		case ok:
			b.WriteString(like)
		case unicode.IsLetter(r), unicode.IsDigit(r):
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return digits.Replace(strings.ToLower(b.String()))
}

// scripts are those whose letters look like those of another one of them.
var scripts = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian,
	unicode.Cherokee}

// MixesScripts reports whether a word of name has letters of several scripts that look alike, as no
// language does.
func MixesScripts(name string) bool {
	for word := range strings.FieldsSeq(name) {
		found := 0
		for _, script := range scripts {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(script, r) }) {
				found++
			}
		}
		if found > 1 {
			return true
		}
	}
	return false
}

// minPart is the shortest name, in characters of its skeleton, that makes a longer one look like it.
const minPart = 4

// Looks reports whether people could take name for other: both look the same, or name contains what
// looks like other.
func Looks(name, other string) bool {
	mine, theirs := Skeleton(name), Skeleton(other)
	return theirs != "" && (mine == theirs || len(theirs) >= minPart && strings.Contains(mine, theirs))
}

// HostLooks reports whether people could take a host for that of a service with a host of its own and
// a name: it looks like one of them, or contains what does. A host below the service's own is no other.
func HostLooks(host, own, name string) bool {
	if host == own || strings.HasSuffix(host, "."+own) {
		return false
	}
	if shown, err := idna.Punycode.ToUnicode(host); err == nil {
		host = shown
	}
	return Looks(host, own) || Looks(host, name)
}
