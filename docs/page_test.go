package docs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
const root = ".."

// contractsPage needs the library of the contracts: TestContractsPage runs its commands.
const contractsPage = "docs/contracts.md"

// page is a page of the handbook, taken apart.
type page struct {
	name     string // its path in the repository
	blocks   []block
	tables   []table
	headings []string
	links    []string
}

// block is a fenced block. A block in sh holds commands; one in json or console right after it is
// what they print; one in yaml is the settings file gatehouse.yaml.
type block struct {
	language, text string
	line           int // of its fence
}

// table is a table of a page. Its cells have no surrounding space and no back quotes.
type table struct {
	header string // the cells, separated by " | "
	rows   [][]string
}

// handbook returns README.md and the pages of this folder.
func handbook(t *testing.T) []*page {
	t.Helper()
	files, err := filepath.Glob("*.md")
	if err != nil || len(files) < 9 {
		t.Fatalf("got pages %q and error %v, want nine or more", files, err)
	}
	pages := []*page{readPage(t, "README.md")}
	for _, file := range files {
		pages = append(pages, readPage(t, "docs/"+file))
	}
	return pages
}

func readPage(t *testing.T, name string) *page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return parse(name, string(text))
}

var link = regexp.MustCompile(`\]\(([^)]+)\)`)

func parse(name, text string) *page {
	p := &page{name: name}
	fenced, inTable := false, false
	for i, line := range strings.SplitAfter(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		isRow := strings.HasPrefix(line, "|") && !fenced
		switch {
		case isFence && !fenced:
			p.blocks = append(p.blocks, block{language: strings.TrimSpace(fence), line: i + 1})
		case fenced && !isFence:
			last := &p.blocks[len(p.blocks)-1]
			last.text += line
		case isRow && !inTable:
			p.tables = append(p.tables, table{header: strings.Join(cells(line), " | ")})
		case isRow && !strings.HasPrefix(line, "|---"):
			last := &p.tables[len(p.tables)-1]
			last.rows = append(last.rows, cells(line))
		case strings.HasPrefix(line, "#"):
			p.headings = append(p.headings, strings.TrimSpace(strings.TrimLeft(line, "#")))
		}
		if !fenced {
			for _, found := range link.FindAllStringSubmatch(line, -1) {
				p.links = append(p.links, found[1])
			}
		}
		fenced, inTable = fenced != isFence, isRow
	}
	return p
}

func cells(line string) []string {
	row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i := range row {
		row[i] = strings.ReplaceAll(strings.TrimSpace(row[i]), "`", "")
	}
	return row
}

// anchor returns what a link to a heading ends with.
func anchor(heading string) string {
	heading = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return "#" + strings.ReplaceAll(heading, " ", "-")
}

// TestBlocks checks that each block is of a language that the tests know, and that outputs follow
// commands.
func TestBlocks(t *testing.T) {
	for _, p := range handbook(t) {
		before := ""
		for _, b := range p.blocks {
			switch b.language {
			case "sh", "yaml", "text", "js", "ts", "go", "python":
			case "json", "console":
				if before != "sh" {
					t.Errorf("%s:%d: got an output without a command, want one", p.name, b.line)
				}
			default:
				t.Errorf("%s:%d: got a block of %q, want another", p.name, b.line, b.language)
			}
			before = b.language
		}
	}
}

// TestLinks checks that every link within the repository leads to a file or a heading.
func TestLinks(t *testing.T) {
	anchors := map[string]bool{}
	pages := handbook(t)
	for _, p := range pages {
		for _, heading := range p.headings {
			anchors[p.name+anchor(heading)] = true
		}
	}
	for _, p := range pages {
		for _, to := range p.links {
			if strings.Contains(to, "://") {
				continue
			}
			file, heading, isHeading := strings.Cut(to, "#")
			path := p.name
			if file != "" {
				path = filepath.Join(filepath.Dir(p.name), file)
			}
			_, err := os.Stat(filepath.Join(root, path))
			if err != nil || isHeading && !anchors[path+"#"+heading] {
				t.Errorf("%s: got a link to %s, want a file and heading that exist", p.name, to)
			}
		}
	}
}

// TestParse holds the parser to a small page.
func TestParse(t *testing.T) {
	got := parse("x.md", "# One\n\n| A | `B` |\n|---|---|\n| `a` [l](m.md#n) | b |\n\n"+
		"```sh\n# no heading\n| no row\n```\n## Two\n")
	want := &page{
		name: "x.md", headings: []string{"One", "Two"}, links: []string{"m.md#n"},
		blocks: []block{{language: "sh", text: "# no heading\n| no row\n", line: 7}},
		tables: []table{{header: "A | B", rows: [][]string{{"a [l](m.md#n)", "b"}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
